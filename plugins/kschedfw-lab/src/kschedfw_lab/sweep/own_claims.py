"""The claims of drawn pods: a pod that is drawn brings its own ones, with the volumes that they are bound to."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

import attrs

from kschedfw import Pod
from kschedfw.api import Named, PersistentVolume, PersistentVolumeClaim, ResourceClaim

_Claim: TypeAlias = PersistentVolumeClaim | ResourceClaim
_Key: TypeAlias = tuple[type[Named], str]
NamedT = TypeVar("NamedT", bound=Named)

_CLAIMS: Final = (PersistentVolumeClaim, ResourceClaim)


class FreeNames:
    """Gives objects names that no other object of their kind has."""

    def __init__(self, taken: Iterable[Named]) -> None:
        self._taken: set[_Key] = {(type(each), each.key) for each in taken}

    def of(self, obj: Named) -> str:
        """Return the object's name, or `NAME.2` and so on if another object has it. It is taken from now on."""
        names = itertools.chain([obj.name], (f"{obj.name}.{number}" for number in itertools.count(2)))
        prefix = f"{obj.namespace}/" if obj.namespace else ""
        name = next(name for name in names if (type(obj), prefix + name) not in self._taken)
        self._taken.add((type(obj), prefix + name))
        return name


class OwnClaims:
    """The claims that belong to one pending pod each: no other pod names them.

    Claims that several pods name are shared by those that are drawn, too. Claims of generic ephemeral volumes and of
    templates are no pod's own: a controller makes them anew for each pod that comes.
    """

    def __init__(self, objects: Sequence[Named], pending: Iterable[Pod]) -> None:
        claims: dict[_Key, _Claim] = {
            (type(each), each.key): each for each in objects if isinstance(each, _CLAIMS)
        }
        volumes = {each.name: each for each in objects if isinstance(each, PersistentVolume)}
        # A pod that names a claim twice is one user.
        users = Counter(key for each in objects if isinstance(each, Pod) for key in set(_named_by(each)))
        self._owned: dict[_Key, tuple[_Claim, PersistentVolume | None]] = {}
        for pod in pending if claims else ():
            for key in _named_by(pod):
                if (claim := claims.get(key)) is not None and users[key] == 1:
                    volume = volumes.get(_volume_name(claim))
                    self._owned[key] = claim, volume

    def __iter__(self) -> Iterator[Named]:
        """Yield the claims, each followed by its volume if it is bound to one."""
        for claim, volume in self._owned.values():
            yield claim
            if volume is not None:
                yield volume

    def brought(self, pod: Pod, names: FreeNames) -> tuple[Pod, Sequence[Named]]:
        """Return the pod, and the claims and volumes that it brings; their names are free ones, and it has these."""
        brought: list[Named] = []
        renamed: dict[_Key, str] = {}
        for key in _named_by(pod):
            if key not in self._owned or key in renamed:
                continue
            claim, volume = self._owned[key]
            copy = _renamed(claim, names.of(claim))
            renamed[key] = copy.name
            if isinstance(copy, PersistentVolumeClaim) and volume is not None:
                volume = _renamed(volume, names.of(volume))
                copy = attrs.evolve(copy, spec=attrs.evolve(copy.spec, volume_name=volume.name))
                if (reference := volume.spec.claim_ref) is not None:
                    # A reference without a uid reserves the volume for any claim of that name, so it stays without one.
                    reference = attrs.evolve(reference, name=copy.name, uid=copy.uid if reference.uid else "")
                    volume = attrs.evolve(volume, spec=attrs.evolve(volume.spec, claim_ref=reference))
                brought.append(volume)
            brought.append(copy)
        return (_naming(pod, renamed) if renamed else pod), brought


def _named_by(pod: Pod) -> Iterator[_Key]:
    """Yield the claims that a pod names."""
    for volume in pod.storage:
        if volume.persistent_volume_claim is not None:
            yield PersistentVolumeClaim, f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name is not None:
            yield ResourceClaim, f"{pod.namespace}/{claim.resource_claim_name}"


def _volume_name(claim: _Claim) -> str:
    return claim.spec.volume_name if isinstance(claim, PersistentVolumeClaim) else ""


def _renamed(obj: NamedT, name: str) -> NamedT:
    """Return the object with another name and, if it has one, another uid; itself if it has that name."""
    if name == obj.name:
        return obj
    uid = f"{obj.uid}.{name}" if obj.uid else ""
    return obj.with_metadata(attrs.evolve(obj.metadata, name=name, uid=uid))


def _naming(pod: Pod, renamed: dict[_Key, str]) -> Pod:
    """Return the pod with the new names of its claims."""
    volumes = []
    for volume in pod.spec.volumes:
        source = volume.persistent_volume_claim
        name = (
            None
            if source is None
            else renamed.get((PersistentVolumeClaim, f"{pod.namespace}/{source.claim_name}"))
        )
        if source is not None and name is not None:
            volume = attrs.evolve(volume, persistent_volume_claim=attrs.evolve(source, claim_name=name))
        volumes.append(volume)
    claims = []
    for claim in pod.spec.resource_claims:
        name = renamed.get((ResourceClaim, f"{pod.namespace}/{claim.resource_claim_name}"))
        claims.append(claim if name is None else attrs.evolve(claim, resource_claim_name=name))
    spec = attrs.evolve(pod.spec, volumes=tuple(volumes), resource_claims=tuple(claims))
    return attrs.evolve(pod, spec=spec)
