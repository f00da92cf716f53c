"""The stage of a check: a cluster, its snapshot, a clock that stands still, and a new instance of the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import attrs

from kschedfw import CycleState, InMemoryCluster, Node, NodeInfo, Pod, Snapshot, Status
from kschedfw.api.objects import to_manifest
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.waiting_pods import WaitingPod
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.plugin_contract.asking import Asker
from kschedfw.testing.plugin_contract.subject import Subject, concerns
from kschedfw.testing.plugin_contract.world import World


@attrs.frozen(eq=False)
class PlacedPod:
    """A pod, its chosen node, and the state of its cycle."""

    pod: Pod
    node_name: str
    state: CycleState


class PluginStage:
    """A new instance of the plugin with nodes and pods; stages share nothing.

    `pods` are the pending pods.
    """

    def __init__(self, subject: Subject, objects: Iterable[Node | Pod]) -> None:
        self.cluster = InMemoryCluster([*subject.objects, *objects])
        self.snapshot = Snapshot.of(self.cluster.list(Node), self.cluster.list(Pod))
        self.pods = tuple(pod for pod in self.cluster.list(Pod) if not pod.node_name)
        self.clock = FakeClock(subject.start_time.timestamp())
        self.nominator = Nominator()
        self.framework = subject._framework(
            self.cluster, self.snapshot, clock=self.clock, nominator=self.nominator
        )
        self.name = subject._name
        self.hooks = Asker(self.framework, self.name)

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        return self.snapshot.node_infos

    # The steps of a cycle

    def begin(self, pod: Pod) -> CycleState | None:
        """Return the state after pre_filter; None if the cycle ends there."""
        # Asked by itself first, so that an exception or an answer of the wrong type is reported as a
        # violation: the framework makes an error of it, which here only ends the cycle.
        self.hooks.pre_filter(CycleState(), pod, self.nodes)
        state = CycleState()
        _, status, _ = self.framework.run_pre_filter_plugins(state, pod)
        return state if status.is_success else None

    def verdicts(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo] | None = None
    ) -> dict[str, Status]:
        """Return the statuses of filter for the nodes (None: all); empty if pre_filter skipped it."""
        if self.name in state.skip_filter_plugins:
            return {}
        nodes = self.nodes if nodes is None else nodes
        return {info.name: self.hooks.status("filter", state, pod, info) for info in nodes}

    def feasible(self, state: CycleState, pod: Pod) -> list[NodeInfo]:
        verdicts = self.verdicts(state, pod)
        return [info for info in self.nodes if info.name not in verdicts or verdicts[info.name].is_success]

    def begin_scoring(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> bool:
        """Run pre_score; return False if the plugin doesn't score."""
        # By itself first, as in `begin`.
        self.hooks.status("pre_score", state.clone(), pod, nodes)
        status = self.framework.run_pre_score_plugins(state, pod, nodes)
        return status.is_success and bool(nodes) and self.name not in state.skip_score_plugins

    def place(self, pod: Pod) -> PlacedPod | None:
        """Choose the first feasible node; return None if there is none."""
        state = self.begin(pod)
        nodes = [] if state is None else self.feasible(state, pod)
        if state is None or not nodes:
            return None
        if self.begin_scoring(state, pod, nodes):
            self.framework.run_score_plugins(state, pod, nodes)
        return PlacedPod(pod.bound_to(nodes[0].name), nodes[0].name, state)

    def reserve(self, pod: Pod) -> PlacedPod | None:
        """Choose a node and reserve; return None, after unreserve, if either fails."""
        placed = self.place(pod)
        if placed is None:
            return None
        if self.hooks.status("reserve", placed.state, placed.pod, placed.node_name).is_success:
            return placed
        self.unreserve(placed)
        return None

    def permit(self, placed: PlacedPod) -> Status:
        """Run permit; a pod that has to wait is then among the waiting pods."""
        status = self.hooks.status("permit", placed.state, placed.pod, placed.node_name)
        if status.is_wait and status.timeout is not None:
            waiting = WaitingPod(placed.pod, {self.name: status.timeout}, self.clock)
            self.framework.waiting_pods.add(waiting)
        return status

    def hold(self, pod: Pod) -> PlacedPod | None:
        """Choose a node, reserve and permit; return None, after unreserve, if one of them fails."""
        placed = self.reserve(pod)
        if placed is not None:
            status = self.permit(placed)
            if status.is_success or status.is_wait:
                return placed
            self.unreserve(placed)
        return None

    def unreserve(self, placed: PlacedPod) -> None:
        self.framework.waiting_pods.remove(placed.pod.uid)
        self.hooks.answer("unreserve", placed.state, placed.pod, placed.node_name)

    # Observations

    def answers(self, pod: Pod) -> dict[str, object]:
        """Return all answers of the plugin for a pod, up to scores."""
        found: dict[str, object] = {"pre_enqueue": _brief(self.hooks.status("pre_enqueue", pod))}
        answer = self.hooks.pre_filter(CycleState(), pod, self.nodes)
        found["pre_filter"] = _brief(answer) if isinstance(answer, Status) else answer
        state = self.begin(pod)
        if state is None:
            return found
        found["filter"] = {name: _brief(status) for name, status in self.verdicts(state, pod).items()}
        nodes = self.feasible(state, pod)
        if self.begin_scoring(state, pod, nodes):
            for info in nodes:
                self.hooks.answer("score", state, pod, info)
            scores, status = self.framework.run_score_plugins(state, pod, nodes)
            own = None if scores is None else scores.by_plugin.get(self.name)
            found["score"] = _brief(status) if own is None else (own.raw.tolist(), own.normalized.tolist())
        return found

    def books(self) -> dict[str, object]:
        """Return the plugin's reservations for pods, as far as its answers for further pods show them."""
        found: dict[str, object] = {}
        reserved: list[PlacedPod] = []
        for pod in self.pods:
            found |= {f"{hook} of {pod.name}": answer for hook, answer in self.answers(pod).items()}
            placed = self.reserve(pod)
            found[f"reserve of {pod.name}"] = placed is not None
            if placed is not None:
                found[f"permit of {pod.name}"] = _brief(self.permit(placed))
                reserved.append(placed)
        for placed in reversed(reserved):
            self.unreserve(placed)
        return found

    def surroundings(self) -> Mapping[str, object]:
        """Return everything that filters and scores must not change, by name; to be compared with a later result."""
        table = self.snapshot.table
        return {
            "the order of the snapshot's nodes": [id(info) for info in self.nodes],
            **{f"the NodeInfo of {info.name}": _looks(info) for info in self.nodes},
            "the columns of the NodeTable": [
                column.tolist()
                for column in (table.allocatable, table.requested, table.pod_counts, table.unschedulable)
            ],
            **{f"the pod {pod.name}": to_manifest(pod) for pod in self.pods},
            "the objects in the cluster": self.cluster.resource_version,
            "the cluster's events": len(self.cluster.events),
            "the nominations": self.nominator.version,
            "the waiting pods": [waiting.pod.uid for waiting in self.framework.waiting_pods],
        }


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Return the name of the first difference; empty if there is none."""
    return next((name for name in (*before, *after) if before.get(name) != after.get(name)), "")


def _brief(status: Status) -> object:
    return str(status.code), status.reasons


def _looks(info: NodeInfo) -> object:
    copy = info.clone()
    return (
        *(getattr(copy, field.name) for field in attrs.fields(NodeInfo) if field.name != "used_ports"),
        copy.used_ports.taken(),
        to_manifest(copy.node),
    )


NewStage: TypeAlias = Callable[[], PluginStage]
"""A function that makes stages of one generated world."""

SubjectT = TypeVar("SubjectT", bound=Subject)


def on_stages(*hooks: str) -> Callable[[Callable[[SubjectT, NewStage], None]], Callable[[SubjectT], None]]:
    """Make a test of a check that is run with stages of each generated world.

    With `hooks` the test is limited to plugins with at least one of them.
    """

    def as_test(check: Callable[[SubjectT, NewStage], None]) -> Callable[[SubjectT], None]:
        def test(subject: SubjectT) -> None:
            run_on_stages(subject, partial(check, subject))

        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        return concerns(*hooks)(test) if hooks else test

    return as_test


def run_on_stages(subject: Subject, check: Callable[[NewStage], None]) -> None:
    """Run the check with a function that makes stages of the same generated world."""

    def in_this(world: World) -> None:
        objects = _objects_of(world)
        check(lambda: PluginStage(subject, objects))

    subject._in_worlds(in_this)


def stage_of(subject: Subject, world: World) -> PluginStage:
    """Return the stage on which checks are run in the world."""
    return PluginStage(subject, _objects_of(world))


def _objects_of(world: World) -> Sequence[Node | Pod]:
    for _ in range(4):
        world.change()
    return [*world.objects(), *world.pending()]
