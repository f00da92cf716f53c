"""The first signal asks a command to end, the second ends it."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest
from kschedfw_replay.cli.stop_signal import stop_signal

from kschedfw.testing.waiting import PATIENCE

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def usual() -> Iterator[list[int]]:
    """The signals that had their usual effect."""
    got: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        got.append(number)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    yield got
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(SIGNALS, repeat=2)))
def test_a_second_signal_of_either_kind_has_its_usual_effect(
    usual: list[int], first: signal.Signals, second: signal.Signals
) -> None:
    with stop_signal() as stop:
        assert not stop.has_come
        signal.raise_signal(first)
        assert stop.has_come
        assert usual == []
        signal.raise_signal(second)
        assert usual == [second]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_after_the_block_has_its_usual_effect(usual: list[int], number: signal.Signals) -> None:
    with stop_signal() as stop:
        pass
    signal.raise_signal(number)
    assert usual == [number]
    assert not stop.has_come


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_wait(usual: list[int], number: signal.Signals) -> None:
    with stop_signal() as stop:
        sender = threading.Timer(0.05, os.kill, (os.getpid(), number))
        sender.start()
        assert stop.wait(PATIENCE)
        sender.join()
        assert stop.wait(PATIENCE)
    assert usual == []


def test_without_a_signal_a_wait_ends_by_itself(usual: list[int]) -> None:
    with stop_signal() as stop:
        assert not stop.wait(0.0)
        assert not stop.wait(-1.0)
    assert usual == []
