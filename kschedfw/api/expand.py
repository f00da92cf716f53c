"""Creation of the pods that the controllers of workloads would create.

`expand` takes all loaded objects, since a dump may have a workload together with some of its pods: only the
missing ones are made. Their names are readable, and the same in every run.

`Limits.pods` bounds the number of pods made in all, since a manifest can ask for any number.

Not done: claims from a StatefulSet's `volumeClaimTemplates`, and anything over time (rolling updates, the pods
that a Job starts when others have finished, the Jobs of a CronJob).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from kschedfw.api.affinity import NodeAffinity, Toleration, TolerationOperator
from kschedfw.api.convert import unstructure
from kschedfw.api.defaults import default_metadata
from kschedfw.api.field_errors import FieldError
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.kinds import name_of_kind
from kschedfw.api.limits import DEFAULT_LIMITS, Limits, how_to_raise
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.node import Node, TaintEffect
from kschedfw.api.owners import TEMPLATE_HASH, Owners, owner_reference, pod_from_template
from kschedfw.api.pod import Pod, PodSpec, PodTemplateSpec
from kschedfw.api.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    Selector,
)
from kschedfw.api.workloads import (
    CompletionMode,
    DaemonSet,
    Deployment,
    Job,
    LabelSelected,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    Workload,
)

_REVISION_HASH: Final = "controller-revision-hash"
_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
# Kubernetes' alphabet for hashes in names: it has no vowels, so that no words come out.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def expand(
    objects: Iterable[Named],
    limits: Limits = DEFAULT_LIMITS,
    refuse: Callable[[Named, FieldError], None] | None = None,
    *,
    make_pods: bool = True,
    made: Counter[str] | None = None,
) -> Iterator[Named]:
    """Yield all objects in their order, with Deployments, DaemonSets and Jobs replaced by their controllers' objects.

    The pods of a workload are at its position; ReplicaSets, ReplicationControllers and StatefulSets are kept,
    since scheduling reads them, too. A workload whose pods would exceed the limit is omitted, and `refuse` is
    called with the error.

    No pods are made for a workload that was exported from a cluster together with pods of its own: its
    controller had made all its pods. Without `make_pods`, none are made for any. `made` gets the numbers of
    pods that were made, by workload.
    """
    everything = list(objects)
    nodes = [obj for obj in everything if isinstance(obj, Node)]
    owners = Owners(everything)
    left = limits.pods
    allowed: list[tuple[Named, bool]] = []
    for obj in everything:
        lacking = make_pods and isinstance(obj, Workload) and not _has_its_pods(obj, owners)
        wanted, path = _wanted(obj, len(nodes), owners) if lacking else (0, "")
        if wanted > left:
            if refuse is not None:
                limit = how_to_raise("pods", limits.pods)
                why = f"stands for {wanted} more pods, but only {left} may still be made: {limit}"
                refuse(obj, FieldError(path, why))
            continue
        left -= wanted
        allowed.append((obj, lacking))
        if lacking and isinstance(obj, StatefulSet):
            # The names of a StatefulSet's pods are fixed, so no other pod may get them.
            owners.names.update((obj.namespace, f"{obj.name}-{ordinal}") for ordinal in _ordinals(obj))
    for obj, lacking in allowed:
        for each in _replaced(obj, nodes, owners):
            if each is not obj and isinstance(each, Pod):
                if not lacking:
                    # All that follow are pods.
                    break
                if made is not None:
                    made[f"{name_of_kind(obj)} {obj.key}"] += 1
            yield each


def _has_its_pods(obj: Workload, owners: Owners) -> bool:
    """Tell whether the workload was stored by an API server, and pods of it are among the objects."""
    if obj.metadata.creation_timestamp is None:
        return False
    return bool(owners.pods_of(obj) or (isinstance(obj, Deployment) and owners.pods_by_template_hash(obj)))


def _replaced(obj: Named, nodes: Sequence[Node], owners: Owners) -> Iterator[Named]:
    """Yield the replacement of an object: a kept workload itself, then its missing pods."""
    match obj:
        case Deployment():
            yield from _of_deployment(obj, owners)
        case ReplicaSet() | ReplicationController():
            yield obj
            yield from _of_replicas(obj, owners)
        case StatefulSet():
            yield obj
            yield from _of_stateful_set(obj, owners)
        case Job():
            yield from _of_job(obj, owners)
        case DaemonSet():
            yield from pods_of_daemon_set(obj, nodes, owners, _hash_of(obj.spec.template))
        case _:
            yield obj


def _wanted(obj: Named, nodes: int, owners: Owners) -> tuple[int, str]:
    """Return an upper bound of a workload's missing pods, and the field that determines it."""
    match obj:
        case Deployment() if owners.replica_sets_of(obj):
            return 0, ""
        case Deployment():
            present = owners.pods_by_template_hash(obj).total()
            return max(obj.spec.replicas - present, 0), "spec.replicas"
        case ReplicaSet() | ReplicationController() | StatefulSet():
            return max(obj.spec.replicas - len(owners.active_pods_of(obj)), 0), "spec.replicas"
        case Job() if obj.spec.completion_mode is CompletionMode.INDEXED:
            # All its indexes count, however few run at the same time.
            return max(obj.spec.completions or 0, 0), "spec.completions"
        case Job():
            number = _missing_pods(obj, len(owners.active_pods_of(obj)))
            return number, "spec.parallelism"
        case DaemonSet():
            return max(nodes - len(owners.active_pods_of(obj)), 0), "spec.template"
    return 0, ""


def _of_deployment(deployment: Deployment, owners: Owners) -> Iterator[Named]:
    if deployment.spec.template is None or owners.replica_sets_of(deployment):
        # The Deployment's ReplicaSets are loaded, too, and get the pods.
        return
    template = deployment.spec.template
    hashes = owners.pods_by_template_hash(deployment)
    # The names of pods whose ReplicaSet is missing contain its name.
    template_hash = hashes.most_common(1)[0][0] if hashes else _hash_of(template)
    labels = FrozenDict({**template.metadata.labels, TEMPLATE_HASH: template_hash})
    selector = deployment.spec.selector or LabelSelector()
    metadata = ObjectMeta(
        name=f"{deployment.name}-{template_hash}",
        namespace=deployment.namespace,
        labels=labels,
        annotations=deployment.annotations,
        owner_references=(owner_reference(deployment),),
    )
    replica_set = ReplicaSet(
        default_metadata(metadata, "ReplicaSet", namespaced=True),
        LabelSelected(
            selector=attrs.evolve(
                selector, match_labels=FrozenDict({**selector.match_labels, TEMPLATE_HASH: template_hash})
            ),
            # Pods of older ReplicaSets count towards the Deployment's number.
            replicas=deployment.spec.replicas - (hashes.total() - hashes[template_hash]),
            template=attrs.evolve(template, metadata=attrs.evolve(template.metadata, labels=labels)),
        ),
    )
    yield replica_set
    yield from _of_replicas(replica_set, owners)


def _of_replicas(owner: ReplicaSet | ReplicationController, owners: Owners) -> Iterator[Pod]:
    template = owner.spec.template
    if template is None:
        return
    for name in _free_names(owner, owner.spec.replicas - len(owners.active_pods_of(owner)), owners):
        yield pod_from_template(owner, template, name)


def _free_names(owner: Named, number: int, owners: Owners) -> Iterator[str]:
    ordinal = 0
    while number > 0:
        name = f"{owner.name}-{ordinal}"
        if owners.take(owner.namespace, name):
            number -= 1
            yield name
        ordinal += 1


def _ordinals(owner: StatefulSet) -> range:
    start = owner.spec.ordinals.start
    return range(start, start + max(owner.spec.replicas, 0))


def _of_stateful_set(owner: StatefulSet, owners: Owners) -> Iterator[Pod]:
    template = owner.spec.template
    if template is None:
        return
    revision = f"{owner.name}-{_hash_of(template)}"
    for ordinal in _ordinals(owner):
        name = f"{owner.name}-{ordinal}"
        if not owners.is_loaded(owner.namespace, name):
            labels = {
                "apps.kubernetes.io/pod-index": str(ordinal),
                _REVISION_HASH: revision,
                "statefulset.kubernetes.io/pod-name": name,
            }
            yield pod_from_template(owner, template, name, labels)


def _of_job(job: Job, owners: Owners) -> Iterator[Pod]:
    template, spec = job.spec.template, job.spec
    if template is None or spec.suspend or job.is_finished:
        return
    present = owners.active_pods_of(job)
    number = _missing_pods(job, len(present))
    labels = {
        "batch.kubernetes.io/controller-uid": job.uid,
        "batch.kubernetes.io/job-name": job.name,
        "controller-uid": job.uid,
        "job-name": job.name,
    }
    if spec.completion_mode is not CompletionMode.INDEXED:
        for name in _free_names(job, number, owners):
            yield pod_from_template(job, template, name, labels)
        return
    for index in _missing_indexes(job, present)[:number]:
        text = str(index)
        owners.take(job.namespace, f"{job.name}-{index}")
        yield pod_from_template(
            job,
            template,
            f"{job.name}-{index}",
            {**labels, _COMPLETION_INDEX: text},
            {_COMPLETION_INDEX: text},
        )


def _missing_pods(job: Job, present: int) -> int:
    number = job.spec.parallelism
    if job.spec.completions is not None:
        number = min(number, job.spec.completions - job.status.succeeded)
    return max(number - present, 0)


def _missing_indexes(job: Job, present: Sequence[Pod]) -> list[int]:
    done = {pod.annotations.get(_COMPLETION_INDEX, pod.labels.get(_COMPLETION_INDEX)) for pod in present}
    number = job.spec.completions or 0
    done |= {str(index) for index in _indexes(job.status.completed_indexes, number)}
    return [index for index in range(number) if str(index) not in done]


def _indexes(text: str, number: int) -> set[int]:
    """Return the numbers in `1,3-5` that are below `number`."""
    found: set[int] = set()
    # The largest index so far; indexes ascend, so lower ones add nothing.
    reached = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if _is_index(first):
            end = min(int(last if _is_index(last) else first) + 1, number)
            found.update(range(max(int(first), reached), end))
            reached = max(reached, end)
    return found


def _is_index(text: str) -> bool:
    # An int64 has 19 digits at most, and Python refuses to read thousands of them.
    return text.isascii() and text.isdecimal() and len(text) < 20


def _hash_of(template: PodTemplateSpec | None) -> str:
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


def pods_of_daemon_set(
    daemon_set: DaemonSet, nodes: Iterable[Node], owners: Owners, revision: str
) -> Iterator[Pod]:
    """Yield the missing pods: one for each eligible node without one."""
    template = daemon_set.spec.template
    if template is None:
        return
    wanted = (*_ALWAYS, *_IN_HOST_NETWORK) if template.spec.host_network else _ALWAYS
    missing = tuple(toleration for toleration in wanted if toleration not in template.spec.tolerations)
    spec = attrs.evolve(template.spec, tolerations=(*template.spec.tolerations, *missing))
    served = {_node_of(pod) for pod in owners.active_pods_of(daemon_set)}
    for node in nodes:
        if node.name not in served and _is_eligible(node, spec):
            tied = PodTemplateSpec(template.metadata, _tied_to(node.name, spec))
            name = f"{daemon_set.name}-{node.name}"
            owners.take(daemon_set.namespace, name)
            labels = {"controller-revision-hash": revision, "pod-template-generation": "1"}
            yield pod_from_template(daemon_set, tied, name, labels)


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


def _node_of(pod: Pod) -> str:
    """Return the node that a daemon's pod is on, or is meant for."""
    affinity = pod.spec.affinity.node_affinity
    if not pod.node_name and affinity is not None and affinity.required is not None:
        for term in affinity.required.node_selector_terms:
            for name in term.only_names or ():
                return name
    return pod.node_name
