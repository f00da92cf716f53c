"""The workload of a pod: what users made, such as the Deployment rather than its ReplicaSet."""

from __future__ import annotations

import re
from typing import Final

import attrs

from kschedfw.api.meta import OwnerReference
from kschedfw.api.owners import TEMPLATE_HASH
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import ReplicaSet
from kschedfw.cluster.protocol import Cluster

_OF_CRON_JOB: Final = re.compile(r"-\d{8}$")
"""The end of the name of a CronJob's Job: the minute for which it was scheduled."""


@attrs.frozen
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
    owner = pod.metadata.controller
    if owner is None:
        return None
    if owner.kind == "ReplicaSet":
        return _above_replica_set(pod, owner, cluster)
    return workload_of_controller(owner, pod.namespace)


def workload_of_controller(owner: OwnerReference, namespace: str) -> Workload:
    """The controller as a workload, a CronJob for its Job; what is above a ReplicaSet isn't told here."""
    if owner.kind == "Job" and (minute := _OF_CRON_JOB.search(owner.name)):
        return Workload("CronJob", namespace, owner.name[: minute.start()])
    return Workload(owner.kind, namespace, owner.name)


def _above_replica_set(pod: Pod, owner: OwnerReference, cluster: Cluster) -> Workload:
    replica_set = cluster.get(ReplicaSet, f"{pod.namespace}/{owner.name}")
    above = None if replica_set is None else replica_set.metadata.controller
    if above is not None:
        return Workload(above.kind, pod.namespace, above.name)
    template = pod.labels.get(TEMPLATE_HASH)
    # A ReplicaSet that is in the cluster and has no controller is a workload by itself.
    if replica_set is None and template and owner.name.endswith(f"-{template}"):
        return Workload("Deployment", pod.namespace, owner.name.removesuffix(f"-{template}"))
    return Workload(owner.kind, pod.namespace, owner.name)
