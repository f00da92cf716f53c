"""A small world on a shared state: schedulers that choose any place that fits, in any order, and may crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import combinations, permutations, product

import attrs
from kschedfw_lab.cell.local_copy import LocalCopy
from kschedfw_lab.cell.shared_state import Claim, CommitMode, Detection, SharedState

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod
from kschedfw.cluster import EventType, WatchEvent

Action = tuple[str, int, tuple[tuple[str, str], ...]]
"""What (sync one change, decide, commit, crash), which scheduler, and for a decision the places by pod."""


_NODES = [make_node(f"n{index}").build() for index in range(4)]
_PODS = [make_pod(f"p{index}").build() for index in range(16)]


class Slots:
    """A FitCheck: each node takes so many pods."""

    def __init__(self, truth: InMemoryCluster, slots: int) -> None:
        self._slots = slots
        self._on: dict[str, set[str]] = {}
        truth.journal(self._follow)

    def reserve(self, pod: Pod, node_name: str) -> str:
        on = self._on.setdefault(node_name, set())
        if len(on) >= self._slots:
            return "the node is full"
        on.add(pod.uid)
        return ""

    def release(self, pod: Pod, node_name: str) -> None:
        self._on[node_name].discard(pod.uid)

    def _follow(self, event: WatchEvent) -> None:
        pod = event.object
        if isinstance(pod, Pod) and pod.node_name:
            on = self._on.setdefault(pod.node_name, set())
            (on.discard if event.type is EventType.DELETED else on.add)(pod.uid)


@attrs.define
class Actor:
    """One of the schedulers: its copy, and what it has decided and not committed."""

    copy: LocalCopy
    decision: tuple[Claim, ...] = ()


class SharedWorld:
    """Some schedulers, nodes with the same number of slots, and pods that anybody may place."""

    def __init__(
        self,
        *,
        schedulers: int = 2,
        nodes: int = 2,
        pods: int = 3,
        slots: int = 2,
        most_claims: int = 1,
        detection: Detection = Detection.FINE,
        mode: CommitMode = CommitMode.INCREMENTAL,
        checks: bool = True,
    ) -> None:
        self.slots, self.most_claims, self.detection, self.mode = slots, most_claims, detection, mode
        self.time = 0.0
        self.truth = InMemoryCluster()
        for node in _NODES[:nodes]:
            self.truth.add(node)
        self.uids = [self.truth.add(pod).uid for pod in _PODS[:pods]]
        self.bound: Counter[str] = Counter()
        self.times: list[float] = []
        self.state = SharedState(self.truth, Slots(self.truth, slots), checks=checks)
        self.truth.journal(self._note)
        self.actors = [Actor(self._new_copy()) for _ in range(schedulers)]

    def _new_copy(self) -> LocalCopy:
        return LocalCopy(self.state, now=lambda: self.time, detection=self.detection)

    def _note(self, event: WatchEvent) -> None:
        self.times.append(self.time)
        new, old = event.object, event.old
        if isinstance(new, Pod) and isinstance(old, Pod) and new.node_name and not old.node_name:
            self.bound[new.uid] += 1

    # --- what may happen ---

    def actions(self) -> Iterator[Action]:
        for index, actor in enumerate(self.actors):
            if actor.copy.lag:
                yield "sync", index, ()
            if actor.decision:
                yield "commit", index, ()
            else:
                yield from (("decide", index, places) for places in self._decisions(actor.copy))
            if actor.decision or actor.copy.lag:
                yield "crash", index, ()

    def _decisions(self, copy: LocalCopy) -> Iterator[tuple[tuple[str, str], ...]]:
        """Every way to place some of the pending pods such that they fit, as far as the copy knows."""
        taken = Counter(pod.node_name for pod in copy.list(Pod) if pod.node_name)
        pending = [pod.key for pod in copy.list(Pod) if not pod.node_name]
        names = [node.name for node in copy.list(Node)]
        for size in range(1, self.most_claims + 1):
            for chosen in combinations(pending, size):
                for where in product(names, repeat=size):
                    if all((taken + Counter(where))[name] <= self.slots for name in where):
                        yield tuple(zip(chosen, where, strict=True))

    def do(self, action: Action) -> None:
        what, index, places = action
        actor = self.actors[index]
        self.time += 1
        if what == "sync":
            oldest = self.times[-actor.copy.lag]
            actor.copy.delay = self.time - oldest
            actor.copy.sync()
        elif what == "decide":
            copy = actor.copy
            found = [(copy.get(Pod, key), node_name) for key, node_name in places]
            actor.decision = tuple(
                Claim(pod, node_name, copy.sequence(node_name)) for pod, node_name in found if pod is not None
            )
        elif what == "commit":
            claims, actor.decision = actor.decision, ()
            actor.copy.commit(claims, self.mode)
        else:
            actor.copy.close()
            self.actors[index] = Actor(self._new_copy())

    # --- what is seen, and what must hold ---

    def fingerprint(self) -> Hashable:
        """Schedulers, nodes and pods are alike, so what differs in their names only is the same."""
        names = [f"n{index}" for index in range(len(self.truth.list(Node)))]
        truth = {pod.uid: pod.node_name for pod in self.truth.list(Pod)}
        copies = [{pod.uid: pod.node_name for pod in actor.copy.list(Pod)} for actor in self.actors]
        to_come = [[uid for uid in self.bound if not copy[uid]] for copy in copies]  # in the order of binding
        seen = []
        for order in permutations(names):
            label = {"": -1, **{name: number for number, name in enumerate(order)}}
            rows = []
            for uid in self.uids:
                decided = tuple(
                    tuple(label[claim.node_name] for claim in actor.decision if claim.pod.uid == uid)
                    for actor in self.actors
                )
                known = tuple(
                    (label[copy[uid]], coming.index(uid) if uid in coming else -1)
                    for copy, coming in zip(copies, to_come, strict=True)
                )
                rows.append((label[truth[uid]], known, decided))
            ages = []
            for actor in self.actors:
                age = tuple(self.state.sequence(name) - actor.copy.sequence(name) for name in order)
                stale = tuple(
                    sorted(
                        (label[c.node_name], self.state.sequence(c.node_name) - c.sequence)
                        for c in actor.decision
                    )
                )
                ages.append((actor.copy.lag, age, stale))
            seen.append((tuple(sorted(rows)), tuple(ages)))
        return min(seen)

    def check(self) -> None:
        pods = self.truth.list(Pod)
        assert {pod.uid for pod in pods} == set(self.uids), "a pod was lost"
        assert all(count <= 1 for count in self.bound.values()), "a pod was bound twice"
        load = Counter(pod.node_name for pod in pods if pod.node_name)
        assert all(count <= self.slots for count in load.values()), f"overcommitted: {dict(load)}"

    def is_done(self) -> bool:
        """As many pods are bound as there is room for."""
        pods = self.truth.list(Pod)
        return sum(bool(pod.node_name) for pod in pods) == min(
            len(pods), self.slots * len(self.truth.list(Node))
        )
