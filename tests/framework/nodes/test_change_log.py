"""Readers of a log get what has changed since they last read, or that it isn't known any more."""

from __future__ import annotations

import numpy as np

from kschedfw.framework.nodes.change_log import ChangeLog


def log_of(*rows: int, size: int = 10) -> ChangeLog:
    log = ChangeLog()
    for row in rows:
        log.append(row, size)
    return log


def test_each_reader_gets_what_came_after_its_version() -> None:
    log = log_of(3, 1, 3)
    assert log.version == 3
    assert log.since(0) == [3, 1, 3]
    assert log.since(2) == [3]
    assert log.since(3) == []


def test_rows_follow_to_their_new_places_and_those_that_are_gone_are_left_out() -> None:
    log = log_of(0, 1, 2)
    log.move_rows(np.array([1, -1, 0]))
    assert log.since(0) == [1, 0]
    assert log.since(1) == [0]
    log.move_rows(np.array([5, 6]))
    assert log.since(0) == [6, 5]


def test_a_reader_that_lags_too_far_behind_is_told_so_and_others_notice_nothing() -> None:
    log = log_of(*range(3000))
    assert log.version == 3000
    assert log.since(0) is None
    assert log.since(2998) == [2998, 2999]


def test_in_a_large_table_more_is_kept() -> None:
    log = log_of(*range(3000), size=2000)
    assert log.since(0) == list(range(3000))
