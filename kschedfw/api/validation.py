"""The API server's validation, as far as scheduling relies on it, with the messages of Kubernetes v1.36.

Only fields that scheduling reads are checked: a real API server may refuse a manifest that is accepted here, for
example for its volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kschedfw.api.containers import RestartPolicy
from kschedfw.api.field_errors import FieldError
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.names import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodTemplateSpec
from kschedfw.api.selectors import LabelSelector, Selector
from kschedfw.api.storage import CSIStorageCapacity, PersistentVolume
from kschedfw.api.validate_pods import gated_pod, metadata_key, pod_spec, resource_list
from kschedfw.api.validate_selectors import (
    Errors,
    label_selector,
    labels,
    node_selector,
    qualified_name,
    text_errors,
)
from kschedfw.api.workloads import (
    CompletionMode,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    JobSpec,
    LabelSelected,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    StatefulSetSpec,
)

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_HIGHEST_USER_PRIORITY: Final = 1_000_000_000


def is_valid_with_spec(pod: Pod) -> bool:
    """Tell whether a pod is valid if its spec without the node name is."""
    metadata, spec = pod.metadata, pod.spec
    # Asked of every pod of an export, so without the errors themselves.
    return not (
        not metadata.name
        or subdomain_problems(metadata.name)
        or (metadata.namespace and label_problems(metadata.namespace))
        or (spec.node_name and (subdomain_problems(spec.node_name) or spec.scheduling_gates))
        or any(map(qualified_name_problems, metadata.labels))
        or any(map(label_value_problems, metadata.labels.values()))
        or any(next(metadata_key(key, ""), None) for key in metadata.annotations)
    )


def metadata_errors(metadata: ObjectMeta, name_problems: Callable[[str], Sequence[str]]) -> Errors:
    """Yield the errors of an object's metadata; `name_problems` validates names of its kind."""
    if metadata.name:
        yield from text_errors(metadata.name, "metadata.name", name_problems)
    else:
        yield FieldError.required("metadata.name", "name or generateName is required")
    if metadata.namespace:
        yield from text_errors(metadata.namespace, "metadata.namespace", label_problems)
    yield from _labels_and_annotations(metadata, "metadata")


def _labels_and_annotations(metadata: ObjectMeta, path: str) -> Errors:
    yield from labels(metadata.labels, f"{path}.labels")
    for key in metadata.annotations:
        yield from metadata_key(key, f"{path}.annotations")


def pod_errors(pod: Pod) -> Errors:
    yield from pod_spec(pod.spec, "spec")
    yield from gated_pod(pod)


def node_errors(node: Node) -> Errors:
    seen = set()
    for index, taint in enumerate(node.spec.taints):
        path = f"spec.taints[{index}]"
        yield from qualified_name(taint.key, f"{path}.key")
        yield from text_errors(taint.value, f"{path}.value", label_value_problems)
        if (pair := (taint.key, taint.effect)) in seen:
            yield FieldError.duplicate(path, f"{taint.key}={taint.value}:{taint.effect}")
        seen.add(pair)
    yield from resource_list(node.status.capacity, "status.capacity")
    # `default_node` makes them one object, whose errors are told once.
    if node.status.allocatable is not node.status.capacity:
        yield from resource_list(node.status.allocatable, "status.allocatable")


# --- Workloads ---------------------------------------------------------------------------------------------------


def workload_errors(obj: Deployment | ReplicaSet | StatefulSet | DaemonSet) -> Errors:
    spec: LabelSelected = obj.spec
    yield from _replicas(spec.replicas)
    if spec.selector is None:
        yield FieldError.required("spec.selector")
    elif spec.selector == LabelSelector():
        yield FieldError.invalid(
            "spec.selector", {}, f"empty selector is invalid for {type(obj).__name__.lower()}"
        )
    else:
        yield from label_selector(spec.selector, "spec.selector")
    yield from _template(spec.template, spec.selector.compile() if spec.selector is not None else None)
    if isinstance(spec, StatefulSetSpec):
        for index, claim in enumerate(spec.volume_claim_templates):
            path = f"spec.volumeClaimTemplates[{index}]"
            if not claim.metadata.name:
                yield FieldError.required(f"{path}.metadata.name")
            yield from label_selector(claim.spec.selector, f"{path}.spec.selector")


def replication_controller_errors(obj: ReplicationController) -> Errors:
    yield from _replicas(obj.spec.replicas)
    if not obj.spec.selector:
        yield FieldError.required("spec.selector")
    yield from _template(obj.spec.template, Selector.from_labels(obj.spec.selector))


def _replicas(replicas: int) -> Errors:
    if replicas < 0:
        yield FieldError.invalid("spec.replicas", replicas, _NOT_NEGATIVE)


def _template(template: PodTemplateSpec | None, selector: Selector | None) -> Errors:
    """Yield the errors in the template of a workload whose pods must have the restart policy Always."""
    if template is None:
        yield FieldError.required("spec.template")
        return
    own: Mapping[str, str] = template.metadata.labels
    if selector is None or not selector.matches(own):
        yield FieldError.invalid(
            "spec.template.metadata.labels", own, "`selector` does not match template `labels`"
        )
    yield from _template_parts(template)
    policy = template.spec.restart_policy
    if policy is not RestartPolicy.ALWAYS:
        yield FieldError.unsupported("spec.template.spec.restartPolicy", policy, [RestartPolicy.ALWAYS])


def _template_parts(template: PodTemplateSpec, path: str = "spec.template") -> Errors:
    yield from _labels_and_annotations(template.metadata, f"{path}.metadata")
    yield from pod_spec(template.spec, f"{path}.spec", in_template=True)


def job_errors(job: Job) -> Errors:
    yield from _job_spec(job.spec, "spec")


def cron_job_errors(cron_job: CronJob) -> Errors:
    template = cron_job.spec.job_template
    yield from _labels_and_annotations(template.metadata, "spec.jobTemplate.metadata")
    yield from _job_spec(template.spec, "spec.jobTemplate.spec")


def _job_spec(spec: JobSpec, path: str) -> Errors:
    if spec.parallelism < 0:
        yield FieldError.invalid(f"{path}.parallelism", spec.parallelism, _NOT_NEGATIVE)
    if spec.completions is not None and spec.completions < 0:
        yield FieldError.invalid(f"{path}.completions", spec.completions, _NOT_NEGATIVE)
    if spec.completion_mode is CompletionMode.INDEXED and spec.completions is None:
        yield FieldError.required(f"{path}.completions", "when completion mode is Indexed")
    if spec.template is None:
        yield FieldError.required(f"{path}.template")
    else:
        yield from _template_parts(spec.template, f"{path}.template")


# --- The rest ----------------------------------------------------------------------------------------------------


def service_errors(service: Service) -> Errors:
    yield from labels(service.spec.selector, "spec.selector")


def disruption_budget_errors(budget: PodDisruptionBudget) -> Errors:
    spec = budget.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        both = {"minAvailable": spec.min_available, "maxUnavailable": spec.max_unavailable}
        yield FieldError.invalid("spec", both, "minAvailable and maxUnavailable cannot be both set")
    yield from label_selector(spec.selector, "spec.selector")


def priority_class_errors(cls: PriorityClass) -> Errors:
    if cls.value > _HIGHEST_USER_PRIORITY and not cls.name.startswith("system-"):
        why = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        yield FieldError.forbidden("value", why)


def persistent_volume_errors(volume: PersistentVolume) -> Errors:
    wanted = volume.spec.node_affinity
    if wanted is not None and wanted.required is not None:
        yield from node_selector(wanted.required, "spec.nodeAffinity.required")


def storage_capacity_errors(capacity: CSIStorageCapacity) -> Errors:
    if not capacity.storage_class_name:
        yield FieldError.required("storageClassName")
    if capacity.node_topology is not None:
        yield from label_selector(capacity.node_topology, "nodeTopology")
