"""A plugin that shares a busy cluster fairly between namespaces, with ageing: `python fair_share.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kschedfw import (
    EnabledPlugin,
    FieldError,
    Handle,
    InMemoryCluster,
    Plugin,
    Pod,
    Profile,
    QueuedPodInfo,
    Registry,
    Scheduler,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock


@attrs.frozen
class FairShareArgs:
    """The weights of namespaces; a namespace that isn't named has the weight 1."""

    weights: Mapping[str, int] = attrs.field(factory=dict)

    def validate(self) -> Sequence[FieldError]:
        return [
            FieldError.invalid(f"weights.{name}", weight, "must be at least 1")
            for name, weight in self.weights.items()
            if weight < 1
        ]


@attrs.define
class Tags:
    """The tags of pods by uid, the last tag of each namespace, and the virtual time."""

    by_pod: dict[str, float] = attrs.field(factory=dict)
    last: dict[str, float] = attrs.field(factory=dict)
    now: float = 0.0

    def copy(self) -> Tags:
        return Tags(dict(self.by_pod), dict(self.last), self.now)


class FairShare(Plugin[FairShareArgs]):
    """Sorts pods of equal priority so that namespaces get CPU in proportion to their weights.

    Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): a pod gets a tag when it enters the queue, which is
    the tag of its namespace's last pod, or the virtual time if that is later, plus its CPU by the weight. The
    lowest tag is next. A tag is kept while the pod waits, and later ones are higher: so a pod ages, and none starves.
    """

    name = "FairShare"
    args_type = FairShareArgs

    def __init__(self, args: FairShareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._tags = Tags()

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> None:
        tags = self._tags
        if pod.uid not in tags.by_pod:
            size = max(1, pod.requests.amounts.milli_cpu) / self.args.weights.get(pod.namespace, 1)
            begin = max(tags.now, tags.last.get(pod.namespace, 0.0))
            tags.by_pod[pod.uid] = begin
            tags.last[pod.namespace] = begin + size

    @hookimpl
    def queue_sort(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        return self._key(first) < self._key(second)

    def _key(self, info: QueuedPodInfo) -> tuple[int, float, int]:
        return -info.pod.priority, self._tags.by_pod.get(info.pod.uid, 0.0), info.sequence

    @hookimpl
    def post_bind(self, pod: Pod) -> None:
        # A namespace that was idle begins now, and gets nothing for the time before.
        self._tags.now = max(self._tags.now, self._tags.by_pod.pop(pod.uid, 0.0))

    def save_state(self) -> Tags:
        return self._tags.copy()

    def restore_state(self, token: Tags) -> None:
        self._tags = token.copy()


def order(profile: Profile, registry: Registry) -> str:
    """Return the namespaces of pods in the order in which they get a node: `a` has asked for all of its pods first."""
    cluster = InMemoryCluster([make_node("node").capacity(cpu=64).build()])
    scheduler = Scheduler(cluster, [profile], registry=registry, clock=FakeClock())
    for namespace in "ab":
        for number in range(6):
            pod = make_pod(f"pod-{number}").namespace(namespace).uid(f"{namespace}-{number}").requests(cpu=1)
            cluster.add(pod.build())
    scheduler.run_until_idle()
    scheduler.close()
    return " ".join(event.regarding[0] for event in cluster.events if event.reason == "Scheduled")


def main() -> None:
    registry = Registry()
    registry.register(FairShare)
    default = default_profile().multi_point
    # A profile has one plugin that sorts the queue.
    fair = [EnabledPlugin("FairShare"), *(each for each in default if each.name != "PrioritySort")]
    print("first come, first served:", order(Profile(default), registry))
    print("fair:                    ", order(Profile(fair), registry))
    args = {"FairShare": FairShareArgs({"b": 2})}
    print("b has the weight 2:      ", order(Profile(fair, args=args), registry))


if __name__ == "__main__":
    main()
