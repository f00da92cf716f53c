"""A plugin that makes room in the whole cluster, not on a node: `python licences.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EnabledPlugin,
    EventResource,
    FieldError,
    InMemoryCluster,
    NodeInfo,
    Plugin,
    Pod,
    PodInfo,
    PostFilterResult,
    Profile,
    QueueingHint,
    Registry,
    Scheduler,
    StateKey,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock

LICENCE = "example.com/licence"
"""The label of pods that need a licence; its value is the licence's name."""


@attrs.frozen
class LicencesArgs:
    """The number of pods in the cluster that may have each licence at a time."""

    counts: Mapping[str, int]

    def validate(self) -> Sequence[FieldError]:
        return [
            FieldError.invalid(f"counts.{name}", count, "must be at least 1")
            for name, count in self.counts.items()
            if count < 1
        ]


# The uids of the pods that have, or are promised, the licence that the pod wants. A frozenset that is replaced needs
# no `clone`: a trial on a copy of the state can't change it.
HOLDERS = StateKey[frozenset[str]]("Licences.holders")


class Licences(Plugin[LicencesArgs]):
    """Lets so many pods have a licence at a time, wherever they are; more important pods take one over."""

    name = "Licences"
    args_type = LicencesArgs

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        licence = pod.labels.get(LICENCE)
        if licence is None:
            return Status.skip()
        if licence not in self.args.counts:
            return Status.unresolvable(f"there is no licence {licence}")
        holders = {each.pod.uid for info in nodes for each in info.pods if _wants(each, licence)}
        # A licence that was made free for a nominated pod is its own, wherever the others might go.
        promised = {
            each.pod.uid
            for each in self.handle.nominator.nominated_pods()
            if _wants(each, licence) and each.pod.priority >= pod.priority
        }
        state.write(HOLDERS, frozenset(holders | promised) - {pod.uid})
        return None

    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, pod: Pod, pod_info_to_add: PodInfo) -> None:
        if _wants(pod_info_to_add, pod.labels[LICENCE]):
            state.write(HOLDERS, state.read(HOLDERS) | {pod_info_to_add.pod.uid})

    @hookimpl
    def pre_filter_remove_pod(self, state: CycleState, pod_info_to_remove: PodInfo) -> None:
        state.write(HOLDERS, state.read(HOLDERS) - {pod_info_to_remove.pod.uid})

    @hookimpl
    def filter(self, state: CycleState, pod: Pod) -> Status | None:
        licence = pod.labels[LICENCE]
        if len(state.read(HOLDERS)) < self.args.counts[licence]:
            return None
        return Status.unschedulable(f"no licence {licence} was free")

    @hookimpl
    def post_filter(self, state: CycleState, pod: Pod) -> tuple[PostFilterResult | None, Status | None]:
        """Evict the least important holder, on whichever node it is, if some node takes the pod then."""
        if HOLDERS not in state or len(state.read(HOLDERS)) < self.args.counts[pod.labels[LICENCE]]:
            return None, Status.unschedulable("the licence isn't what is missing")
        infos = self.handle.snapshot.node_infos
        holders = [(each, info) for info in infos for each in info.pods if _wants(each, pod.labels[LICENCE])]
        if any(each.pod.is_terminating for each, _ in holders):
            return None, Status.unschedulable("a licence is being given back")
        less_important = [each for each in holders if each[0].pod.priority < pod.priority]
        if not less_important:
            return None, Status.unschedulable("no less important pod has the licence")
        victim, home = min(less_important, key=lambda each: (each[0].pod.priority, each[0].pod.key))
        node = self._node_without(state, pod, victim, home)
        if node is None:
            return None, Status.unschedulable("no node would take the pod with the licence")
        self.handle.evict([victim.pod], preemptor=pod, node_name=node, plugin=self.name)
        return PostFilterResult.nominate(node), None

    def _node_without(self, state: CycleState, pod: Pod, victim: PodInfo, home: NodeInfo) -> str | None:
        """Return the first node that passes all filters once the victim has left its own."""
        trial, emptier = state.clone(), home.clone()
        emptier.remove_pod(victim.pod)
        framework = self.handle.framework
        if not framework.run_pre_filter_remove_pod(trial, pod, victim, emptier).is_success:
            return None
        for info in self.handle.snapshot.node_infos:
            place = emptier if info is home else info
            if framework.run_filter_plugins_with_nominated_pods(trial, pod, place).is_success:
                return info.name
        return None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        leaving = ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        return [
            ClusterEvent(EventResource.POD, leaving, self._after_a_licence_was_given_back),
            # With their node, its pods leave the snapshot.
            ClusterEvent(EventResource.NODE, ActionType.DELETE),
        ]

    def _after_a_licence_was_given_back(
        self, waiting: Pod, old: object | None, new: object | None
    ) -> QueueingHint:
        if isinstance(new, Pod) and new.uid == waiting.uid:
            return QueueingHint.QUEUE
        had = isinstance(old, Pod) and old.labels.get(LICENCE) == waiting.labels.get(LICENCE)
        return QueueingHint.QUEUE if had else QueueingHint.SKIP


def _wants(info: PodInfo, licence: str) -> bool:
    return info.pod.labels.get(LICENCE) == licence


def main() -> None:
    registry = Registry()
    registry.register(Licences)
    # Before DefaultPreemption, which looks for victims on the pod's own node.
    profile = Profile(
        [EnabledPlugin("Licences"), *default_profile().multi_point],
        args={"Licences": LicencesArgs({"solver": 1})},
    )
    cluster = InMemoryCluster(
        [make_node("a").capacity(cpu=4).build(), make_node("b").capacity(cpu=4).labels(gpu="yes").build()]
    )
    clock = FakeClock()
    scheduler = Scheduler(cluster, [profile], registry=registry, clock=clock)
    told = 0

    def work(what: str) -> None:
        nonlocal told
        scheduler.run_until_idle()
        print(what)
        for event in cluster.events[told:]:
            print(f"  {event.regarding}: {event.reason}: {event.message.partition(', no new claims')[0]}")
        told = len(cluster.events)

    licensed = {LICENCE: "solver"}
    cluster.add(make_pod("nightly").uid("nightly").labels(licensed).requests(cpu=1).node("a").build())
    urgent = make_pod("urgent").uid("urgent").labels(licensed).requests(cpu=1).priority(1000)
    cluster.add(urgent.node_selector(gpu="yes").build())
    work("the only licence is in use on node a, and a more important pod needs it on node b")
    cluster.add(make_pod("nightly").uid("nightly-2").labels(licensed).requests(cpu=1).build())
    work("the pod that lost it is made again")
    cluster.delete(urgent.build())
    clock.advance(10)
    work("the important pod has ended")
    scheduler.close()


if __name__ == "__main__":
    main()
