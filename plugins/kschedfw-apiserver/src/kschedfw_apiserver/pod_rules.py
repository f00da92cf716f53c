"""The API server's rules for pods only: admission, permitted changes, binding and eviction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kschedfw.cluster import TOPOLOGY_LABELS
from kschedfw_apiserver import status
from kschedfw_apiserver.resources import NODES, PODS, PRIORITY_CLASSES
from kschedfw_apiserver.store import Store, Stored

Manifest = Mapping[str, Any]

_CHANGEABLE: Final = (
    "activeDeadlineSeconds",
    "tolerations",
    "terminationGracePeriodSeconds",
    "schedulingGates",
)
_ONLY_THESE: Final = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_DEFAULT_TOLERATIONS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admitted_pod(store: Store, pod: Manifest) -> dict[str, Any]:
    """Return a new pod with its priority and the tolerations that every pod gets. Raises StatusError."""
    spec, name = dict(pod["spec"]), pod["metadata"]["name"]
    if class_name := spec.get("priorityClassName"):
        found = store.get(PRIORITY_CLASSES, "", str(class_name))
        if found is None:
            raise status.forbidden(PODS, name, f"no PriorityClass with name {class_name} was found")
        chosen: Manifest = found.manifest
    else:
        defaults = [
            each.manifest for each in store.all(PRIORITY_CLASSES)[1] if each.manifest.get("globalDefault")
        ]
        chosen = min(defaults, key=lambda each: each["value"], default={})
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    priority = chosen.get("value", 0)
    if spec.get("priority", priority) != priority:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {priority} from the given PriorityClass name"
        )
        raise status.forbidden(PODS, name, why)
    spec["priority"] = priority
    if chosen.get("preemptionPolicy"):
        spec["preemptionPolicy"] = chosen["preemptionPolicy"]
    spec["tolerations"] = _tolerations(spec.get("tolerations") or [])
    given = pod["status"].get("conditions")
    if spec.get("schedulingGates") and not given:
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        return {**pod, "spec": spec, "status": {**pod["status"], "conditions": [gated]}}
    return {**pod, "spec": spec}


def _tolerations(given: list[Any]) -> list[Any]:
    tolerations = list(given)
    for key in _DEFAULT_TOLERATIONS:
        if not any(
            isinstance(each, dict)
            and each.get("key", key) == key
            and each.get("effect", "NoExecute") == "NoExecute"
            for each in given
        ):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    return tolerations


def check_pod_update(old: Manifest, new: Manifest) -> None:
    """Raise StatusError if an immutable part of the spec changes."""
    before, after = _fixed(old.get("spec") or {}), _fixed(new.get("spec") or {})
    if before != after:
        raise status.invalid(PODS, old["metadata"]["name"], [("spec", _ONLY_THESE)])


def _fixed(spec: Manifest) -> dict[str, Any]:
    """Return the immutable part of the pod's spec."""
    fixed = {key: value for key, value in spec.items() if key not in _CHANGEABLE}
    for containers in ("containers", "initContainers"):
        if isinstance(fixed.get(containers), list):
            fixed[containers] = [
                {key: value for key, value in each.items() if key != "image"}
                if isinstance(each, dict)
                else each
                for each in fixed[containers]
            ]
    return fixed


def bound(store: Store, pod: Stored, binding: Manifest) -> dict[str, Any]:
    """Return the pod bound to the Binding's node. Raises StatusError if it can't be bound."""
    manifest, name = pod.manifest, pod.manifest["metadata"]["name"]
    target = binding.get("target")
    target = target if isinstance(target, dict) else {}
    node_name = target.get("name")
    if not isinstance(node_name, str) or not node_name:
        raise status.unnamed_error("target.name: Required value")
    if target.get("kind", "Node") not in ("", "Node"):
        why = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise status.unnamed_error(f"target.kind: {why}")
    uid = (binding.get("metadata") or {}).get("uid")
    if uid and uid != pod.uid:
        raise status.other_uid(pod.resource, pod.key, uid, pod.uid)
    spec = manifest["spec"]
    why = ""
    if "deletionTimestamp" in manifest["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise status.conflict(pod.resource, name, why, subresource="binding")
    node = store.get(NODES, "", node_name)
    node_labels = {} if node is None else node.manifest["metadata"].get("labels") or {}
    topology = {label: node_labels[label] for label in TOPOLOGY_LABELS if label in node_labels}
    metadata = dict(manifest["metadata"])
    for field, added in (
        ("labels", topology),
        ("annotations", (binding.get("metadata") or {}).get("annotations") or {}),
    ):
        if added:
            metadata[field] = {**(metadata.get(field) or {}), **added}
    pod_status = {
        key: value for key, value in (manifest.get("status") or {}).items() if key != "nominatedNodeName"
    }
    pod_status["conditions"] = with_condition(
        pod_status.get("conditions") or [],
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": store.time()},
    )
    return {
        **manifest,
        "metadata": metadata,
        "spec": {**spec, "nodeName": node_name},
        "status": pod_status,
    }


def with_condition(conditions: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions with the new one in place of the one with its type."""
    if any(old.get("type") == new["type"] for old in conditions):
        return [new if old.get("type") == new["type"] else old for old in conditions]
    return [*conditions, new]
