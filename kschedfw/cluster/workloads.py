"""The workload of a pod: what users made, such as the Deployment rather than its ReplicaSet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kschedfw.api.meta import OwnerReference
from kschedfw.api.owners import TEMPLATE_HASH
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.api.workloads import ReplicaSet
from kschedfw.cluster.protocol import Cluster

_OF_CRON_JOB: Final = re.compile(r"-\d{8}$")
"""The end of the name of a CronJob's Job: the minute for which it was scheduled."""


@frozen
class Workload:
    """The object that users made and controllers make pods for: the Deployment rather than its ReplicaSet."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def workload_of(pod: Pod, cluster: Cluster) -> Workload | None:
    """The workload of the pod; None for a pod without a controller.

    Deployments and CronJobs needn't be in the cluster: an export often lacks them. They are told by the names that
    their controllers give.
    """
    return workload_above(pod.metadata.controller, pod.namespace, pod.labels, cluster)


def workload_above(
    owner: OwnerReference | None, namespace: str, labels: Mapping[str, str], cluster: Cluster
) -> Workload | None:
    """The workload of a pod that may not exist, by its controller, namespace and labels."""
    if owner is None:
        return None
    if owner.kind == "ReplicaSet":
        return _above_replica_set(owner, namespace, labels, cluster)
    return workload_of_controller(owner, namespace)


def workload_of_controller(owner: OwnerReference, namespace: str) -> Workload:
    """The controller as a workload, a CronJob for its Job; what is above a ReplicaSet isn't told here."""
    if owner.kind == "Job" and (minute := _OF_CRON_JOB.search(owner.name)):
        return Workload("CronJob", namespace, owner.name[: minute.start()])
    return Workload(owner.kind, namespace, owner.name)


def _above_replica_set(
    owner: OwnerReference, namespace: str, labels: Mapping[str, str], cluster: Cluster
) -> Workload:
    replica_set = cluster.get(ReplicaSet, f"{namespace}/{owner.name}")
    above = None if replica_set is None else replica_set.metadata.controller
    if above is not None:
        return Workload(above.kind, namespace, above.name)
    template = labels.get(TEMPLATE_HASH)
    # A ReplicaSet that is in the cluster and has no controller is a workload by itself.
    if replica_set is None and template and owner.name.endswith(f"-{template}"):
        return Workload("Deployment", namespace, owner.name.removesuffix(f"-{template}"))
    return Workload(owner.kind, namespace, owner.name)
