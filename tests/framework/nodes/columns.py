"""What a snapshot's table has to say of its nodes, and interruptions of those who write it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from kschedfw import Snapshot
from kschedfw.framework import nodes
from kschedfw.scheduler import cache

_WRITERS = tuple(str(Path(each).resolve()) for each in (*nodes.__path__, cache.__file__))


def assert_rows_are_nodes(snapshot: Snapshot) -> None:
    """Each row of the table says what its NodeInfo says, and every resource that one names has a column."""
    table = snapshot.table
    assert table.names == tuple(info.name for info in snapshot.node_infos)
    assert dict(table.rows) == {info.name: row for row, info in enumerate(snapshot.node_infos)}
    for row, info in enumerate(snapshot.node_infos):
        assert table.node_infos[row] is info
        assert {*info.allocatable.scalar_resources, *info.requested.scalar_resources} <= table.columns.keys()
        for name, column in table.columns.items():
            there = info.allocatable.get(name)
            taken = len(info.pods) if name == "pods" else info.requested.get(name)
            found = table.allocatable[row, column], table.requested[row, column], table.free[row, column]
            assert found == (there, taken, there - taken), name
        non_zero = info.non_zero_requested
        assert tuple(table.non_zero_requested[row]) == (non_zero.milli_cpu, non_zero.memory)
        assert table.pod_counts[row] == len(info.pods)
        assert table.unschedulable[row] == info.node.spec.unschedulable
        assert table.taints.values[table.taints.codes[row]] == info.node.spec.taints
    assert table.allocatable_floats.tolist() == table.allocatable[:, :2].tolist()
    assert table.requested_floats.tolist() == table.requested[:, :2].tolist()
    assert table.non_zero_floats.tolist() == table.non_zero_requested.tolist()


class Interrupted(BaseException):
    """What Ctrl-C raises, and no handler of mere errors catches."""


@contextmanager
def interrupted(line: int) -> Iterator[None]:
    """Raise where the block is about to execute this line of those that write snapshots, from 1; end the block there.

    Lines are counted as they are executed. The block runs to its end if it executes fewer.
    """
    left = line

    def at_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        left -= event == "line"
        if not left:
            left = -1
            raise Interrupted
        return at_line

    def at_call(frame: FrameType, _event: str, _argument: object) -> Any:
        return at_line if frame.f_code.co_filename.startswith(_WRITERS) else None

    before = sys.gettrace()
    sys.settrace(at_call)
    try:
        yield
    except Interrupted:
        pass
    finally:
        sys.settrace(before)
