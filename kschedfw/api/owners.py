"""Workloads and their pods, and the labels and names of new pods."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from kschedfw.api.defaults import default_metadata, default_pod
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.kinds import KIND_OF, group_of, kind_of
from kschedfw.api.meta import Named, ObjectMeta, OwnerReference
from kschedfw.api.pod import Pod, PodTemplateSpec
from kschedfw.api.workloads import Deployment, ReplicaSet, WorkloadObject

N = TypeVar("N", bound=Named)

TEMPLATE_HASH: Final = "pod-template-hash"
_NO_GROUP: Final = None
"""The API group of a reference without an apiVersion, which an API server would refuse; it fits any group."""

_OwnerKey: TypeAlias = str | tuple[str | None, str, str, str]
"""The uid of an owner, or its group, kind, namespace and name."""


class Owners:
    """The loaded pods and ReplicaSets by their controllers, and the names of pods that are taken."""

    def __init__(self, objects: Iterable[Named]) -> None:
        self._objects = tuple(objects)
        self.names = {(obj.namespace, obj.name) for obj in self._objects if isinstance(obj, Pod)}
        self._loaded = frozenset(self.names)

    @functools.cached_property
    def _owned_pods(self) -> Mapping[_OwnerKey, list[Pod]]:
        return self._owned(Pod)

    @functools.cached_property
    def _owned_replica_sets(self) -> Mapping[_OwnerKey, list[ReplicaSet]]:
        return self._owned(ReplicaSet)

    def _owned(self, cls: type[N]) -> Mapping[_OwnerKey, list[N]]:
        owned: defaultdict[_OwnerKey, list[N]] = defaultdict(list)
        for obj in self._objects:
            if isinstance(obj, cls):
                for key in _keys_of_owner(obj):
                    owned[key].append(obj)
        return owned

    @functools.cached_property
    def _by_template_hash(self) -> Mapping[tuple[str, str], Counter[str]]:
        counted: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for pod in self._objects:
            template_hash = pod.labels.get(TEMPLATE_HASH) if isinstance(pod, Pod) else None
            owner = pod.metadata.controller
            if owner is None or owner.kind != "ReplicaSet" or template_hash is None:
                continue
            name = owner.name.removesuffix(f"-{template_hash}")
            if name != owner.name:
                counted[pod.namespace, name][template_hash] += 1
        return counted

    def is_loaded(self, namespace: str, name: str) -> bool:
        """Tell whether a pod of that name was loaded."""
        return (namespace, name) in self._loaded

    def take(self, namespace: str, name: str) -> bool:
        """Reserve a name for a pod; return False if it is taken."""
        free = (namespace, name) not in self.names
        self.names.add((namespace, name))
        return free

    def pods_by_template_hash(self, owner: Deployment) -> Counter[str]:
        """Return the number of pods per ReplicaSet whose name is the Deployment's with a template hash."""
        return self._by_template_hash.get((owner.namespace, owner.name), Counter())

    def pods_of(self, owner: WorkloadObject) -> list[Pod]:
        """Return the pods that `owner` controls, by its uid or by its kind and name."""
        found = (pod for key in _keys(owner) for pod in self._owned_pods.get(key, ()))
        return list({pod.key: pod for pod in found}.values())

    def active_pods_of(self, owner: WorkloadObject) -> list[Pod]:
        """Return the pods that a controller counts: neither terminal nor being deleted."""
        return [pod for pod in self.pods_of(owner) if not pod.is_terminal and not pod.is_terminating]

    def replica_sets_of(self, owner: Deployment) -> list[ReplicaSet]:
        return [replica_set for key in _keys(owner) for replica_set in self._owned_replica_sets.get(key, ())]


def _keys(owner: WorkloadObject) -> tuple[_OwnerKey, ...]:
    kind = KIND_OF[type(owner)]
    named = ((group, kind.name, owner.namespace, owner.name) for group in (*kind.groups, _NO_GROUP))
    return (owner.uid, *named)


def _keys_of_owner(obj: Named) -> tuple[_OwnerKey, ...]:
    owner = obj.metadata.controller
    if owner is None:
        return ()
    # Other groups have a Job, too: those of Volcano aren't Kubernetes'.
    group = group_of(owner.api_version) if owner.api_version else _NO_GROUP
    named = (group, owner.kind, obj.namespace, owner.name)
    return (owner.uid, named) if owner.uid else (named,)


def owner_reference(owner: Named) -> OwnerReference:
    kind = kind_of(owner)
    return OwnerReference(
        kind=kind.name, name=owner.name, uid=owner.uid, api_version=kind.api_version, controller=True
    )


def pod_from_template(
    owner: Named,
    template: PodTemplateSpec,
    name: str,
    labels: Mapping[str, str] = EMPTY,
    annotations: Mapping[str, str] = EMPTY,
) -> Pod:
    """Return a pod of `owner` from its template, with more labels and annotations; the template's name is ignored."""
    given = template.metadata
    metadata = ObjectMeta(
        name=name,
        namespace=owner.namespace,
        labels=FrozenDict({**given.labels, **labels}) if labels else given.labels,
        annotations=FrozenDict({**given.annotations, **annotations}) if annotations else given.annotations,
        owner_references=(owner_reference(owner),),
    )
    return default_pod(Pod(default_metadata(metadata, "Pod", namespaced=True), template.spec))
