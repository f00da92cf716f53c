"""Objects that own or describe pods, as far as the scheduler reads them: namespaces, services, controllers, ..."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict, string_map
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.pod import PodCondition, PodTemplateSpec, PreemptionPolicy
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32
from kschedfw.api.selectors import LabelSelector
from kschedfw.api.volumes import PersistentVolumeClaimTemplate


@frozen
class Namespace(Named):
    """core/v1 Namespace; its labels matter to namespace selectors."""


@frozen
class ServiceSpec:
    """The pods that a service sends traffic to; an empty selector selects none (core/v1 ServiceSpec)."""

    selector: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)


@frozen
class Service(Named):
    """core/v1 Service; an empty selector selects no pod."""

    spec: ServiceSpec = attrs.field(factory=ServiceSpec)


@frozen
class ReplicasStatus:
    """The conditions of a ReplicaSet, a ReplicationController or a Deployment."""

    conditions: tuple[PodCondition, ...] = ()

    @property
    def failure(self) -> str:
        """Return why the controller can't create or delete pods (ReplicaFailure); empty if it can."""
        return next(
            (
                each.message or each.reason
                for each in self.conditions
                if each.type == "ReplicaFailure" and each.status == "True"
            ),
            "",
        )


@frozen
class ReplicationControllerSpec:
    """The number of pods, and their template (core/v1 ReplicationControllerSpec)."""

    selector: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)
    replicas: Int32 = 1
    template: PodTemplateSpec | None = None


@frozen
class ReplicationController(Named):
    """Keeps a number of equal pods running (core/v1 ReplicationController)."""

    spec: ReplicationControllerSpec = attrs.field(factory=ReplicationControllerSpec)
    status: ReplicasStatus = attrs.field(factory=ReplicasStatus)


@frozen
class LabelSelected:
    """The spec of a controller that finds its pods by a label selector, and makes them from a template."""

    selector: LabelSelector | None = None
    replicas: Int32 = 1
    template: PodTemplateSpec | None = None


@frozen
class ReplicaSet(Named):
    """Keeps a number of equal pods running (apps/v1 ReplicaSet)."""

    spec: LabelSelected = attrs.field(factory=LabelSelected)
    status: ReplicasStatus = attrs.field(factory=ReplicasStatus)


@frozen
class DeploymentSpec(LabelSelected):
    """The pods of a Deployment; one that is paused gets no new ReplicaSet (apps/v1 DeploymentSpec)."""

    paused: bool = False


@frozen
class Deployment(Named):
    """apps/v1 Deployment. The scheduler never sees it: it is expanded into a ReplicaSet and pods."""

    spec: DeploymentSpec = attrs.field(factory=DeploymentSpec)
    status: ReplicasStatus = attrs.field(factory=ReplicasStatus)


@frozen
class StatefulSetOrdinals:
    """The number of the first pod (apps/v1 StatefulSetOrdinals)."""

    start: Int32 = 0


@frozen
class StatefulSetSpec(LabelSelected):
    """The number of pods, their template, their numbering, and the claims of each (apps/v1 StatefulSetSpec)."""

    ordinals: StatefulSetOrdinals = attrs.field(factory=StatefulSetOrdinals)
    volume_claim_templates: tuple[PersistentVolumeClaimTemplate, ...] = ()


@frozen
class StatefulSet(Named):
    """Keeps a number of pods with stable names running (apps/v1 StatefulSet)."""

    spec: StatefulSetSpec = attrs.field(factory=StatefulSetSpec)


@frozen
class DaemonSet(Named):
    """apps/v1 DaemonSet: expanded into a pod per eligible node; `replicas` isn't used."""

    spec: LabelSelected = attrs.field(factory=LabelSelected)


class CompletionMode(StrEnum):
    """Tells whether a job's pods have an index each (batch/v1 CompletionMode)."""

    NON_INDEXED = "NonIndexed"
    INDEXED = "Indexed"


@frozen
class JobSpec:
    """The spec of a job; without `completions` it is done when one of its pods has succeeded.

    With a `manual_selector`, pods get no labels of the job. With `managed_by`, another controller makes them.
    """

    parallelism: Int32 = 1
    completions: Int32 | None = None
    completion_mode: CompletionMode = CompletionMode.NON_INDEXED
    suspend: bool = False
    manual_selector: bool = False
    managed_by: str = ""
    template: PodTemplateSpec | None = None


@frozen
class JobStatus:
    """The progress of a job (batch/v1 JobStatus)."""

    succeeded: Int32 = 0
    completed_indexes: str = ""
    failed_indexes: str = ""
    conditions: tuple[PodCondition, ...] = ()


@frozen
class Job(Named):
    """batch/v1 Job: expanded into the pods that it runs at the same time."""

    spec: JobSpec = attrs.field(factory=JobSpec)
    status: JobStatus = attrs.field(factory=JobStatus)

    @property
    def is_finished(self) -> bool:
        return any(
            each.type in ("Complete", "Failed") and each.status == "True" for each in self.status.conditions
        )


@frozen
class JobTemplateSpec:
    """The template of a CronJob's Jobs (batch/v1 JobTemplateSpec)."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: JobSpec = attrs.field(factory=JobSpec)


@frozen
class CronJobSpec:
    """The template of Jobs that are started by the clock (batch/v1 CronJobSpec)."""

    suspend: bool = False
    job_template: JobTemplateSpec = attrs.field(factory=JobTemplateSpec)


@frozen
class CronJob(Named):
    """batch/v1 CronJob. Reading makes no Jobs of it, since they come by the clock."""

    spec: CronJobSpec = attrs.field(factory=CronJobSpec)


WorkloadObject: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job
"""The kinds whose controllers make pods of a template, at any time."""


class UnhealthyPodEvictionPolicy(StrEnum):
    """The rule for evicting running pods that aren't ready (policy/v1 UnhealthyPodEvictionPolicyType)."""

    IF_HEALTHY_BUDGET = "IfHealthyBudget"
    ALWAYS_ALLOW = "AlwaysAllow"


@frozen
class PodDisruptionBudgetSpec:
    """`min_available` and `max_unavailable` are counts or percentages, as in the manifest."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: UnhealthyPodEvictionPolicy = UnhealthyPodEvictionPolicy.IF_HEALTHY_BUDGET


@frozen
class PodDisruptionBudgetStatus:
    """The number of pods that may be disrupted now, and the disrupted pods (policy/v1).

    `expected_pods` is the number of pods that the budget counts; also 0 until a controller has looked at it.
    """

    disruptions_allowed: Int32 = 0
    disrupted_pods: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)
    expected_pods: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0


@frozen
class PodDisruptionBudget(Named):
    """A limit on the pods of a set that are disrupted at a time (policy/v1 PodDisruptionBudget)."""

    spec: PodDisruptionBudgetSpec = attrs.field(factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = attrs.field(factory=PodDisruptionBudgetStatus)


@frozen
class PriorityClass(Named):
    """scheduling/v1 PriorityClass: a name for a priority; `global_default` is for pods that name no class."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: PreemptionPolicy = PreemptionPolicy.PREEMPT_LOWER_PRIORITY
