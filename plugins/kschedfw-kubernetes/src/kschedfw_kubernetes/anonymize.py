"""Renaming of objects such that decisions about them stay the same.

Texts that users choose become `node-1`, `pod-2`, `value-3`: equal texts get the same name, so that references
stay intact. Texts that Kubernetes and vendors give a meaning are kept: keys of `kubernetes.io` and `k8s.io`,
resources, drivers, devices' attributes and the expressions about them, amounts, times, numbers, conditions,
schedulers' names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

from kschedfw.api import (
    BoundedDict,
    CustomObject,
    CustomResource,
    Named,
    PersistentVolumeClaim,
    Pod,
    object_from_manifest,
    to_manifest,
)

_SEPARATOR = re.compile(r"(/|__)")

_KEPT_FIELDS: Final = frozenset(
    {
        *("apiVersion", "apiGroup", "kind", "type", "phase", "status", "reason", "resourceVersion"),
        *("protocol", "hostIP", "clusterIP", "effect", "operator", "action", "mode", "medium", "fsType"),
        *("resource", "resourceName", "schedulerName", "driver", "provisioner", "attacher"),
        *("restartPolicy", "preemptionPolicy", "whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy"),
        *("unhealthyPodEvictionPolicy", "allocationMode", "volumeMode", "accessModes", "volumeBindingMode"),
        *("expression", "attributes", "matchAttribute", "distinctAttribute", "declaredFeatures"),
        *("capacity", "allocatable", "requests", "limits", "overhead", "allocatedResources", "storage"),
        *("consumedCapacity", "consumesCounters", "sharedCounters", "counters", "requestPolicy"),
        *("storageCapacity", "maximumVolumeSize", "managementPolicy", "podManagementPolicy"),
        *("minAvailable", "maxUnavailable", "bindingConditions", "bindingFailureConditions", "finalizers"),
        *("topologyKeys", "hard", "scopes", "scopeName", "completionMode"),
    }
)
"""Fields whose values mean something to Kubernetes, with all that is in them."""
_LABEL_MAPS: Final = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "selector"})
_LABEL_KEYS: Final = frozenset({"key", "topologyKey", "matchLabelKeys", "mismatchLabelKeys"})
_DROPPED: Final = frozenset({"message", "generateName"})
_IMAGES: Final = frozenset({"image", "names"})
_WELL_KNOWN: Final = re.compile(r"(^|[./])(kubernetes|k8s)\.io(/|$)")
_LATEST_CLAIMS: Final = 100_000
"""Claims of pods' own volumes whose names are remembered: as many as there may be pods with such volumes at a time."""
_TIME_OR_NUMBER: Final = re.compile(r"[-+]?\d+(\.\d+)?|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)")
_KEPT_TEXTS: Final = frozenset(
    {
        *("", "metadata.name", "true", "false", "yes", "no", "linux", "windows", "amd64", "arm64", "None"),
        *("default", "kube-system", "kube-public", "kube-node-lease"),
        *("system-node-critical", "system-cluster-critical"),
    }
)


class Anonymizer:
    """A renamer of objects. A text keeps its new name for the life of the object.

    With a `secret`, of up to 64 bytes, a name is `n` and a keyed hash of the text: the same in every process
    with that secret, and in memory that doesn't grow with the number of names. Keep the secret apart from the
    objects: with it, a guess of the original text can be checked.
    """

    def __init__(self, secret: bytes = b"") -> None:
        self._secret = secret
        self._names: dict[str, str] = BoundedDict(_LATEST_CLAIMS) if secret else {}
        """Names by what they stand for; with a secret, only those of claims that are named after pod and volume."""
        self._counts: Counter[str] = Counter()

    def anonymized(self, objects: Iterable[Named]) -> Iterator[Named]:
        """Yield the objects under other names, in their order."""
        everything = list(objects)
        for obj in everything:
            self._name(obj)
        for obj in everything:
            yield object_from_manifest(self._map("", to_manifest(obj)), check=False)

    def manifest(self, obj: Named) -> dict[str, Any]:
        """Return the manifest of an object under another name."""
        self._name(obj)
        return self._map("", to_manifest(obj))

    def _name(self, obj: Named) -> None:
        """Choose the names of objects before all other texts, so that a name shows the object's kind."""
        kind = obj.kind.name if isinstance(obj, CustomObject | CustomResource) else type(obj).__name__
        if _is_kept(obj.name):
            return
        for pod, volume in _own_claims(obj):
            # A pod's claim for such a volume has a name that is made of these two; scheduling makes it, too.
            self._names[f"{pod}-{volume}"] = f"{self._text(pod, 'pod')}-{self._text(volume, 'volume')}"
        self._text(obj.name, kind.lower())

    def _value(self, field: str, value: Any) -> Any:
        if field in _KEPT_FIELDS and not _has_names(field, value):
            return value
        if isinstance(value, Mapping):
            return self._map(field, value)
        if isinstance(value, list):
            return [self._value(field, item) for item in value]
        return self._string(field, value) if isinstance(value, str) else value

    def _map(self, field: str, value: Mapping[str, Any]) -> dict[str, Any]:
        if field in _LABEL_MAPS and all(isinstance(content, str) for content in value.values()):
            return {
                self._string("key", key): self._string("value", content)
                for key, content in value.items()
                # Other annotations may hold private text.
                if field != "annotations" or _WELL_KNOWN.search(key)
            }
        return {key: self._value(key, content) for key, content in value.items() if key not in _DROPPED}

    def _string(self, field: str, text: str) -> str:
        if field in _IMAGES:
            return f"{self._text(_with_tag(text), 'image')}:1"
        label = "key" if field in _LABEL_KEYS else "value" if field in ("value", "values") else "name"
        # Both halves of a key, of `namespace/name`, of a request and its alternative, of a volume in several zones.
        return "".join(
            part if part in ("/", "__") or _is_kept(part) else self._text(part, label)
            for part in ([text] if _is_kept(text) else _SEPARATOR.split(text))
        )

    def _text(self, text: str, label: str) -> str:
        name = self._names.get(text)
        if name is None and self._secret:
            # 64 bits: of a million names two are equal with a probability of 3 in 10⁸.
            return f"n{blake2b(text.encode(), key=self._secret, digest_size=8).hexdigest()}"
        if name is None:
            self._counts[label] += 1
            name = self._names[text] = f"{label}-{self._counts[label]}"
        return name


def _own_claims(obj: Named) -> Iterator[tuple[str, str]]:
    """Yield the names of a pod and of its volume for each claim that the pod owns, as far as the object has them."""
    if isinstance(obj, Pod):
        yield from ((obj.name, volume.name) for volume in obj.spec.volumes if volume.ephemeral is not None)
    elif isinstance(obj, PersistentVolumeClaim):
        owner = obj.metadata.controller
        if owner is not None and owner.kind == "Pod" and obj.name.startswith(f"{owner.name}-"):
            yield owner.name, obj.name.removeprefix(f"{owner.name}-")


def _has_names(field: str, value: Any) -> bool:
    """Tell whether a field that is kept in other objects has names in this one: a status, or a claim's requests."""
    return isinstance(value, Mapping if field == "status" else list) and field in ("status", "requests")


def _is_kept(text: str) -> bool:
    return (
        text in _KEPT_TEXTS
        or _WELL_KNOWN.search(text) is not None
        or _TIME_OR_NUMBER.fullmatch(text) is not None
    )


def _with_tag(image: str) -> str:
    """Return the image's name with a tag, as ImageLocality compares images."""
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image
