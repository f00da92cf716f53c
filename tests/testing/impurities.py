"""Plugins that say that they are pure and aren't, of each kind once, with the checks that find them.

docs/generate_impurities.py makes the table of the documentation from them, and test_impurities.py holds it.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from kschedfw import CycleState, Handle, NodeInfo, Plugin, Pod, StateKey, hookimpl

PURE: Final = "pure_hooks_depend_on_their_arguments_alone"
BEFORE: Final = "pure_hooks_before_filter_and_score_depend_on_the_pod_alone"
WAYS: Final = "every_evaluation_gives_the_same_answers_while_the_cluster_changes"
CHANCE: Final = "two_instances_with_the_same_seed_and_clock_agree"
ELSEWHERE: Final = "another_hash_seed_and_time_zone_change_no_answer"


@attrs.frozen
class Impurity:
    """A planted impurity, and which checks find it."""

    kind: str
    plugin: type[Plugin[Any]]
    check: str
    """The contract's test that finds it, without `test_`."""
    is_found_running: bool
    """Whether a scheduler that runs finds it after a few comparisons."""
    in_mypy: str
    """The end of the error of the mypy plugin; empty if it finds nothing."""


IMPURITIES: list[Impurity] = []


def planted(
    kind: str, *, check: str, running: bool, mypy: str = ""
) -> Callable[[type[Plugin[Any]]], type[Plugin[Any]]]:
    """Remember the plugin as an impurity."""

    def remember(plugin: type[Plugin[Any]]) -> type[Plugin[Any]]:
        plugin.name = plugin.__name__
        IMPURITIES.append(Impurity(kind, plugin, check, running, mypy))
        return plugin

    return remember


@planted(
    "counts its calls in an attribute",
    check=PURE,
    running=True,
    mypy='changes "calls" of the plugin',
)
class CountsCalls(Plugin):
    pure = True
    calls = 0

    @hookimpl
    def score(self) -> int:
        self.calls += 1  # type: ignore[kschedfw]
        return self.calls % 101


@planted("reads an attribute that another hook changes", check=PURE, running=True)
class FollowsReservations(Plugin):
    pure = True
    reserved = 0

    @hookimpl
    def score(self) -> int:
        return self.reserved % 101

    @hookimpl
    def reserve(self) -> None:
        self.reserved += 1

    @hookimpl
    def unreserve(self) -> None:
        self.reserved -= 1


@planted("asks the cluster by the handle", check=PURE, running=True, mypy="asks the handle")
class CountsAllPods(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return len(self.handle.cluster.list(Pod)) % 101  # type: ignore[kschedfw]


@planted("reads another node by a snapshot that it has kept", check=WAYS, running=True)
class LooksAtTheFirstNode(Plugin):
    pure = True

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._kept = handle.snapshot

    @hookimpl
    def score(self) -> int:
        return sum(len(each.pods) for each in self._kept.node_infos[:1]) % 101


@planted("asks the handle's clock", check=PURE, running=True, mypy="asks the handle")
class AsksTheClock(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return int(self.handle.clock.now()) % 101  # type: ignore[kschedfw]


@planted("reads the wall clock", check=CHANCE, running=True, mypy="reads the clock")
class ReadsTheClock(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return time.time_ns() // 1000 % 101  # type: ignore[kschedfw]


@planted(
    "draws from the global random generator",
    check=CHANCE,
    running=True,
    mypy="reads a random generator that the scheduler doesn't seed",
)
class DrawsLots(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return random.randrange(101)  # type: ignore[kschedfw]


@planted("reads the environment", check=PURE, running=False, mypy="reads the environment")
class ReadsTheEnvironment(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return len(os.environ.get("FAVOUR", "")) % 101  # type: ignore[kschedfw]


@planted("reads a file", check=PURE, running=False, mypy="reads a file")
class ReadsAFile(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        with open(__file__, encoding="utf-8") as file:  # type: ignore[kschedfw]  # noqa: PTH123
            return len(file.readline()) % 101


@planted("reads a file by a function that it calls", check=PURE, running=False)
class ReadsAFileElsewhere(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return len(_weights()) % 101


def _weights() -> str:
    return Path(__file__).read_text(encoding="utf-8")


@planted(
    "keeps values in a default argument",
    check=PURE,
    running=True,
    mypy='shares the default of "seen" with all calls',
)
class RemembersInADefault(Plugin):
    pure = True

    @hookimpl
    def score(self, pod: Pod, seen: list[str] = []) -> int:  # type: ignore[kschedfw]  # noqa: B006
        seen.append(pod.name)
        return len(seen) % 101


_SEEN: dict[str, int] = {}


@planted(
    "keeps values in a dict of the module",
    check=PURE,
    running=True,
    mypy='changes "_SEEN" of the module',
)
class RemembersInTheModule(Plugin):
    pure = True

    @hookimpl
    def score(self, pod: Pod) -> int:
        _SEEN[pod.namespace] = _SEEN.get(pod.namespace, 0) + 1  # type: ignore[kschedfw]
        return _SEEN[pod.namespace] % 101


def _counting() -> Callable[[], int]:
    numbers: Iterator[int] = itertools.count()
    return lambda: next(numbers)


_NEXT = _counting()


@planted("counts in a closure", check=PURE, running=True)
class CountsInAClosure(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return _NEXT() % 101


@planted("takes the first item of a set", check=ELSEWHERE, running=False)
class TakesOneOfASet(Plugin):
    pure = True

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        # Two hash seeds have one answer in a hundred in common, and hardly those about each pod on each node.
        return int(next(iter({f"{pod.name} {node_info.name} {index}" for index in range(100)})).split()[-1])


@planted(
    "hashes a text",
    check=ELSEWHERE,
    running=False,
    mypy="reads the hash seed of the process",
)
class HashesTheName(Plugin):
    pure = True

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return hash(f"{pod.name} {node_info.name}") % 101  # type: ignore[kschedfw]


@planted(
    "reads where an object is in memory",
    check=CHANCE,
    running=True,
    mypy="reads where an object is in memory",
)
class ReadsTheMemory(Plugin):
    pure = True

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return id(node_info) // 16 % 101  # type: ignore[kschedfw]


@planted("reads which thread it runs on", check=PURE, running=False, mypy="reads the thread")
class ReadsTheThread(Plugin):
    pure = True

    @hookimpl
    def score(self) -> int:
        return len(threading.current_thread().name) % 101  # type: ignore[kschedfw]


ALLOWED: Final = StateKey[int]("LooksUpBefore.allowed")


@planted("asks the cluster in pre_filter", check=BEFORE, running=True, mypy="asks the handle")
class LooksUpBefore(Plugin):
    pure = True

    @hookimpl
    def pre_filter(self, state: CycleState) -> None:
        state.write(ALLOWED, len(self.handle.cluster.list(Pod)))  # type: ignore[kschedfw]

    @hookimpl
    def score(self, state: CycleState) -> int:
        return state.read(ALLOWED) % 101
