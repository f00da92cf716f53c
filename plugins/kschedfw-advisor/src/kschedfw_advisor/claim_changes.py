"""Changes of storage: claims that ask for something else, classes that allow more, and volumes that are free or new."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Final

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Transaction
from kschedfw.api import (
    CSISource,
    Named,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Quantity,
    StorageClass,
    TopologyRequirement,
    TopologySelectorTerm,
    VolumePhase,
    counted,
)
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change, Effort
from kschedfw_advisor.edits import Edit, written

_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_HALF: Final = 0.5


@attrs.frozen
class _ChangeClaims(Change):
    """Claims that are made anew with another spec, since the API server lets nobody change it.

    `claims` are the keys of those of all pods: a StatefulSet's have one template.
    """

    usual_effort = Effort.POD_RULE
    claims: tuple[str, ...]

    @property
    def _where(self) -> str:
        first, *rest = self.claims
        return f"in claim {first}" if not rest else f"in {counted(len(self.claims), 'claim')} such as {first}"

    @abstractmethod
    def _altered(self, spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec: ...

    def _anew(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        # A claim without a creation timestamp is a new one, for which its provisioner makes a volume.
        metadata = attrs.evolve(claim.metadata, creation_timestamp=None)
        return attrs.evolve(claim, metadata=metadata, spec=self._altered(claim.spec))

    @override
    def others_changed(self, cluster: Cluster) -> Iterator[tuple[Named, Named]]:
        for key in self.claims:
            if (claim := cluster.get(PersistentVolumeClaim, key)) is not None:
                yield claim, self._anew(claim)


@attrs.frozen
class ResizeClaims(_ChangeClaims):
    """Claims with a smaller size."""

    size: Quantity
    instead_of: Quantity

    def __str__(self) -> str:
        return f"request {self.size} of storage instead of {self.instead_of} {self._where}"

    @property
    def effort(self) -> Effort:
        return Effort.TOO_MUCH if self.amount > _HALF else Effort.POD_REQUEST

    @property
    def amount(self) -> float:
        return 1 - self.size.value() / self.instead_of.value()

    def _altered(self, spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
        requests = FrozenDict({**spec.resources.requests, "storage": self.size})
        return attrs.evolve(spec, resources=attrs.evolve(spec.resources, requests=requests))


@attrs.frozen
class ReclassClaims(_ChangeClaims):
    """Claims of another StorageClass; `is_typo` says that the names are close, and nothing has the old one."""

    storage_class: str
    instead_of: str
    is_typo: bool = False

    def __str__(self) -> str:
        if self.is_typo:
            return f"correct {self.instead_of} to {self.storage_class}, a StorageClass, {self._where}"
        return f"storageClassName {self.storage_class} instead of {self.instead_of or 'none'} {self._where}"

    @property
    def effort(self) -> Effort:
        return Effort.TYPO if self.is_typo else self.usual_effort

    @property
    def amount(self) -> float:
        return 1.0

    def _altered(self, spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
        return attrs.evolve(spec, storage_class_name=self.storage_class)


@attrs.frozen
class MakeDefaultClass(_ChangeClaims):
    """A StorageClass that is the default, so that claims without a class get it, those that wait as well."""

    storage_class: str

    def __str__(self) -> str:
        return f"make StorageClass {self.storage_class} the default, which claims without a class get"

    def _altered(self, spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
        # The volume controller does so once there is a default class (`RetroactiveDefaultStorageClass`).
        return attrs.evolve(spec, storage_class_name=self.storage_class)

    @override
    def others_changed(self, cluster: Cluster) -> Iterator[tuple[Named, Named]]:
        if (old := cluster.get(StorageClass, self.storage_class)) is not None:
            yield old, _default(old)
        yield from super().others_changed(cluster)


def _default(storage_class: StorageClass) -> StorageClass:
    annotations = FrozenDict({**storage_class.annotations, _IS_DEFAULT: "true"})
    return storage_class.with_metadata(attrs.evolve(storage_class.metadata, annotations=annotations))


@attrs.frozen
class RemodeClaims(_ChangeClaims):
    """Claims with the accessModes and the volumeMode of a volume, and without a selector that it doesn't meet."""

    access_modes: tuple[str, ...] | None = None
    volume_mode: str | None = None
    drops_selector: bool = False

    def __str__(self) -> str:
        told = []
        if self.access_modes is not None:
            told.append(f"accessModes {', '.join(self.access_modes)}")
        if self.volume_mode is not None:
            told.append(f"volumeMode {self.volume_mode}")
        if self.drops_selector:
            told.append("no selector")
        return f"{' and '.join(told)} {self._where}"

    @property
    def amount(self) -> float:
        return 1.0

    def _altered(self, spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
        return attrs.evolve(
            spec,
            access_modes=spec.access_modes if self.access_modes is None else self.access_modes,
            volume_mode=spec.volume_mode if self.volume_mode is None else self.volume_mode,
            selector=None if self.drops_selector else spec.selector,
        )


@attrs.frozen
class FreeVolume(Change):
    """A Released volume without its claimRef, so that another claim may get it."""

    usual_effort = Effort.NODE_LABEL
    volume: str

    def __str__(self) -> str:
        return f"remove the claimRef of volume {self.volume}, which is Released and keeps its data"

    @override
    def others_changed(self, cluster: Cluster) -> Iterator[tuple[Named, Named]]:
        if (old := cluster.get(PersistentVolume, self.volume)) is not None:
            spec = attrs.evolve(old.spec, claim_ref=None)
            yield old, attrs.evolve(old, spec=spec, status=VolumePhase("Available"))


@attrs.frozen
class WidenClass(Change):
    """A StorageClass that makes volumes in one more topology, such as a zone; it is made anew."""

    usual_effort = Effort.NODE_LABEL
    storage_class: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"allow {self.key}={self.value} in the allowedTopologies of StorageClass {self.storage_class}"

    @override
    def others_changed(self, cluster: Cluster) -> Iterator[tuple[Named, Named]]:
        if (old := cluster.get(StorageClass, self.storage_class)) is not None:
            yield old, attrs.evolve(old, allowed_topologies=tuple(map(self._wider, old.allowed_topologies)))

    def _wider(self, term: TopologySelectorTerm) -> TopologySelectorTerm:
        return TopologySelectorTerm(
            tuple(
                TopologyRequirement(each.key, (*each.values, self.value)) if each.key == self.key else each
                for each in term.match_label_expressions
            )
        )


@attrs.frozen
class AddVolumes(Change):
    """A cluster with a PersistentVolume for each of the claims, which every node can reach."""

    usual_effort = Effort.NEW_NODES
    claims: tuple[str, ...]
    size: Quantity
    access_modes: tuple[str, ...]
    storage_class: str
    volume_mode: str = "Filesystem"

    def __str__(self) -> str:
        what = "a PersistentVolume" if len(self.claims) == 1 else f"{len(self.claims)} PersistentVolumes"
        of_class = f"of StorageClass {self.storage_class}" if self.storage_class else "without a class"
        mode = "" if self.volume_mode == "Filesystem" else f", {self.volume_mode}"
        whose = f"claim {self.claims[0]}" if len(self.claims) == 1 else f"claims such as {self.claims[0]}"
        return f"make {what} of {self.size}, {', '.join(self.access_modes)}{mode}, {of_class}, for {whose}"

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        trial.add(*self._volumes(cluster))

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        for each in self._volumes(cluster):
            yield Edit(f"PersistentVolume {each.name}", "", None, written(each))

    def _volumes(self, cluster: Cluster) -> Iterator[PersistentVolume]:
        taken = {each.name for each in cluster.list(PersistentVolume)}
        for key in self.claims:
            name = f"new-{key.replace('/', '-')}"
            while name in taken:
                name += "-1"
            spec = PersistentVolumeSpec(
                capacity=FrozenDict({"storage": self.size}),
                access_modes=self.access_modes,
                storage_class_name=self.storage_class,
                volume_mode=self.volume_mode,
                csi=CSISource(driver="any.example.com", volume_handle=name),
            )
            yield PersistentVolume(ObjectMeta(name=name), spec, VolumePhase("Available"))
