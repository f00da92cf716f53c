"""The codes that evidence, causes and findings of the core have in JSON, with their parameters."""

from __future__ import annotations

from typing import Final

from kschedfw.api.records import frozen
from kschedfw.explain.groups import GroupStage


@frozen
class ReasonCode:
    """The meaning of a code, and the names of its parameters; some of them may be absent."""

    meaning: str
    parameters: tuple[str, ...] = ()


_TERM = ("term", "key", "operator", "wanted", "had")
_VOLUME = ("claim", "volume")
_DEVICES = ("request", "devices", "of")

CAUSES: Final = {
    "node-selector": ReasonCode(
        "the node lacks an entry of the pod's nodeSelector", ("term", "key", "wanted", "had")
    ),
    "node-affinity": ReasonCode(
        "the node fails a requirement of the pod's or the profile's node affinity", _TERM
    ),
    "node-affinity-invalid": ReasonCode(
        "a term of node affinity matches no node at all", ("term", "problem")
    ),
    "untolerated-taint": ReasonCode(
        "the pod doesn't tolerate a taint of the node", ("key", "value", "effect")
    ),
    "insufficient-resource": ReasonCode(
        "the node has too little left; amounts are in millicores, bytes or units",
        ("resource", "requested", "free", "allocatable", "short"),
    ),
    "host-port": ReasonCode(
        "another pod of the node holds a host port", ("port", "protocol", "hostIP", "pod")
    ),
    "topology-spread": ReasonCode(
        "the pod would spread its siblings too unevenly",
        (
            "topologyKey",
            "domain",
            "maxSkew",
            "selector",
            "matching",
            "minimum",
            "skew",
            "domains",
            "minDomains",
            "emptiest",
            "nodesThere",
        ),
    ),
    "topology-spread-no-label": ReasonCode(
        "the node lacks the label that the pod is spread over",
        ("topologyKey", "domain", "maxSkew", "selector"),
    ),
    "pod-affinity": ReasonCode(
        "no pod that the pod wants to be with is in the node's domain",
        ("term", "topologyKey", "selector", "domain", "terms"),
    ),
    "pod-anti-affinity": ReasonCode(
        "pods that the pod keeps off are in the node's domain",
        ("term", "topologyKey", "selector", "domain", "pods", "pod", "examples"),
    ),
    "pod-anti-affinity-of-others": ReasonCode(
        "pods that keep the pod off are in the node's domain",
        ("term", "topologyKey", "selector", "domain", "pods", "pod", "examples"),
    ),
    "volume-node-affinity": ReasonCode(
        "the pod's volume can't be reached from the node", (*_TERM, "problem", *_VOLUME)
    ),
    "volume-zone": ReasonCode("the pod's volume is in another zone or region", (*_TERM, *_VOLUME)),
    "volume-missing": ReasonCode("the volume of the pod's claim doesn't exist", _VOLUME),
    "volume-not-available": ReasonCode(
        "no volume can be bound or made for the pod's claim on the node", ("claim", "storageClass", "reason")
    ),
    "volume-limit": ReasonCode(
        "the node can attach no more volumes of the driver", ("driver", "wanted", "attached", "limit")
    ),
    "undeclared-feature": ReasonCode("the node doesn't declare a feature", ("feature",)),
    "device-request": ReasonCode(
        "too few devices of the node would do", ("request", "class", "count", "devices", "wouldDo", "all")
    ),
    "device-reason": ReasonCode(
        "why some devices won't do",
        (
            *_DEVICES,
            "wanted",
            "found",
            "examples",
            "listed",
            "counterSets",
            "taint",
            "selectorOf",
            "selector",
            "expression",
        ),
    ),
    "device-other-reasons": ReasonCode("further devices that won't do", _DEVICES),
    "device-constraint": ReasonCode(
        "devices that would do differ in an attribute, or have the same",
        ("claim", "constraint", "attribute", "requests", "values", "examples"),
    ),
    "devices-together": ReasonCode("the node's devices serve each request, but not all at once"),
    "devices-more": ReasonCode("further requests for devices", ("more",)),
    "devices-too-slow": ReasonCode("looking at the devices took too long"),
    "device-claim-elsewhere": ReasonCode(
        "the claim's devices are elsewhere, or not ready", ("claim", "ready")
    ),
    "device-claim-left-over": ReasonCode("a claim of an earlier attempt is still there", ("claim",)),
    "extended-resource-missing": ReasonCode("nothing on the node offers an extended resource", ("resource",)),
}
"""Codes of requirements that keep a pod off a node.

A plugin that gives no evidence has its own name in kebab-case as its code, and `reason` as its parameter.
"""

GROUP_CAUSES: Final = {
    f"group-{stage.value.replace(' ', '-').replace('_', '-')}": ReasonCode(
        f"the group's cycle ended at {stage.value}",
        ("group", "needed", "minCount", "topologyKey", "placements", "nearest", "placed", "pod"),
    )
    for stage in GroupStage
}
"""Codes of groups without a place."""

FINDINGS: Final = {
    "claim-missing": ReasonCode("a claim that the pod names doesn't exist", ("claim", "hint")),
    "claimed-volume-missing": ReasonCode(
        "the volume that a claim is bound to doesn't exist", ("claim", "volume")
    ),
    "claim-without-class": ReasonCode("a claim has no StorageClass and waits for a volume", ("claim",)),
    "storage-class-missing": ReasonCode(
        "a claim's StorageClass doesn't exist", ("claim", "storageClass", "hint")
    ),
    "claim-waits-for-provisioner": ReasonCode(
        "the provisioner of its StorageClass has to make a claim's volume",
        ("claim", "provisioner", "storageClass", "namespace", "name"),
    ),
}
"""Codes of findings on the objects that a pod names."""
