"""The pools in reach of nodes are found, and numbered, whichever thread asks first."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from device_world import DRIVER, made
from kschedfw_devices.dynamic_resources.inventory import Inventory, PublishedSlice

from kschedfw.api import Node, ResourceSlice
from kschedfw.testing.waiting import PATIENCE


@pytest.fixture
def _threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_threads_take_turns_often")
def test_threads_that_ask_at_once_give_no_number_to_two_reaches() -> None:
    names = [f"n{number}" for number in range(100)]
    slices = []
    for name in names:
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": [{"name": "d"}]}
        published = made("ResourceSlice", name, spec=spec)
        assert isinstance(published, ResourceSlice)
        slices.append(PublishedSlice(published))
    nodes = [node for node in (made("Node", name) for name in names) if isinstance(node, Node)]
    with ThreadPoolExecutor(8) as threads:
        start(threads, 8)
        for _ in range(10):
            inventory = Inventory(slices)
            reaches = list(threads.map(inventory.on, nodes))
            assert {reach.number for reach in reaches} == set(range(len(nodes)))
            assert all(inventory.reach(reach.number) is reach for reach in reaches)


def start(threads: ThreadPoolExecutor, count: int) -> None:
    """Start one thread after the other: coverage sets a trace function in each, and Python 3.11 refuses two at once."""
    go_on = threading.Event()

    def stay(begun: threading.Event) -> None:
        begun.set()
        go_on.wait(PATIENCE)

    for _ in range(count):
        begun = threading.Event()
        threads.submit(stay, begun)
        assert begun.wait(PATIENCE)
    go_on.set()
