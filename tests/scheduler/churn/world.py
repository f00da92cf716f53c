"""A cluster in which everything changes, and a scheduler whose every decision is compared with a new scheduler's.

Between two cycles several things change, as in real clusters, where a scheduler is busy while others write. `Churn`
takes turns: some changes, then some decisions, each by the scheduler that has followed all changes and by one that was
just made over the same objects. The decisions with all their texts must be equal, and so must be what has become of the
cluster.

This is another world than that of `tests.scheduler.invariants`: there, plugins make trouble, and so no answer of a
plugin may be kept. Here all plugins are the default ones, and everything is kept that may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import TypeVar

import attrs

from kschedfw import Evaluation, FrozenDict, IntArray, Node, NodeInfo, Pod, VirtualClock, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.pod import PodPhase, PodSchedulingGate
from kschedfw.cluster import ClusterError
from kschedfw.testing.strategies import NAMESPACES
from tests.plugins.storage import claim, storage_class, volume
from tests.scheduler.churn.decisions import Deciding, Decision, Setup
from tests.scheduler.churn.objects import (
    NOBODYS,
    TEAMS,
    Terrain,
    changed_node,
    namespace,
    profiles,
    random_kinds,
    random_node,
)
from tests.scheduler.invariants.flaky import LONG_AGO
from tests.scheduler.invariants.objects import APPS, ZONE, random_budget

T = TypeVar("T")
_MOST_CHANGES = 8
"""The most changes in a turn, but for one turn in twenty, which has three times as many."""
_MOST_DECISIONS = 14
_START = 1_700_000_000.0


@attrs.frozen
class Size:
    """How large a cluster is: numbers of nodes and of pods, which it keeps to about."""

    nodes: int
    pods: int
    arrivals: int
    """The most pods that come in one go."""
    percentages: Sequence[int] = (0,)


SMALL = Size(6, 20, 4)
SAMPLED = Size(104, 150, 12, (0, 5, 30))
"""From 100 nodes on, a search may end early."""
LARGE = Size(275, 300, 12, (0, 40, 100, 100))
"""From 256 nodes on, pods are placed in the compiled pass, if Numba is installed."""


class DecisionsDifferError(AssertionError):
    """The error of a scheduler that decides otherwise than a new one on the same state."""


class Churn:
    """A cluster that changes at random, and its scheduler. The same seed makes the same run."""

    def __init__(self, seed: int, size: Size) -> None:
        self.seed, self.size = seed, size
        self.counts: Counter[str] = Counter()
        """How often each change was made, and each kind of decision."""
        self._random = random = Random(seed)
        self._clock = VirtualClock(_START)
        self._created = 0
        self._log: list[str] = []
        """The changes and decisions of this turn and the last one."""
        percentage = random.choice(size.percentages)
        self._terrain = Terrain(is_scarce=random.random() < 0.6, is_plain=random.random() < 0.7)
        # In many clusters nodes seldom change, and what is kept of them grows old.
        calm = random.random() < 0.5
        self._weights = [
            weight * (0.25 if calm and change in _OF_NODES else 1) for change, weight in _CHANGES.items()
        ]
        self._names = [f"n{index}" for index in range(size.nodes + size.nodes // 4 + 2)]
        storage, claims = self._storage() if random.random() < 0.3 else ([], [])
        self._kinds = random_kinds(random, claims)
        self._kind: Pod | None = None
        """The kind of pods that come in one go, if they are all equal."""
        objects: list[Named] = [*storage, *(namespace(name, random.choice(TEAMS)) for name in NAMESPACES[:2])]
        objects += [self._node(name) for name in self._names[: size.nodes]]
        self._live = Deciding(
            objects,
            Setup(profiles(self._terrain, percentage), self._clock, percentage, bool(storage)),
            Random(seed + 1),
        )
        self._failing = _Failing()
        self._live.scheduler.snapshot.table.listen(self._failing)
        for _ in range(size.pods // 2):
            self.run_elsewhere()

    def run(self, decisions: int) -> Counter[str]:
        """Take turns until so many decisions were compared. Return the counts.

        Raises:
            DecisionsDifferError: two schedulers decide differently; the message says how to repeat it.
        """
        try:
            while self.counts["decisions"] < decisions:
                self.turn()
        except Exception as error:
            told = "\n  ".join(self._log)
            raise DecisionsDifferError(
                f"Churn({self.seed}, {self.size}).run({decisions}), decision {self.counts['decisions']}: "
                f"{type(error).__name__}: {error}\n  {told}"
            ) from error
        finally:
            self._live.close()
        return self.counts

    def turn(self) -> None:
        """Let several things change, then compare the decisions on some pods."""
        random = self._random
        del self._log[: -2 * _MOST_CHANGES]
        most = _MOST_CHANGES * (3 if random.random() < 0.05 else 1)
        for change in random.choices(list(_CHANGES), self._weights, k=random.randint(0, most)):
            self._change(change)
        # Half of the time as from one controller, so that equal pods follow one another.
        self._kind = random.choice([None, random.choice(self._kinds)])
        for _ in range(random.choice([0, 1, self.size.arrivals])):
            self._change(Churn.come)
            if random.random() < 0.7:
                self._change(Churn.stop)
        self._kind = None
        # The new scheduler mostly keeps no answers: it decides several times, since it takes long to make.
        evaluation = random.choices([Evaluation.SCALAR, Evaluation.MEMO], [3, 1])[0]
        new = self._live.renewed(evaluation)
        try:
            for _ in range(random.randint(1, _MOST_DECISIONS)):
                if not self._compare(new):
                    break
            self._compare_states(new)
        finally:
            new.close()

    def _change(self, change: Callable[[Churn], object]) -> None:
        # What others do may be refused, as by an API server: a binding of a pod that is gated, for example.
        try:
            done = change(self)
        except ClusterError as error:
            done = error
        self.counts[change.__name__] += 1
        self._log.append(f"{change.__name__}: {done}")

    def _compare(self, new: Deciding) -> bool:
        """Compare a decision; return False if no pod is pending."""
        live, random = self._live, self._random
        pending = [pod for pod in self._pods() if not pod.node_name and self._is_placeable(pod)]
        if random.random() < 0.7 and (taken := live.take_next()) is not None:
            pod, decision = taken
            expected = new.place(pod)
        elif pending:
            # Mostly a new one, since old ones are those that fit nowhere.
            pod, keep = random.choice(pending[-random.choice([2, 20]) :]), random.random() < 0.6
            decision, expected = live.place(pod, keep=keep), new.place(pod, keep=keep)
        else:
            return False
        self._log.append(f"decision on {pod.key}: {decision.result or decision.text}")
        self.counts["decisions"] += 1
        self._count(decision)
        if decision != expected:
            raise AssertionError(f"{pod.key} is decided differently\n{_difference(decision, expected)}")
        return True

    def _is_placeable(self, pod: Pod) -> bool:
        return not (pod.spec.scheduling_gates or pod.is_terminating or pod.is_terminal)

    def _count(self, decision: Decision) -> None:
        self.counts["placed" if decision.result is not None else "refused"] += 1
        self.counts["preempted"] += bool(decision.evicted)

    def _compare_states(self, new: Deciding) -> None:
        live = self._live
        for what, one, other in (
            ("pods", live.pods(), new.pods()),
            ("nominations", live.nominations(), new.nominations()),
            ("luck", live.random.getstate(), new.random.getstate()),
        ):
            assert one == other, f"{what}: {one} with the changes followed, {other} anew"
        count = max(len(live.cluster.list(Node)), 1)
        starts = [each.algorithm.next_start_node_index % count for each in (live, new)]
        assert starts[0] == starts[1], f"the next search begins at {starts[0]}, anew at {starts[1]}"

    # What there is

    def _nodes(self) -> Sequence[Node]:
        return self._live.cluster.list(Node)

    def _pods(self) -> Sequence[Pod]:
        return self._live.cluster.list(Pod)

    def _any_node(self) -> Node | None:
        return self._any(self._nodes())

    def _any_pod(self, *, bound: bool) -> Pod | None:
        return self._any([pod for pod in self._pods() if bool(pod.node_name) is bound])

    def _any(self, things: Sequence[T]) -> T | None:
        return self._random.choice(things) if things else None

    def _uid(self, name: str) -> str:
        self._created += 1
        return f"{name}-{self._created}"

    def _node(self, name: str) -> Node:
        return random_node(self._random, name, self._uid(name), self._terrain)

    def _new_pod(self) -> Pod:
        kind, name = self._kind or self._random.choice(self._kinds), self._uid("p")
        labels = kind.labels
        if self._random.random() < 0.1:
            labels = FrozenDict({**labels, "app": self._random.choice(APPS), "own": name})
        return kind.with_metadata(attrs.evolve(kind.metadata, name=name, uid=name, labels=labels))

    def _storage(self) -> tuple[list[Named], list[str]]:
        random, names = self._random, [f"c{index}" for index in range(3)]
        objects: list[Named] = [storage_class("wait"), *(claim(name).build() for name in names)]
        for index in range(4):
            made = volume(f"v{index}", storage_class="wait")
            if random.random() < 0.7:
                made.node_affinity_in(ZONE, random.choice("abc"))
            objects.append(made.build())
        return objects, names

    # Changes of nodes

    def join(self) -> str:
        """A node comes, perhaps with the name of one that was there before, and with that one's pods."""
        there = {node.name for node in self._nodes()}
        name = self._any([name for name in self._names if name not in there])
        if name is None:
            return self.leave()
        self._live.cluster.add(self._node(name))
        return name

    def leave(self) -> str:
        """A node goes; its pods stay for now, or most of them."""
        node = self._any_node()
        if node is None or len(self._nodes()) <= self.size.nodes // 2:
            return self.change_node()
        self._live.cluster.delete(node)
        return node.name

    def change_node(self) -> str:
        node = self._any_node()
        if node is None:
            return self.join()
        changed = self._live.cluster.update(changed_node(self._random, node, self._terrain))
        return f"{changed.name} {changed.spec} {changed.labels} {dict(changed.status.allocatable)}"

    def come_back(self) -> str:
        """A node goes and comes back as another one."""
        node = self._any_node()
        if node is None:
            return self.join()
        self._live.cluster.delete(node)
        self._live.cluster.add(self._node(node.name))
        return node.name

    # Changes of pods on nodes

    def run_elsewhere(self) -> str:
        """Somebody else creates a pod on a node, which needn't exist."""
        if len(self._pods()) > 2 * self.size.pods:
            return self._make_room()
        pod = self._new_pod()
        if (name := self._place_of_others(pod)) is None:
            return self._make_room()
        self._live.cluster.add(pod.bound_to(name))
        return f"{pod.key} on {name}"

    def flash(self) -> str:
        """A pod comes to a node and goes, with a resource that perhaps no node has, before anybody looks."""
        node = self._any_node()
        if node is None:
            return self.join()
        name = self._uid("flash")
        # One more that never comes again: a table that has met a resource once has a column for it.
        asked = self._random.sample((*NOBODYS, f"example.com/{name}"), self._random.randint(1, 2))
        pod = make_pod(name).uid(name).labels(app=self._random.choice(APPS)).node(node.name)
        added = self._live.cluster.add(pod.limits(dict.fromkeys(asked, 1)).build())
        if self._random.random() < 0.8:
            self._live.cluster.delete(added)
        # As where a device plugin starts: pods come and go, and the node changes.
        if self._random.random() < 0.4:
            self._live.cluster.update(changed_node(self._random, node, self._terrain))
        return f"{name} on {node.name} with {asked}"

    def bind(self) -> str:
        """Somebody else binds a pending pod, perhaps to a node that doesn't exist."""
        pod = self._any_pod(bound=False)
        if pod is None:
            return self.run_elsewhere()
        if (name := self._place_of_others(pod)) is None:
            return self._make_room()
        self._live.cluster.bind(pod, name)
        return f"{pod.key} to {name}"

    def _make_room(self) -> str:
        pod = self._random.choice(self._pods())
        self._live.cluster.delete(pod)
        return f"{pod.key} makes room"

    def _place_of_others(self, pod: Pod) -> str | None:
        """Return any node, existing or not, for a pod that others bind; None if its host ports are taken on all."""
        # Not one where the pod's host port is taken. As in kube-scheduler, a port that two pods have is free as soon as
        # one of them goes, so it would depend on the past.
        taken = {other.node_name for other in self._pods() if {*other.host_ports} & {*pod.host_ports}}
        return self._any([name for name in self._names if name not in taken])

    def stop(self) -> str:
        pod = self._any_pod(bound=True)
        if pod is None:
            return self.run_elsewhere()
        self._live.cluster.delete(pod)
        return pod.key

    def end(self) -> str:
        """A pod ends by itself, or begins to."""
        pod = self._any_pod(bound=self._random.random() < 0.9)
        if pod is None:
            return self.run_elsewhere()
        if self._random.random() < 0.5:
            phase = self._random.choice([PodPhase.SUCCEEDED, PodPhase.FAILED])
            self._update(pod.with_status(attrs.evolve(pod.status, phase=phase)))
            return f"{pod.key} {phase}"
        self._update(pod.with_metadata(attrs.evolve(pod.metadata, deletion_timestamp=LONG_AGO)))
        return f"{pod.key} begins to"

    def change_pod(self) -> str:
        """A pod gets other labels, other requests, or a start, unless it has ended."""
        pod = self._any_pod(bound=True)
        if pod is None or pod.is_terminal:
            return self.run_elsewhere()
        other = self._random.choice(self._kinds)
        match self._random.randrange(3):
            case 0:
                self._relabel(pod)
            case 1:
                container, *others = pod.spec.containers
                resized = attrs.evolve(container, resources=other.spec.containers[0].resources)
                self._update(attrs.evolve(pod, spec=attrs.evolve(pod.spec, containers=(resized, *others))))
            case _:
                started = attrs.evolve(pod.status, phase=PodPhase.RUNNING, start_time=LONG_AGO)
                self._update(pod.with_status(started))
        return pod.key

    # Changes of pending pods

    def come(self) -> str:
        if len(self._pods()) > 2 * self.size.pods:
            return self._make_room()
        pod = self._new_pod()
        if self._random.random() < 0.05:
            gates = (PodSchedulingGate("example.com/quota"),)
            pod = attrs.evolve(pod, spec=attrs.evolve(pod.spec, scheduling_gates=gates))
        self._live.cluster.add(pod)
        return pod.key

    def give_up(self) -> str:
        pod = self._any_pod(bound=False)
        if pod is None:
            return self.come()
        self._live.cluster.delete(pod)
        return pod.key

    def change_pending(self) -> str:
        """A pending pod gets other labels, another kind's tolerations or requests, or loses its gates."""
        pod = self._any_pod(bound=False)
        if pod is None:
            return self.come()
        other, spec = self._random.choice(self._kinds), pod.spec
        match self._random.randrange(4):
            case 0:
                self._relabel(pod)
                return pod.key
            case 1:
                spec = attrs.evolve(spec, tolerations=(*spec.tolerations, *other.spec.tolerations))
            case 2:
                spec = attrs.evolve(spec, containers=other.spec.containers)
            case _:
                spec = attrs.evolve(spec, scheduling_gates=())
        self._update(attrs.evolve(pod, spec=spec))
        return pod.key

    def nominate(self) -> str:
        """Somebody nominates a pending pod to a node, which needn't exist, or takes that back."""
        pod = self._any_pod(bound=False)
        if pod is None:
            return self.come()
        name = self._random.choice(["", *self._names])
        self._live.cluster.patch_pod_status(pod, nominated_node_name=name)
        return f"{pod.key} to {name!r}"

    def _relabel(self, pod: Pod) -> None:
        labels = FrozenDict({**pod.labels, "app": self._random.choice(APPS)})
        self._update(pod.with_metadata(attrs.evolve(pod.metadata, labels=labels)))

    def _update(self, pod: Pod) -> None:
        self._live.cluster.update(pod)

    # Changes of everything else

    def change_namespace(self) -> str:
        name, team = self._random.choice(NAMESPACES[:2]), self._random.choice(TEAMS)
        self._live.cluster.update(namespace(name, team))
        return f"{name} {team}"

    def change_budget(self) -> str:
        budget = random_budget(self._random)
        present = self._live.cluster.get(type(budget), budget.key)
        if present is None:
            self._live.cluster.add(budget)
        else:
            self._live.cluster.delete(present)
        return budget.key

    def pass_time(self) -> str:
        seconds = self._random.choice([1.0, 12.0, 12.0, 400.0])
        self._clock.advance_to(self._clock.now() + seconds)
        return f"{seconds} s"

    def stumble(self) -> str:
        """The scheduler sees some changes, but a listener of its table fails half-way through them."""
        changes = [Churn.change_node, Churn.stop, Churn.run_elsewhere]
        if self._random.random() < 0.3:
            changes += [Churn.leave, Churn.join]
        told = [change(self) for change in self._random.choices(changes, k=2)]
        scheduler = self._live.scheduler
        self._failing.fails = True
        with suppress(_FailureError):
            scheduler.cache.update_snapshot(scheduler.snapshot)
        self._failing.fails = False
        return ", ".join(told)


class _FailureError(Exception):
    """What a failing listener raises."""


class _Failing:
    """A listener of the table that fails when it is told to."""

    fails = False

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:
        if self.fails:
            raise _FailureError

    def rows_moved(self, moved_from: IntArray, gone: Sequence[NodeInfo], added: Sequence[NodeInfo]) -> None:
        if self.fails:
            raise _FailureError

    def table_rebuilt(self) -> None:
        """It knows nothing."""


_CHANGES: Mapping[Callable[[Churn], str], float] = {
    Churn.join: 2,
    Churn.leave: 2,
    Churn.come_back: 1,
    Churn.change_node: 7,
    Churn.run_elsewhere: 3,
    Churn.flash: 1.5,
    Churn.bind: 2,
    Churn.stop: 5,
    Churn.end: 2,
    Churn.change_pod: 3,
    Churn.come: 8,
    Churn.give_up: 2,
    Churn.change_pending: 2,
    Churn.nominate: 1,
    Churn.change_namespace: 0.7,
    Churn.change_budget: 0.5,
    Churn.pass_time: 3,
    Churn.stumble: 0.8,
}
"""The changes with their weights."""
_OF_NODES = (Churn.join, Churn.leave, Churn.come_back, Churn.change_node, Churn.stumble)


def _difference(decision: Decision, expected: Decision) -> str:
    """Return what differs of two decisions, a line each."""
    lines = []
    for field in attrs.fields(Decision):
        followed, anew = getattr(decision, field.name), getattr(expected, field.name)
        if followed != anew:
            lines.append(f"    {field.name}: {followed!r}\n    by a new scheduler: {anew!r}")
    return "\n".join(lines)
