"""A plugin that gives out floating licences, and takes them back: `python licences.py`."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw import (
    ActionType,
    ClusterEvent,
    EnabledPlugin,
    EventResource,
    Handle,
    InMemoryCluster,
    Plugin,
    Pod,
    Profile,
    QueueingHint,
    Registry,
    Scheduler,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock

NEEDS = "example.com/licence"
"""The label of pods that need a licence."""


@attrs.frozen
class LicencesArgs:
    keys: tuple[str, ...]


class Licences(Plugin[LicencesArgs]):
    """Gives each pod that needs it a licence key of its own; any node will do, but there are only so many keys."""

    name = "Licences"
    args_type = LicencesArgs

    def __init__(self, args: LicencesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._holders: dict[str, str] = {}
        """The uid of the pod that has it, by key. It may be one that has left the cluster since."""

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        if NEEDS not in pod.labels:
            return Status.skip()
        if not self._free_keys():
            # Not `unschedulable`: preemption would look at nodes, and evict pods that have no licence to give back.
            return Status.unresolvable("no licence was free")
        return None

    @hookimpl
    def reserve(self, pod: Pod) -> None:
        if NEEDS in pod.labels:
            self._holders[self._free_keys()[0]] = pod.uid

    @hookimpl
    def unreserve(self, pod: Pod) -> None:
        self._holders = {key: uid for key, uid in self._holders.items() if uid != pod.uid}

    @hookimpl
    def post_bind(self, pod: Pod) -> None:
        for key, uid in self._holders.items():
            if uid == pod.uid:
                self.handle.cluster.record_event(pod, "Normal", "Licensed", f"has the licence {key}")

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, self._after_a_pod_has_left)]

    def _free_keys(self) -> Sequence[str]:
        present = {pod.uid for pod in self.handle.cluster.list(Pod)}
        return [key for key in self.args.keys if self._holders.get(key) not in present]

    def _after_a_pod_has_left(self, _waiting: Pod, old: object | None, _new: object | None) -> QueueingHint:
        had_one = isinstance(old, Pod) and NEEDS in old.labels
        return QueueingHint.QUEUE if had_one else QueueingHint.SKIP


class Budget(Plugin):
    """A plugin behind Licences that refuses one pod at its first attempt."""

    name = "Budget"
    asked = False

    @hookimpl
    def permit(self, pod: Pod) -> Status | None:
        if pod.name == "solver-2" and not self.asked:
            self.asked = True
            return Status.unschedulable("the budget was not approved yet")
        return None


def main() -> None:
    registry = Registry()
    registry.register(Licences)
    registry.register(Budget)
    added = [EnabledPlugin("Licences"), EnabledPlugin("Budget")]
    args = {"Licences": LicencesArgs(("A", "B"))}
    profile = Profile([*default_profile().multi_point, *added], args=args)

    cluster = InMemoryCluster()
    cluster.add(make_node("node").capacity(cpu=16, memory="64Gi").build())
    scheduler = Scheduler(cluster, [profile], registry=registry, clock=FakeClock())
    told = 0

    def work(what: str) -> None:
        nonlocal told
        attempts = scheduler.run_until_idle()
        print(f"{what}: {attempts} attempts")
        for event in cluster.events[told:]:
            if event.reason != "Scheduled":
                print(
                    f"  {event.regarding}: {event.message.partition(' no new claims to deallocate, preemption:')[0]}"
                )
        told = len(cluster.events)

    web = cluster.add(make_pod("web").requests(cpu=1).build())
    solvers = [cluster.add(make_pod(f"solver-{n}").labels({NEEDS: ""}).build()) for n in range(1, 5)]
    work("five pods for two licences")
    cluster.delete(web)
    work("a pod without a licence leaves")
    cluster.delete(solvers[0])
    work("a pod with a licence leaves")
    scheduler.close()


if __name__ == "__main__":
    main()
