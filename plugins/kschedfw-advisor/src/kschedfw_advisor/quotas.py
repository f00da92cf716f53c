"""The pods that ResourceQuotas and LimitRanges allow: more replicas of a pod, and the pods that workloads want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from kschedfw import Pod
from kschedfw.api import (
    BUILT_IN_PRIORITIES,
    Admission,
    Finding,
    LimitRange,
    PriorityClass,
    RefusedPod,
    ReplicaSet,
    ReplicationController,
    ResourceQuota,
    RuntimeClass,
    StatefulSet,
    did_you_mean,
    pod_alike,
)
from kschedfw.cluster import Cluster, Workload, workload_of, workload_of_controller
from kschedfw_advisor.reports import NO_REPORTS, Reports

POLICIES: Final = (PriorityClass, LimitRange, RuntimeClass)
"""The kinds of objects that admission of pods depends on, except quotas."""

_MOST_CREATED: Final = 10_000
"""The most pods of a workload that are tried; a manifest may ask for two billion."""


_KEPT: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
"""The kinds of workloads whose objects in a cluster have the number of wanted pods."""

_REFUSALS: Final = (
    ("exceeded quota", "quota-exceeded"),
    ("failed quota", "quota-request-missing"),
    ("no PriorityClass", "priority-class-missing"),
    ("RuntimeClass", "runtime-class-missing"),
    ("service account", "service-account-missing"),
    ("admission webhook", "webhook"),
    ("failed calling webhook", "webhook"),
    ("PodSecurity", "pod-security"),
)
"""Words in the API server's reasons, and their codes."""

_Controller = tuple[str, str, str]
"""A controller's namespace, kind and name."""


@attrs.frozen
class Allowance:
    """The number of replicas of a pod, or of copies of a group, that the quotas of the namespace allow.

    `refusal` is why not the next; empty if none was refused.
    """

    count: int
    refusal: str


@attrs.frozen
class Uncreated:
    """Pods that a workload wants and the API server refuses to create: their number, and the reason.

    `refused` are those of them that were refused when manifests were expanded.
    """

    workload: Workload
    pods: int
    reason: str
    refused: tuple[RefusedPod, ...] = ()

    @property
    def finding(self) -> Finding:
        """Return the reason with its code."""
        return refusal_finding(self.reason, workload=str(self.workload), pods=self.pods)

    def to_json(self) -> dict[str, object]:
        """Return the workload, its pods and the reason in types that `json.dumps` knows."""
        return {
            "workload": str(self.workload),
            "pods": self.pods,
            "reason": self.reason,
            "finding": self.finding.to_json(),
        }


def refusal_finding(reason: str, **more: str | int) -> Finding:
    """Return the API server's reason with the code of the admission plugin which refuses, as far as the text tells."""
    code = next((code for words, code in _REFUSALS if words in reason), "pod-refused")
    return Finding.of(code, "{reason}", reason=reason, **more)


def allowances(
    wanted: Sequence[Sequence[Pod]], cluster: Cluster, at_most: int
) -> tuple[Allowance | None, ...]:
    """Return, for each of the lists of pods, how often it can be created under the quotas, beside the existing pods.

    The pods of one are of the same namespace: a single pod, or the members of a group. None where the namespace has no
    quota. Each is created up to `at_most` times.
    """
    limited = {quota.namespace for quota in cluster.list(ResourceQuota)}
    if limited.isdisjoint(pods[0].namespace for pods in wanted):
        return tuple(None for _ in wanted)
    admission = _admission(cluster)
    times = [0 for _ in wanted]
    refusals = ["" for _ in wanted]
    for _ in range(at_most):
        for number, pods in enumerate(wanted):
            if pods[0].namespace in limited and not refusals[number]:
                refusals[number] = next(filter(None, (_refusal(admission, pod) for pod in pods)), "")
                # A copy of which one pod is refused doesn't count, and its template drops out.
                times[number] += not refusals[number]
    return tuple(
        Allowance(count, refusal) if pods[0].namespace in limited else None
        for pods, count, refusal in zip(wanted, times, refusals, strict=True)
    )


def uncreated(cluster: Cluster, reports: Reports = NO_REPORTS) -> Iterator[Uncreated]:
    """The pods that workloads lack because they can't be created.

    ReplicaSets, ReplicationControllers and StatefulSets say themselves how many they want. In place of Jobs and
    DaemonSets there are their pods in the cluster, and the refused pods of the reports are those that weren't created.
    """
    of_kept: dict[_Controller, list[RefusedPod]] = {}
    lacking: dict[Workload, list[RefusedPod]] = {}
    for pod in reports.refused:
        if pod.controller is None:
            continue
        namespace = pod.pod.partition("/")[0]
        if pod.controller.kind in _KEPT:
            of_kept.setdefault((namespace, pod.controller.kind, pod.controller.name), []).append(pod)
        else:
            lacking.setdefault(workload_of_controller(pod.controller, namespace), []).append(pod)
    yield from _of_kept_workloads(cluster, of_kept, reports.failures)
    for workload, pods in lacking.items():
        yield Uncreated(workload, len(pods), pods[0].reason, tuple(pods))


def _of_kept_workloads(
    cluster: Cluster,
    refused: Mapping[_Controller, Sequence[RefusedPod]],
    reported: Mapping[_Controller, str],
) -> Iterator[Uncreated]:
    owners: tuple[ReplicaSet | StatefulSet | ReplicationController, ...] = (
        *cluster.list(ReplicaSet),
        *cluster.list(StatefulSet),
        *cluster.list(ReplicationController),
    )
    there = Counter(
        (pod.namespace, controller.kind, controller.name)
        for pod in cluster.list(Pod)
        if (controller := pod.metadata.controller) is not None and not (pod.is_terminal or pod.is_terminating)
    )
    admission = _admission(cluster)
    for owner in owners:
        if (pod := pod_alike(owner)) is None:
            continue
        key = owner.namespace, type(owner).__name__, owner.name
        lacking = owner.spec.replicas - there[key]
        workload = workload_of(pod, cluster)
        # A StatefulSet has no such condition, only its controller's Events say it.
        failure = ("" if isinstance(owner, StatefulSet) else owner.status.failure) or reported.get(key, "")
        if failure and lacking > 0 and workload is not None:
            yield Uncreated(workload, lacking, failure, tuple(refused.get(key, ())))
            continue
        if lacking > 0 and workload is not None and (missing := _missing_class(pod, cluster)):
            yield Uncreated(workload, lacking, missing, tuple(refused.get(key, ())))
            continue
        for created in range(min(lacking, _MOST_CREATED)):
            if (refusal := _refusal(admission, pod)) and workload is not None:
                yield Uncreated(workload, lacking - created, refusal, tuple(refused.get(key, ())))
            # The next one would be refused as well.
            if refusal:
                break


def _missing_class(pod: Pod, cluster: Cluster) -> str:
    """Return the API server's refusal of a pod that names a PriorityClass which isn't there; empty otherwise.

    An input without any such class may lack them all.
    """
    name, classes = pod.spec.priority_class_name, {each.name for each in cluster.list(PriorityClass)}
    if not name or not classes or name in classes or name in BUILT_IN_PRIORITIES:
        return ""
    return f"no PriorityClass with name {name} was found{did_you_mean(name, classes)}"


def _admission(cluster: Cluster) -> Admission:
    """Admission under the cluster's policies, with the quotas that its pods use."""
    admission = Admission([obj for kind in (*POLICIES, ResourceQuota) for obj in cluster.list(kind)])
    for pod in cluster.list(Pod):
        admission.count(pod)
    return admission


def _refusal(admission: Admission, pod: Pod) -> str:
    """Create the pod. Return the reason of its refusal; empty if it is accepted."""
    return "" if admission.admit(pod) is not None else admission.outcome.refused[-1].reason
