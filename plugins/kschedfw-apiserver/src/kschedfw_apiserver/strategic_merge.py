"""Kubernetes' strategic merge patch, which merges lists of objects by a key, with directives (`$patch` and others)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kschedfw_apiserver.status import bad_request

# The patch merge keys of the types in k8s.io/api, by the name of the list. The first key that all items have is used.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "addresses": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
    "resourceClaimStatuses": ("name",),
    "schedulingGates": ("name",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "taints": ("key",),
    "ownerReferences": ("uid",),
    "drivers": ("name",),
}
_SETS: Final = frozenset({"finalizers"})

_PATCH: Final = "$patch"
_ORDER: Final = "$setElementOrder/"
_FROM_SET: Final = "$deleteFromPrimitiveList/"
_RETAIN: Final = "$retainKeys"


def strategic_merge(manifest: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with the patch applied.

    Raises StatusError if a directive is unknown, or an item lacks its key.
    """
    match patch.get(_PATCH):
        case None | "merge":
            result = dict(manifest)
        case "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        case "delete":
            return {}
        case other:
            raise bad_request(f"unknown patch type found: {other}")
    if isinstance(retained := patch.get(_RETAIN), list):
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_FROM_SET):
            name = key.removeprefix(_FROM_SET)
            result[name] = [each for each in result.get(name) or () if each not in value]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(key, result.get(key), value)
    for key, order in patch.items():
        name = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and isinstance(result.get(name), list):
            result[name] = _arranged(name, manifest.get(name) or [], result[name], order)
    return result


def _merged(name: str, old: Any, new: Any) -> Any:
    if isinstance(new, dict):
        return strategic_merge(old if isinstance(old, dict) else {}, new)
    if not isinstance(new, list):
        return new
    if name in _SETS:
        return [*(old or ()), *(each for each in new if each not in (old or ()))]
    key = _key_of(name, new)
    if key is None:
        return new
    if any(item.get(_PATCH) == "replace" for item in new):
        return [item for item in new if item.get(_PATCH) != "replace"]
    return _merged_items(name, key, [each for each in old or () if isinstance(each, dict)], new)


def _merged_items(name: str, key: str, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[Any]:
    result = list(old)
    for item in new:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key} (in {name})")
        positions = [at for at, each in enumerate(result) if each.get(key) == item[key]]
        if item.get(_PATCH) == "delete":
            result = [each for each in result if each.get(key) != item[key]]
        elif positions:
            result[positions[0]] = strategic_merge(result[positions[0]], item)
        else:
            result.append(strategic_merge({}, item))
    return _arranged(name, old, result, new)


def _arranged(name: str, old: list[Any], items: list[Any], order: list[Any]) -> list[Any]:
    """Return the items: items that the patch names in the patch's order, others in their former order.

    As in Kubernetes, another item precedes one of the patch only if it did so before.
    """
    key = _key_of(name, items)

    def identity(item: Any) -> Any:
        return item.get(key) if key is not None and isinstance(item, dict) else item

    was, wanted = [identity(each) for each in old], [identity(each) for each in order]
    named = sorted(
        (each for each in items if identity(each) in wanted), key=lambda each: wanted.index(identity(each))
    )
    others = [each for each in items if identity(each) not in wanted]
    arranged: list[Any] = []
    while named and others:
        first, second = identity(others[0]), identity(named[0])
        is_before = first in was and second in was and was.index(first) < was.index(second)
        arranged.append((others if is_before else named).pop(0))
    return [*arranged, *named, *others]


def _key_of(name: str, items: list[Any]) -> str | None:
    """Return the merge key of a list of objects; None for a list that is replaced as a whole."""
    keys = _KEYS.get(name, ())
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    return next((key for key in keys if any(key in item for item in items)), keys[0] if keys else None)
