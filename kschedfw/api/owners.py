"""Who made which pod: what is there already of a workload, and how its further pods are labelled and named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kschedfw.api.defaults import default_metadata, default_pod
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.kinds import KIND_OF
from kschedfw.api.meta import Named, ObjectMeta, OwnerReference
from kschedfw.api.pod import Pod, PodTemplateSpec
from kschedfw.api.workloads import Deployment, ReplicaSet


class Owners:
    """The loaded pods and ReplicaSets by their controllers, and the names of pods that are taken."""

    def __init__(self, objects: Iterable[Named]) -> None:
        self.names: set[tuple[str, str]] = set()
        self._pods: defaultdict[str, list[Pod]] = defaultdict(list)
        self._owned_pods: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        self._owned_replica_sets: defaultdict[tuple[str, str, str], list[ReplicaSet]] = defaultdict(list)
        for obj in objects:
            if isinstance(obj, Pod):
                self.names.add((obj.namespace, obj.name))
                self._pods[obj.namespace].append(obj)
                for key in _keys_of_owner(obj):
                    self._owned_pods[key].append(obj)
            elif isinstance(obj, ReplicaSet):
                for key in _keys_of_owner(obj):
                    self._owned_replica_sets[key].append(obj)

    def take(self, namespace: str, name: str) -> bool:
        """Take a name for a pod; False if it is taken."""
        free = (namespace, name) not in self.names
        self.names.add((namespace, name))
        return free

    def pods_in(self, namespace: str) -> Sequence[Pod]:
        return self._pods[namespace]

    def pods_of(self, owner: Named) -> list[Pod]:
        """The pods that `owner` controls, by its uid or by its kind and name."""
        found = (pod for key in _keys(owner) for pod in self._owned_pods.get(key, ()))
        return list({pod.key: pod for pod in found}.values())

    def active_pods_of(self, owner: Named) -> list[Pod]:
        """Those of `pods_of` that a controller counts: neither over nor being deleted."""
        return [pod for pod in self.pods_of(owner) if not pod.is_terminal and not pod.is_terminating]

    def replica_sets_of(self, owner: Deployment) -> list[ReplicaSet]:
        return [replica_set for key in _keys(owner) for replica_set in self._owned_replica_sets.get(key, ())]


def _keys(owner: Named) -> tuple[tuple[str, str, str], ...]:
    kind = KIND_OF[type(owner)].name
    return (("uid", owner.uid, ""), (kind, owner.namespace, owner.name))


def _keys_of_owner(obj: Named) -> tuple[tuple[str, str, str], ...]:
    owner = obj.metadata.controller
    if owner is None:
        return ()
    return (("uid", owner.uid, ""), (owner.kind, obj.namespace, owner.name))


def owner_reference(owner: Named) -> OwnerReference:
    kind = KIND_OF[type(owner)]
    return OwnerReference(
        kind=kind.name, name=owner.name, uid=owner.uid, api_version=kind.api_version, controller=True
    )


def make_pod(
    owner: Named,
    template: PodTemplateSpec,
    name: str,
    labels: Mapping[str, str] = EMPTY,
    annotations: Mapping[str, str] = EMPTY,
) -> Pod:
    """A pod of `owner` from its template, with more labels and annotations; the template's own name says nothing."""
    given = template.metadata
    metadata = ObjectMeta(
        name=name,
        namespace=owner.namespace,
        labels=FrozenDict({**given.labels, **labels}) if labels else given.labels,
        annotations=FrozenDict({**given.annotations, **annotations}) if annotations else given.annotations,
        owner_references=(owner_reference(owner),),
    )
    return default_pod(Pod(default_metadata(metadata, "Pod", namespaced=True), template.spec))
