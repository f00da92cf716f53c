"""The pods and groups of `kschedfw fit`: from files, or from a few options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import digits
from typing import Final, TypeAlias

import attrs

from kschedfw import FeatureGates, FrozenDict, Node, ObjectMeta, Pod, Quantity, Transaction
from kschedfw.api import (
    KINDS,
    TEMPLATE_HASH,
    Admission,
    DaemonSet,
    ManifestError,
    Named,
    Namespace,
    PersistentVolumeClaim,
    PodGroup,
    PodStatus,
    QuantityError,
    StatefulSet,
    group_key,
    parse_quantity,
    pod_alike,
    pod_from_manifest,
)
from kschedfw.cli import Input, ReadingOptions, UsageError, counted, read_manifest_input
from kschedfw.cluster import Cluster
from kschedfw.config import GENERIC_WORKLOAD
from kschedfw_advisor.quotas import POLICIES
from kschedfw_advisor.turns import GroupTemplate

_DEFAULT_NAME = "pod"
_CONSTRAINTS: Final = "TopologyAwareWorkloadScheduling"


@attrs.frozen
class PodTemplate:
    """A kind of pod: its name, one pending pod of it, and the number of them in the file (at least 1)."""

    name: str
    pod: Pod
    count: int = 1

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods of one replica."""
        return (self.pod,)

    def __str__(self) -> str:
        return f"pod {self.name}"


Template: TypeAlias = PodTemplate | GroupTemplate


@attrs.frozen
class PodTemplates:
    """Templates, and the other objects of their files, such as claims; these are wanted in the cluster, too."""

    templates: tuple[Template, ...]
    objects: tuple[Named, ...] = ()

    def add_objects(self, trial: Transaction, cluster: Cluster) -> None:
        """Add the objects that the cluster doesn't have."""
        trial.add(*(obj for obj in self.objects if cluster.get(type(obj), obj.key) is None))


@attrs.frozen
class PodOptions:
    """The options that describe a pod; an empty text is an option that isn't given."""

    image: str = ""
    cpu: str = ""
    memory: str = ""

    @property
    def are_given(self) -> bool:
        return bool(self.image or self.cpu or self.memory)

    @property
    def requests(self) -> dict[str, str]:
        """The requests by resource.

        Raises:
            UsageError: one isn't a quantity above 0.
        """
        given = {"cpu": self.cpu, "memory": self.memory}
        for name, text in given.items():
            try:
                if text and parse_quantity(text).sign < 1:
                    raise UsageError(f"--{name} {text}: expected an amount above 0")
            except QuantityError as error:
                raise UsageError(f"--{name} {error}") from None
        return {name: text for name, text in given.items() if text}


def read_pod_templates(
    paths: Sequence[Path], given: PodOptions, options: ReadingOptions, cluster: Cluster, gates: FeatureGates
) -> PodTemplates:
    """Return a template for each pod and workload in the files, changed by the options, or one of the options alone.

    Where the gates have pods of a PodGroup scheduled together, there is one template for all of them. Without the gate
    for topology constraints these are left out of the group, as the API server leaves out a field whose gate is off.

    Pods are admitted under the policies of the cluster and of the files, but for quotas: the question is what fits.

    Raises:
        InvalidInputError: a file is invalid.
        UsageError: a file has no pod, there is neither a file nor an option, or options for several pods; or a pod is
            refused; or a PodGroup is missing, or has too few members to run.
    """
    requests = given.requests
    objects: list[Named] = []
    if not paths:
        if not given.are_given:
            raise UsageError("which pod? Give --pod FILE, or --cpu, --memory, --image")
        found = [_of_options(given.image, requests)]
    else:
        found = []
        for path in paths:
            loaded = read_manifest_input([path], options)
            if loaded.refused:
                raise UsageError(f"{path}: {loaded.refused[0].message}")
            found += _in_file(path, loaded)
            objects += _others(loaded)
        if given.are_given:
            if len(found) > 1:
                raise UsageError(
                    f"--cpu, --memory and --image change one pod, and there are {len(found)}: "
                    f"{', '.join(each.name for each in found)}"
                )
            found = [_changed(found[0], given.image, requests)]
    policies: list[Named] = [obj for kind in POLICIES for obj in cluster.list(kind)]
    admission = Admission((*policies, *(obj for obj in objects if isinstance(obj, POLICIES))))
    admitted = [_admitted(each, admission) for each in found]
    others = tuple({(type(obj), obj.key): obj for obj in objects}.values())
    if not gates.enabled(GENERIC_WORKLOAD):
        return PodTemplates(tuple(admitted), others)
    groups = {obj.key: obj for obj in (*cluster.list(PodGroup), *others) if isinstance(obj, PodGroup)}
    if not gates.enabled(_CONSTRAINTS):
        groups = {key: _without_constraints(group) for key, group in groups.items()}
    # Of a group of the files there are copies only: without members it would be of no use.
    return PodTemplates(
        tuple(_in_groups(admitted, groups)), tuple(obj for obj in others if not isinstance(obj, PodGroup))
    )


def _without_constraints(group: PodGroup) -> PodGroup:
    return attrs.evolve(group, spec=attrs.evolve(group.spec, scheduling_constraints=None))


def _in_groups(templates: Iterable[PodTemplate], groups: Mapping[str, PodGroup]) -> Iterator[Template]:
    """Return the templates, with the pods of a PodGroup merged into one template at the place of the first."""
    members: dict[str, list[PodTemplate]] = {}
    for each in templates:
        # A pod without a group is under its own name, with which no key of a group begins.
        members.setdefault(group_key(each.pod) or f"pod {each.name}", []).append(each)
    for key, kinds in members.items():
        if group_key(kinds[0].pod):
            yield _group(key, kinds, groups.get(key))
        else:
            yield kinds[0]


def _group(key: str, kinds: Sequence[PodTemplate], group: PodGroup | None) -> GroupTemplate:
    if group is None:
        raise UsageError(
            f"pod {kinds[0].name}: spec.schedulingGroup.podGroupName: there is no PodGroup {key}, "
            "neither in the cluster nor in the files"
        )
    needed, there = group.min_count or 1, sum(each.count for each in kinds)
    if there < needed and len(kinds) == 1:
        kinds, there = [attrs.evolve(kinds[0], count=needed)], needed
    if there < needed:
        raise UsageError(
            f"PodGroup {key}: spec.schedulingPolicy.gang.minCount is {needed}, "
            f"and the files have {counted(there, 'pod')} of it, of {len(kinds)} kinds"
        )
    return GroupTemplate(group, tuple(_with_names_of_their_own(kinds)))


def _with_names_of_their_own(kinds: Iterable[PodTemplate]) -> Iterator[Pod]:
    """Return the pods of the kinds. Names that occur more than once get a number."""
    names: Counter[str] = Counter()
    for kind in kinds:
        for _ in range(kind.count):
            pod = kind.pod
            if names[pod.name]:
                pod = pod.with_metadata(attrs.evolve(pod.metadata, name=f"{pod.name}-{names[pod.name]}"))
            yield pod
            names[kind.pod.name] += 1


def _admitted(template: PodTemplate, admission: Admission) -> PodTemplate:
    pod = admission.admit(template.pod)
    if pod is None:
        raise UsageError(admission.outcome.refused[-1].message)
    return attrs.evolve(template, pod=pod)


def _of_options(image: str, requests: dict[str, str]) -> PodTemplate:
    container = {"name": "main", "image": image or "image", "resources": {"requests": requests}}
    manifest = {"metadata": {"name": _DEFAULT_NAME}, "spec": {"containers": [container]}}
    try:
        return PodTemplate(_DEFAULT_NAME, _as_new(pod_from_manifest(manifest)))
    except ManifestError as error:
        raise UsageError(str(error)) from None


def _in_file(path: Path, loaded: Input) -> Iterable[PodTemplate]:
    found: dict[str, PodTemplate] = {}
    for pod in loaded.cluster.list(Pod):
        name = _workload(pod)
        before = found.get(name)
        if (
            before is not None
            and _is_of_custom_owner(pod)
            and before.pod.spec.containers != pod.spec.containers
        ):
            # A custom object such as a RayCluster has pods of several kinds; their names tell them apart.
            name = f"{pod.namespace}/{pod.name.rstrip(digits).rstrip('-')}"
            before = found.get(name)
        found[name] = (
            PodTemplate(name, _as_new(pod))
            if before is None
            else attrs.evolve(before, count=before.count + 1)
        )
    for workload in loaded.workloads:
        # The pods of these have claims or a node of their own, which a further one hasn't.
        has_its_own = isinstance(workload, DaemonSet) or (
            isinstance(workload, StatefulSet) and bool(workload.spec.volume_claim_templates)
        )
        if (pod_of_it := pod_alike(workload)) is None:
            continue
        name = _workload(pod_of_it)
        if name not in found:
            found[name] = PodTemplate(name, _as_new(pod_of_it))
        elif has_its_own:
            found[name] = attrs.evolve(found[name], pod=_as_new(pod_of_it))
    if not found:
        raise UsageError(f"{path}: there is no pod in it, and no workload with a template of one")
    return found.values()


def _is_of_custom_owner(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and not (owner.kind in KINDS and KINDS[owner.kind].reads(owner.api_version))


def _others(loaded: Input) -> Iterator[Named]:
    """Return the other objects of a file, without nodes and without claims that were made for its pods."""
    implied = loaded.cluster.implied_namespaces
    of_pods = set(_claims_of_pods(loaded))
    for kind in KINDS.values():
        if kind.cls not in (Node, Pod):
            for obj in loaded.cluster.list(kind.cls):
                is_of_pod = any(owner.kind == "Pod" for owner in obj.metadata.owner_references)
                is_of_pod |= kind.cls is PersistentVolumeClaim and obj.key in of_pods
                is_implied = kind.cls is Namespace and obj.name in implied
                if not is_of_pod and not is_implied:
                    yield obj.with_metadata(attrs.evolve(obj.metadata, uid="", resource_version=""))


def _claims_of_pods(loaded: Input) -> Iterator[str]:
    """Yield the keys of the claims of a StatefulSet's pods: further pods have claims of their own."""
    sets = {
        f"{each.namespace}/{each.name}": each for each in loaded.workloads if isinstance(each, StatefulSet)
    }
    for pod in loaded.cluster.list(Pod):
        if (owner := sets.get(_workload(pod))) is not None:
            for template in owner.spec.volume_claim_templates:
                yield f"{pod.namespace}/{template.metadata.name}-{pod.name}"


def _workload(pod: Pod) -> str:
    """Return the name of the pod's Deployment, Job or other controller; the pod's own name if it has none."""
    owner = pod.metadata.controller
    name = pod.name if owner is None else owner.name.removesuffix(f"-{pod.labels.get(TEMPLATE_HASH, '')}")
    return f"{pod.namespace}/{name}"


def _as_new(pod: Pod) -> Pod:
    """The pod as if it hadn't been created yet."""
    given = pod.metadata
    metadata = ObjectMeta(
        name=given.name,
        namespace=given.namespace,
        labels=given.labels,
        annotations=given.annotations,
        owner_references=given.owner_references,
    )
    # Without gates, since no scheduler tries a gated pod.
    return Pod(metadata, attrs.evolve(pod.spec, node_name="", scheduling_gates=()), PodStatus())


def _changed(template: PodTemplate, image: str, requests: dict[str, str]) -> PodTemplate:
    """The template with another image and other requests of its first container."""
    first, *others = template.pod.spec.containers
    resources = attrs.evolve(
        first.resources, requests=FrozenDict({**first.resources.requests, **_quantities(requests)})
    )
    first = attrs.evolve(first, image=image or first.image, resources=resources)
    spec = attrs.evolve(template.pod.spec, containers=(first, *others))
    return attrs.evolve(template, pod=attrs.evolve(template.pod, spec=spec))


def _quantities(requests: dict[str, str]) -> dict[str, Quantity]:
    return {name: parse_quantity(text) for name, text in requests.items()}
