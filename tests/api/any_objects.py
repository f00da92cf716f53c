"""Strategies for lists of objects of any kind, known or custom, with any metadata: what a dump of a cluster has."""

from __future__ import annotations

import copy
from typing import Any, Final

from hypothesis import strategies as st

from kschedfw.api.kinds import KINDS

Manifest = dict[str, Any]

_LABELS: Final = {"app": "web"}
_TEMPLATE: Final[Manifest] = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "main"}]}}
_WORKLOAD: Final = {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}}
_JOB_TEMPLATE: Final = {**_TEMPLATE, "spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}
_REQUESTS: Final = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
_CONTENTS: Final[dict[str, Manifest]] = {
    "Node": {"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}},
    "Pod": {"spec": _TEMPLATE["spec"]},
    "ReplicationController": {"spec": {"selector": _LABELS, "template": _TEMPLATE}},
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), _WORKLOAD),
    "Job": {"spec": {"template": _JOB_TEMPLATE}},
    "CronJob": {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": _JOB_TEMPLATE}}}},
    "PriorityClass": {"value": 1},
    "RuntimeClass": {"handler": "runc"},
    "StorageClass": {"provisioner": "example.org/disks"},
    "CSIStorageCapacity": {"storageClassName": "fast"},
    "ResourceClaim": {"spec": _REQUESTS},
    "ResourceClaimTemplate": {"spec": {"spec": _REQUESTS}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "broken", "effect": "NoSchedule"}}},
    "ResourceSlice": {
        "spec": {
            "driver": "example.org",
            "nodeName": "web",
            "pool": {"name": "web", "generation": 1, "resourceSliceCount": 1},
        }
    },
    "PodGroup": {"spec": {"schedulingPolicy": {"basic": {}}}},
}
"""What the API server requires of an object, beside its name."""

_FOREIGN: Final = (
    ("example.org/v1", "Widget"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("batch.volcano.sh/v1alpha1", "Job"),
    ("apps.kruise.io/v1beta1", "StatefulSet"),
    ("argoproj.io/v1alpha1", "Rollout"),
    # Kubernetes' own, which scheduling doesn't read.
    ("v1", "ConfigMap"),
    ("networking.k8s.io/v1", "Ingress"),
)
"""Versions and kinds without a class of their own; some share the name of a kind with one."""

KIND_NAMES: Final = (
    *((kind.api_version, kind.name) for kind in KINDS.values()),
    *_FOREIGN,
)


def object_of(version: str, kind: str, metadata: Manifest) -> Manifest:
    """Return a valid object of the kind."""
    content = _CONTENTS.get(kind, {}) if version == _version_of(kind) else {"spec": {"replicas": 2}}
    return copy.deepcopy({"apiVersion": version, "kind": kind, "metadata": metadata, **content})


def _version_of(kind: str) -> str:
    return KINDS[kind].api_version if kind in KINDS else ""


_NAMES: Final = st.sampled_from(["web", "web-0", "db"])
_UIDS: Final = st.sampled_from(["u1", "u2", "u3"])
_TIMES: Final = st.sampled_from(["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"])
_KIND_NAMES: Final = st.sampled_from(KIND_NAMES)
_OWNERS: Final = st.builds(
    lambda kind, name, uid, controller: {
        "apiVersion": kind[0],
        "kind": kind[1],
        "name": name,
        "uid": uid,
        **controller,
    },
    _KIND_NAMES,
    _NAMES,
    _UIDS,
    st.sampled_from([{}, {"controller": True}]),
)
_METADATA: Final = st.fixed_dictionaries(
    {"name": _NAMES},
    optional={
        "namespace": st.sampled_from(["default", "shop"]),
        "uid": _UIDS,
        "creationTimestamp": _TIMES,
        "deletionTimestamp": _TIMES,
        "finalizers": st.just(["example.org/keep"]),
        "generation": st.integers(0, 3),
        "resourceVersion": st.just("7"),
        "labels": st.sampled_from([_LABELS, {"app": "web", "pod-template-hash": "5d8f"}]),
        "annotations": st.just({"example.org/note": "any text"}),
        "ownerReferences": st.lists(_OWNERS, min_size=1, max_size=2),
    },
)
_OBJECTS: Final = st.builds(
    lambda kind, metadata: object_of(kind[0], kind[1], metadata), _KIND_NAMES, _METADATA
)


@st.composite
def _lists(draw: st.DrawFn) -> Manifest:
    """Draw a list of any kinds, or one of a single kind, whose items leave theirs out."""
    version, kind = draw(_KIND_NAMES)
    if not draw(st.booleans()):
        return {"apiVersion": "v1", "kind": "List", "items": draw(st.lists(_OBJECTS, max_size=6))}
    items = [object_of(version, kind, metadata) for metadata in draw(st.lists(_METADATA, max_size=4))]
    for item in items:
        del item["apiVersion"], item["kind"]
    return {
        "apiVersion": version,
        "kind": f"{kind}List",
        "metadata": {"resourceVersion": "7"},
        "items": items,
    }


def documents() -> st.SearchStrategy[list[Manifest]]:
    """Draw the documents of a file: objects, and lists of them."""
    return st.lists(st.one_of(_OBJECTS, _lists()), max_size=5)


def everything_of_a_dump() -> list[Manifest]:
    """Return an object of every kind with the metadata that an API server writes, its owner's controller included."""
    found = []
    for number, (version, kind) in enumerate(KIND_NAMES):
        owner_version, owner = KIND_NAMES[(number + 7) % len(KIND_NAMES)]
        reference = {
            "apiVersion": owner_version,
            "kind": owner,
            "name": "web",
            "uid": "u",
            "controller": True,
        }
        metadata = {
            "name": "web",
            "uid": f"u{number}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 2,
            "resourceVersion": "7",
            "labels": _LABELS,
            "ownerReferences": [reference],
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
        }
        found.append(object_of(version, kind, metadata))
    return found
