"""Plugins for the benchmark's tests."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from kschedfw import NodeInfo, Plugin, Pod, Reads, hookimpl
from kschedfw.framework.nodes.arrays import IntArray


class Silent(Plugin):
    """Says nothing of what it reads."""

    name = "Silent"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> None:
        pass


class Open(Plugin):
    """Says all that there is to say."""

    name = "Open"
    reads = Reads.NODE

    def sign(self, pod: Pod) -> Hashable:
        return ()

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return 0

    @hookimpl
    def score_batch(self, rows: IntArray) -> IntArray:
        return np.zeros(len(rows), dtype=np.int64)


class Choosy(Plugin):
    """Signs some pods, and reads more than nodes."""

    name = "Choosy"
    reads = Reads.PODS

    def sign(self, pod: Pod) -> Hashable | None:
        return () if pod.name.startswith("initial") else None

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> None:
        pass


class Fickle(Plugin):
    """Says something else of a node for every pod, and nothing of what it reads."""

    name = "Fickle"

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return sum(map(ord, pod.name + node_info.node.name)) % 101


class Broken(Plugin):
    name = "Broken"

    @hookimpl
    def filter(self, pod: Pod) -> None:
        raise RuntimeError("no idea")


class Noting(Plugin):
    """Notes the pods that it is asked about, in the order of their first attempts."""

    name = "Noting"
    asked: ClassVar[dict[str, None]] = {}

    @hookimpl
    def pre_filter(self, pod: Pod) -> None:
        self.asked[pod.name] = None
