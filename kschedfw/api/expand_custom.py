"""Creation of what the controllers of well-known custom objects make: pods, and workloads of Kubernetes' own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from kschedfw.api.custom import CustomObject
from kschedfw.api.custom_owners import Part, hindrance, made_manifest, parts_of
from kschedfw.api.expand import Refuse
from kschedfw.api.field_errors import FieldError, FieldErrors
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.limits import Limits, how_to_raise
from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen

Read: TypeAlias = Callable[[Mapping[str, Any], Named], Named | None]
"""Reads a manifest that was made for an owner; None if an object of its name is there already."""


@frozen
class CustomExpansion:
    """The objects of an input with what the controllers of custom objects make.

    Attributes:
        objects: all objects in their order, each custom object followed by what is made for it.
        made: the number of pods that were made, by custom object; those of workloads that were made are not yet.
        without_pods: the reason why a custom object has no pods, by custom object.
    """

    objects: Collection[Named]
    made: FrozenDict[str, int] = EMPTY
    without_pods: FrozenDict[str, str] = EMPTY


def expand_custom(
    objects: Iterable[Named], owners: Iterable[CustomObject], limits: Limits, read: Read, refuse: Refuse
) -> CustomExpansion:
    """Return the objects with what the controllers of the owners make; `refuse` is called with each error."""
    lacking = {id(owner) for owner in owners}
    found: list[Named] = []
    made: Counter[str] = Counter()
    without_pods: dict[str, str] = {}
    for obj in list(objects):
        found.append(obj)
        if not isinstance(obj, CustomObject) or id(obj) not in lacking:
            continue
        name = f"{obj.kind.name} {obj.namespace or DEFAULT_NAMESPACE}/{obj.name}"
        if reason := hindrance(obj):
            without_pods[name] = reason
            continue
        try:
            for part in parts_of(obj):
                new = list(_made(part, obj, limits, sum(made.values()), read))
                found += new
                if pods := sum(isinstance(each, Pod) for each in new):
                    made[name] += pods
        except FieldErrors as error:
            for each_error in error.errors:
                refuse(obj, each_error)
    return CustomExpansion(found, FrozenDict(made), FrozenDict(without_pods))


def _made(part: Part, owner: CustomObject, limits: Limits, before: int, read: Read) -> Iterator[Named]:
    """Yield the objects of the part.

    Raises:
        FieldErrors: they are invalid, or too many; the paths are those in the owner.
    """
    if part.copies > (left := limits.pods - before):
        why = f"stands for {part.copies} more {part.kind}s, but only {left} may still be made"
        raise FieldErrors([FieldError(part.path, f"{why}: {how_to_raise('pods', limits.pods)}")])
    for number in range(part.copies):
        try:
            obj = read(made_manifest(part, number, owner), owner)
        except ManifestError as error:
            raise FieldErrors(
                [attrs.evolve(each, path=part.place(each.path)) for each in error.errors]
            ) from None
        if obj is None:
            continue
        created = owner.metadata.creation_timestamp
        if created is not None and not isinstance(obj, Pod):
            # An API server would have its pods, too.
            obj = obj.with_metadata(attrs.evolve(obj.metadata, creation_timestamp=created))
        yield obj
