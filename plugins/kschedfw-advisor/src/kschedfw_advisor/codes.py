"""The codes of changes, outcomes and findings in the JSON of the commands, with their parameters."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Final

from kschedfw.explain import ReasonCode
from kschedfw.what_if import DeviationKind
from kschedfw_advisor.changes import Change
from kschedfw_advisor.cli.fit_output import FitOutcome
from kschedfw_advisor.cli.scale_up_output import ScaleUpOutcome
from kschedfw_advisor.drain_plan import Move
from kschedfw_advisor.explore.outcome import MOVES
from kschedfw_advisor.pending import KindOutcome

_DEVIATIONS: Final = {
    DeviationKind.STAYS_PENDING: ReasonCode("the pod would stay pending: no node fits"),
    DeviationKind.PREEMPTS: ReasonCode("the pod would evict others to get its place"),
    DeviationKind.WAITS: ReasonCode("the pod would wait for permission to run, for the rest of its gang"),
    DeviationKind.NODE_REFUSES: ReasonCode(
        "the planned node isn't feasible; the pod would run on another one"
    ),
    DeviationKind.OTHER_NODE: ReasonCode("the pod would run on another node, which scores as high or higher"),
    DeviationKind.EVICTION_BLOCKED: ReasonCode("a PodDisruptionBudget doesn't allow the pod's eviction"),
    DeviationKind.NODE_UNUSED: ReasonCode("the added node would get no pod of the plan"),
}

_FINDINGS: Final = {
    "scheduling-gates": ReasonCode("the pod waits for its scheduling gates", ("gates",)),
    "scheduler-missing": ReasonCode("no profile has the pod's scheduler name", ("scheduler",)),
    "pod-group-missing": ReasonCode("the pod's PodGroup doesn't exist", ("group", "hint")),
    "volume-keeps-off": ReasonCode("a volume of the pod keeps it off nodes", ("volume", "nodes", "ofNodes")),
    "request-too-large": ReasonCode(
        "no node has as much of a resource as the pod requests, even when empty",
        ("resource", "requested", "largest", "node", "largestUsable", "usable"),
    ),
    "request-too-large-for-allowed": ReasonCode(
        "no node that the pod's rules allow has as much of a resource as it requests, and others have",
        ("resource", "requested", "largest", "node"),
    ),
    "resource-not-offered": ReasonCode(
        "no node offers a resource that the pod requests", ("resource", "requested")
    ),
    "odd-amount": ReasonCode(
        "an amount in a manifest is a few bytes, with which no container runs",
        ("object", "workload", "pod", "container", "field", "resource", "written", "bytes", "meant"),
    ),
    "port-held": ReasonCode("who holds the host port", ("port", "protocol", "holders")),
    "kept-off-by": ReasonCode("whose pods the anti-affinity is about", ("holders",)),
    "emptiest-domain": ReasonCode(
        "the domain that the spread leaves, and why its nodes don't take the pod",
        ("topologyKey", "domain", "nodes", "more", "reasons"),
    ),
    "overcommitted": ReasonCode(
        "who overcommits the closest node; `which` says whether it is a static pod",
        ("node", "resource", "which", "pod", "amount"),
    ),
    "static-pods": ReasonCode(
        "static pods take what the pod lacks on the closest node", ("node", "resource", "pods", "amount")
    ),
    "no-volume": ReasonCode(
        "there is no PersistentVolume for a claim that nothing makes one for", ("claim",)
    ),
    "closest-volume": ReasonCode(
        "the volume that comes closest to a claim, and what it lacks: `size`, `mode`, `class`, `access-mode`, "
        "`selector`, `bound`, `released`, `deleted`, `node`",
        ("claim", "volume", "lacks", "problems"),
    ),
    "storage-class-zones": ReasonCode(
        "where the StorageClass makes volumes", ("storageClass", "claim", "zones")
    ),
    "largest-capacity": ReasonCode(
        "no capacity of the StorageClass is as large as the claim",
        ("claim", "storageClass", "capacity", "largest", "wanted"),
    ),
    "nominated": ReasonCode("preemption has made room for the pod on a node", ("node",)),
    "preemption-under-way": ReasonCode("the pod's victims still have to end", ("node", "until", "victims")),
    "volumes-unbound": ReasonCode("the pod's volumes aren't bound yet", ("claims",)),
    "changed-since": ReasonCode("the cluster has changed since the pod was refused"),
    "quota-exceeded": ReasonCode(
        "a ResourceQuota leaves no room for the pods", ("reason", "workload", "pods")
    ),
    "quota-request-missing": ReasonCode(
        "a ResourceQuota demands a request that the pods lack", ("reason", "workload", "pods")
    ),
    "priority-class-missing": ReasonCode(
        "the pods' PriorityClass doesn't exist", ("reason", "workload", "pods")
    ),
    "service-account-missing": ReasonCode(
        "the pods' ServiceAccount doesn't exist", ("reason", "workload", "pods")
    ),
    "runtime-class-missing": ReasonCode(
        "the pods' RuntimeClass doesn't exist", ("reason", "workload", "pods")
    ),
    "webhook": ReasonCode("an admission webhook refuses the pods, or fails", ("reason", "workload", "pods")),
    "pod-security": ReasonCode(
        "the namespace's PodSecurity level forbids the pods", ("reason", "workload", "pods")
    ),
    "node-missing": ReasonCode("the pod is bound to a node that doesn't exist", ("node",)),
    "node-not-ready": ReasonCode("the pod is bound to a node that isn't ready, and doesn't start", ("node",)),
    "container-waiting": ReasonCode(
        "the pod has a node, and a container doesn't start", ("container", "reason", "message")
    ),
    "start-failed": ReasonCode(
        "the pod has a node, and the cluster warns that it doesn't start there", ("reason", "message")
    ),
    "suspended": ReasonCode("the workload is suspended, so it has no pods", ("workload", "reason")),
    "paused": ReasonCode("the workload is paused, so it has no pods", ("workload", "reason")),
    "scaled-to-zero": ReasonCode("no pods are wanted of the workload", ("workload", "reason")),
    "no-eligible-node": ReasonCode(
        "no node is eligible for the DaemonSet; `missing` are the labels that no node has",
        ("workload", "missing", "corrections"),
    ),
    "no-node": ReasonCode("there is no node for the DaemonSet", ("workload", "reason")),
    "pod-refused": ReasonCode("the API server refuses the pods", ("reason", "workload", "pods")),
    "disruption-budget": ReasonCode("a PodDisruptionBudget forbids the eviction", ("reason",)),
    "local-data": ReasonCode("the pod has data on its node", ("volumes",)),
    "no-controller": ReasonCode("nothing would make the pod anew"),
    "annotation": ReasonCode("an annotation forbids it", ("annotation", "value")),
    "control-plane": ReasonCode("the node is of the control plane"),
    "group-minimum": ReasonCode("the node's group has its minimum", ("groups",)),
}


def findings() -> Mapping[str, ReasonCode]:
    """Return the codes of findings, the ends of evicted pods included."""
    ends = {
        f"pod-{move.value.replace(' ', '-')}": ReasonCode(_end(move), ("message", "node")) for move in Move
    }
    return {**_FINDINGS, **ends}


def _end(move: Move) -> str:
    return f"an evicted pod's end: {move.value}"


def changes() -> Mapping[str, ReasonCode]:
    """Return the codes of all kinds of changes that help."""
    found = {kind.code(): kind for kind in _kinds(Change) if hasattr(kind, "usual_effort")}
    return {code: ReasonCode(_meaning(kind), kind.parameter_names()) for code, kind in sorted(found.items())}


def _meaning(kind: type[Change]) -> str:
    first = (kind.__doc__ or "").partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def _kinds(above: type[Change]) -> Iterator[type[Change]]:
    for kind in above.__subclasses__():
        # attrs makes classes anew for their slots, and the first ones may still be there.
        if (
            not kind.__name__.startswith("_")
            and vars(sys.modules[kind.__module__]).get(kind.__name__) is kind
        ):
            yield kind
        yield from _kinds(kind)


def deviations() -> Mapping[str, ReasonCode]:
    """Return the codes of decisions that a plan doesn't expect."""
    return {str(kind): _DEVIATIONS[kind] for kind in DeviationKind}


def moves() -> Mapping[str, ReasonCode]:
    """Return what becomes of pods when changes are made."""
    return {change.replace(" ", "-"): ReasonCode(f"the pod {told}") for change, (told, _) in MOVES.items()}


def drain_outcomes() -> Mapping[str, ReasonCode]:
    """Return the outcomes of `drain`."""
    return {
        "drained": ReasonCode("the nodes can be drained, and all their pods find another place"),
        "pods-in-the-way": ReasonCode("a pod can't be evicted, finds no place, or would be lost"),
    }


def fit_outcomes() -> Mapping[str, ReasonCode]:
    """Return the outcomes of `fit`."""
    return {outcome.value: ReasonCode(outcome.meaning) for outcome in FitOutcome}


def scale_up_outcomes() -> Mapping[str, ReasonCode]:
    """Return the outcomes of `scale-up`."""
    return {outcome.value: ReasonCode(outcome.meaning) for outcome in ScaleUpOutcome}


def outcomes() -> Mapping[str, ReasonCode]:
    """Return the outcomes for pods without a place."""
    return {outcome.value: ReasonCode(outcome.meaning) for outcome in KindOutcome}
