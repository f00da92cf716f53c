"""A small trace, the real one, and a way to run the command without other processes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kschedfw_lab.openb import POD_COLUMNS
from kschedfw_lab.packing import __main__ as command
from kschedfw_lab.packing.workload import NODES, PODS, Trace, read_trace
from kschedfw_lab.sweep.engine import Engine

KINDS_OF_NODES = ("96000,393216,8,G2", "96000,393216,8,G2", "104000,524288,2,T4", "32000,262144,0,")
KINDS_OF_PODS = (
    *("12000,49152,1,1000,,LS", "8000,30517,1,500,,BE", "4000,15258,1,460,,LS", "10000,20000,0,0,,BE"),
    *("11300,47104,1,1000,,LS", "3152,5600,1,320,,BE", "6000,12288,2,1000,,LS", "64200,262144,8,1000,,LS"),
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a trace of twelve machines and eight pods."""
    nodes = [f"node-{number},{KINDS_OF_NODES[number % 4]}" for number in range(12)]
    pods = [f"pod-{number},{kind},Running,0,10,0" for number, kind in enumerate(KINDS_OF_PODS)]
    (tmp_path / NODES).write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *nodes]))
    (tmp_path / PODS).write_text("\n".join([",".join(POD_COLUMNS), *pods]))
    return tmp_path


@pytest.fixture
def trace(directory: Path) -> Trace:
    return read_trace(directory / NODES, directory / PODS)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are done by a thread, so that what a test has changed here holds for them, too."""

    @contextmanager
    def engine_of(options: Namespace, distributions: Sequence[str]) -> Iterator[Engine]:
        with ThreadPoolExecutor(1) as executor:
            yield Engine(executor, 1, "this process")

    monkeypatch.setattr(command, "engine_of", engine_of)
