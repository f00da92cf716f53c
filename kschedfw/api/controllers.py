"""Fields that the controllers of workloads put into one pod: labels, volumes, tolerations, affinity.

The counterparts in kube-controller-manager v1.36 are `newStatefulSetPod`, `CreatePodTemplate` and
`NodeShouldRunDaemonPod` of DaemonSets, and `manageJob`. Only what scheduling reads is set: no host names, finalizers
or environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from kschedfw.api.affinity import NodeAffinity, Toleration, TolerationOperator
from kschedfw.api.convert import unstructure
from kschedfw.api.defaults import default_metadata
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node, TaintEffect
from kschedfw.api.owners import TEMPLATE_HASH, owner_reference, pod_from_template
from kschedfw.api.pod import Pod, PodSpec, PodTemplateSpec
from kschedfw.api.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    Selector,
)
from kschedfw.api.storage import PersistentVolumeClaim
from kschedfw.api.volumes import (
    EphemeralVolumeSource,
    PersistentVolumeClaimSource,
    PersistentVolumeClaimTemplate,
    Volume,
)
from kschedfw.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    LabelSelected,
    ReplicaSet,
    StatefulSet,
    WorkloadObject,
)

REVISION_HASH: Final = "controller-revision-hash"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
# Kubernetes' alphabet for hashes in names: it has no vowels, so that no words come out.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def pod_alike(workload: WorkloadObject | CronJob) -> Pod | None:
    """Return a further pod of the workload, whatever it has or may have now; None without a template.

    The pod of a StatefulSet has generic ephemeral volumes in place of its claims, so that each copy has its own. The
    pod of a DaemonSet isn't tied to a node.
    """
    match workload:
        case CronJob(spec=spec):
            template = spec.job_template
            metadata = attrs.evolve(template.metadata, name=workload.name, namespace=workload.namespace)
            metadata = default_metadata(metadata, "Job", namespaced=True)
            return pod_alike(Job(metadata, template.spec))
        case Deployment(spec=spec):
            return pod_alike(replica_set_of(workload, hash_of(spec.template), spec.replicas))
        case Job():
            return pod_of_job(workload, workload.name)
        case DaemonSet(spec=spec):
            if spec.template is None:
                return None
            tolerant = PodTemplateSpec(spec.template.metadata, _tolerant(spec.template.spec))
            return pod_from_template(workload, tolerant, workload.name, _labels_of_daemon(workload))
        case StatefulSet(spec=spec):
            claims = spec.volume_claim_templates
            own = [Volume(each.metadata.name, ephemeral=EphemeralVolumeSource(each)) for each in claims]
            return _stateful(workload, workload.name, own, {})
        case _:
            given = workload.spec.template
            return None if given is None else pod_from_template(workload, given, workload.name)


def replica_set_of(deployment: Deployment, template_hash: str, replicas: int) -> ReplicaSet:
    """Return the Deployment's ReplicaSet with this hash in its name, labels and selector."""
    spec = deployment.spec
    template, selector = spec.template or PodTemplateSpec(), spec.selector or LabelSelector()
    labels = FrozenDict({**template.metadata.labels, TEMPLATE_HASH: template_hash})
    metadata = ObjectMeta(
        name=f"{deployment.name}-{template_hash}",
        namespace=deployment.namespace,
        labels=labels,
        annotations=deployment.annotations,
        owner_references=(owner_reference(deployment),),
    )
    return ReplicaSet(
        default_metadata(metadata, "ReplicaSet", namespaced=True),
        LabelSelected(
            selector=attrs.evolve(
                selector, match_labels=FrozenDict({**selector.match_labels, TEMPLATE_HASH: template_hash})
            ),
            replicas=replicas,
            template=attrs.evolve(template, metadata=attrs.evolve(template.metadata, labels=labels)),
        ),
        deployment.status,
    )


# --- StatefulSets ------------------------------------------------------------------------------------------------


def pod_of_stateful_set(owner: StatefulSet, ordinal: int) -> Pod | None:
    """Return the pod of this ordinal, which mounts a claim for each template of one; None without a template."""
    name = f"{owner.name}-{ordinal}"
    claims = [
        Volume(
            each.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimSource(_name_of_claim(each, name)),
        )
        for each in owner.spec.volume_claim_templates
    ]
    labels = {
        "apps.kubernetes.io/pod-index": str(ordinal),
        "statefulset.kubernetes.io/pod-name": name,
    }
    return _stateful(owner, name, claims, labels)


def _stateful(owner: StatefulSet, name: str, own: list[Volume], labels: Mapping[str, str]) -> Pod | None:
    template = owner.spec.template
    if template is None:
        return None
    revision = {REVISION_HASH: f"{owner.name}-{hash_of(template)}"}
    if own:
        names = {volume.name for volume in own}
        # A volume of the template that has the name of a claim gives way to it.
        others = [volume for volume in template.spec.volumes if volume.name not in names]
        spec = attrs.evolve(template.spec, volumes=(*own, *others))
        template = PodTemplateSpec(template.metadata, spec)
    return pod_from_template(owner, template, name, {**labels, **revision})


def claims_of_stateful_set(owner: StatefulSet, ordinal: int) -> Iterator[PersistentVolumeClaim]:
    """Yield the claims of the pod of this ordinal, with the labels that the set selects beside the template's."""
    selector = owner.spec.selector
    selected = selector.match_labels if selector is not None else {}
    for template in owner.spec.volume_claim_templates:
        metadata = ObjectMeta(
            name=_name_of_claim(template, f"{owner.name}-{ordinal}"),
            namespace=owner.namespace,
            labels=FrozenDict({**template.metadata.labels, **selected}),
            annotations=template.metadata.annotations,
        )
        metadata = default_metadata(metadata, "PersistentVolumeClaim", namespaced=True)
        yield PersistentVolumeClaim(metadata, template.spec)


def _name_of_claim(template: PersistentVolumeClaimTemplate, pod: str) -> str:
    return f"{template.metadata.name}-{pod}"


# --- Jobs --------------------------------------------------------------------------------------------------------


def pod_of_job(job: Job, name: str, index: int | None = None) -> Pod | None:
    """Return a pod of the job, with its completion index if it has one; None without a template."""
    if job.spec.template is None:
        return None
    labels = {}
    # With a selector of their own, users label the pods.
    if not job.spec.manual_selector:
        labels = {
            "batch.kubernetes.io/controller-uid": job.uid,
            "batch.kubernetes.io/job-name": job.name,
            "controller-uid": job.uid,
            "job-name": job.name,
        }
    indexed = {} if index is None else {COMPLETION_INDEX: str(index)}
    return pod_from_template(job, job.spec.template, name, {**labels, **indexed}, indexed)


# --- DaemonSets --------------------------------------------------------------------------------------------------


def _tolerate(condition: str, effect: TaintEffect) -> Toleration:
    return Toleration(
        key=f"node.kubernetes.io/{condition}", operator=TolerationOperator.EXISTS, effect=effect
    )


# Daemon pods tolerate the taints of a node with problems.
_ALWAYS: Final = (
    _tolerate("not-ready", TaintEffect.NO_EXECUTE),
    _tolerate("unreachable", TaintEffect.NO_EXECUTE),
    _tolerate("disk-pressure", TaintEffect.NO_SCHEDULE),
    _tolerate("memory-pressure", TaintEffect.NO_SCHEDULE),
    _tolerate("pid-pressure", TaintEffect.NO_SCHEDULE),
    _tolerate("unschedulable", TaintEffect.NO_SCHEDULE),
)
_IN_HOST_NETWORK: Final = (_tolerate("network-unavailable", TaintEffect.NO_SCHEDULE),)


def daemons_of(daemon_set: DaemonSet, nodes: Iterator[Node]) -> Iterator[tuple[Node, PodTemplateSpec]]:
    """Yield the eligible nodes, each with the template of the pod that is tied to it."""
    template = daemon_set.spec.template
    if template is None:
        return
    spec = _tolerant(template.spec)
    for node in nodes:
        if _is_eligible(node, spec):
            yield node, PodTemplateSpec(template.metadata, _tied_to(node.name, spec))


def pod_of_daemon_set(daemon_set: DaemonSet, tied: PodTemplateSpec, name: str) -> Pod:
    """Return the pod of a template that is tied to a node."""
    return pod_from_template(daemon_set, tied, name, _labels_of_daemon(daemon_set))


def _labels_of_daemon(daemon_set: DaemonSet) -> dict[str, str]:
    generation = daemon_set.annotations.get("deprecated.daemonset.template.generation", "1")
    return {REVISION_HASH: hash_of(daemon_set.spec.template), "pod-template-generation": generation}


def _tolerant(spec: PodSpec) -> PodSpec:
    """Return the spec with the tolerations of daemon pods, in place of those that are limited in time."""
    tolerations = list(spec.tolerations)
    for wanted in (*_ALWAYS, *_IN_HOST_NETWORK) if spec.host_network else _ALWAYS:
        unlimited = [attrs.evolve(each, toleration_seconds=None) for each in tolerations]
        if wanted in unlimited:
            tolerations[unlimited.index(wanted)] = wanted
        else:
            tolerations.append(wanted)
    return attrs.evolve(spec, tolerations=tuple(tolerations))


def _is_eligible(node: Node, spec: PodSpec) -> bool:
    if spec.node_name not in ("", node.name):
        return False
    if not Selector.from_labels(spec.node_selector).matches(node.labels):
        return False
    affinity = spec.affinity.node_affinity
    required = affinity.required if affinity is not None else None
    if required is not None and not required.matches(node.labels, node.name):
        return False
    return all(
        taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        or any(each.tolerates(taint) for each in spec.tolerations)
        for taint in node.spec.taints
    )


def _tied_to(name: str, spec: PodSpec) -> PodSpec:
    """Return the spec with required affinity to this node instead of the template's."""
    term = NodeSelectorTerm(match_fields=(Requirement("metadata.name", Operator.IN, (name,)),))
    affinity = spec.affinity.node_affinity or NodeAffinity()
    affinity = attrs.evolve(affinity, required=NodeSelector((term,)))
    return attrs.evolve(spec, affinity=attrs.evolve(spec.affinity, node_affinity=affinity))


def node_of_daemon(pod: Pod) -> str:
    """Return the node that a daemon's pod is on, or is meant for."""
    affinity = pod.spec.affinity.node_affinity
    if not pod.node_name and affinity is not None and affinity.required is not None:
        for term in affinity.required.node_selector_terms:
            for name in term.only_names or ():
                return name
    return pod.node_name


# --- Hashes ------------------------------------------------------------------------------------------------------


def hash_of(template: PodTemplateSpec | None) -> str:
    """Return ten characters that differ between templates. Kubernetes' hash depends on Go's representation of them."""
    text = repr(_sorted(unstructure(template))) if template is not None else ""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    letters = []
    for _ in range(10):
        number, remainder = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[remainder])
    return "".join(letters)


def _sorted(value: object) -> object:
    """Return the value with maps as sorted lists, so that the order of keys doesn't matter."""
    if isinstance(value, Mapping):
        return sorted((str(key), _sorted(content)) for key, content in value.items())
    return [_sorted(content) for content in value] if isinstance(value, list) else value
