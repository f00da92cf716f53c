"""The policy under test: batch pods keep their distance from critical ones."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import FieldError, NodeInfo, Plugin, Pod, Status, hookimpl

TIER = "example.com/tier"
"""The label that says whether a pod is `critical` or `batch`; most are neither."""


@attrs.frozen
class QuietArgs:
    """`max_batch_pods` may run on a node that has a critical pod."""

    max_batch_pods: int = 1

    def validate(self) -> Iterator[FieldError]:
        if self.max_batch_pods < 0:
            yield FieldError.invalid("maxBatchPods", self.max_batch_pods, "must not be negative")


class Quiet(Plugin[QuietArgs]):
    """Limits batch pods on nodes with critical pods, and prefers nodes without such neighbours."""

    name = "Quiet"
    args_type = QuietArgs
    pure = True

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return None if is_batch(pod) else Status.skip()

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        if critical_pods(node_info) and batch_pods(node_info) >= self.args.max_batch_pods:
            return Status.unschedulable("node(s) had enough batch pods beside critical ones")
        return None

    @hookimpl
    def pre_score(self, pod: Pod) -> Status | None:
        return None if is_batch(pod) else Status.skip()

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return max(0, 100 - 25 * critical_pods(node_info))


def is_batch(pod: Pod) -> bool:
    return pod.labels.get(TIER) == "batch"


def batch_pods(node_info: NodeInfo) -> int:
    return sum(is_batch(info.pod) for info in node_info.pods)


def critical_pods(node_info: NodeInfo) -> int:
    return sum(info.pod.labels.get(TIER) == "critical" for info in node_info.pods)
