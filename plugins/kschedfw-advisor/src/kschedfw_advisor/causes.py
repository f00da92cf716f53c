"""The cause that keeps pods of a kind pending, as one sentence with a code: what the page's cards begin with."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedfw import FrozenDict, Node, Pod
from kschedfw.api import CPU, group_key, node_allocatable, requirement_text
from kschedfw.cluster import Cluster, claim_problems
from kschedfw_advisor.amounts import exact_text
from kschedfw_advisor.changes import Change, taint_text
from kschedfw_advisor.cluster_changes import LabelNode, RemoveTaint, Uncordon
from kschedfw_advisor.corrections import (
    RespellClaim,
    RespellLabel,
    RespellPodLabel,
    RespellResource,
    RespellScheduler,
    RespellToleration,
    RespellTopologyKey,
)
from kschedfw_advisor.observed import missing_group
from kschedfw_advisor.pending import KindOutcome, PodKind
from kschedfw_advisor.pod_rules import DropRequirements, DropSelector, PreferPodRule, RemoveGates, Tolerate
from kschedfw_advisor.request_changes import EnlargeNode, RequestLess
from kschedfw_advisor.spreading import FewerDomains, Spread

_INSUFFICIENT: Final = re.compile(r"Insufficient (\S+)")

_IN_WORDS: Final = (
    # A part of kube-scheduler's reason, the code, and the sentence; reasons that say more come first.
    ("Too many pods", "resources", "The nodes that would do have as many pods as they may."),
    ("free ports", "host-port", "Its host port is taken on every node that would do."),
    ("topology spread", "spread", "Its spread constraints allow none of the nodes with room."),
    ("anti-affinity", "pod-affinity", "Pods that it must keep away from are on every node that would do."),
    ("pod affinity", "pod-affinity", "No node that would do is beside the pods that it asks for."),
    ("volume", "volume", "Its volumes allow none of the nodes with room."),
    ("resourceclaim", "device", "The devices that it claims aren't to be had."),
    ("gang", "group", "Its group doesn't fit as a whole."),
    # Last: nearly every cluster has such nodes, whatever keeps the pod off the others.
    ("node affinity/selector", "node-labels", "No node with room has the labels that it asks for."),
    ("untolerated taint", "taint", "The nodes that would do have taints that it doesn't tolerate."),
    ("were unschedulable", "node-state", "The nodes that would do are cordoned."),
)


@attrs.frozen
class Cause:
    """The obstacle that decides, as a stable code for programs and filters, and as a sentence."""

    code: str
    text: str


def cause_of(kind: PodKind, reasons: Iterable[str], cluster: Cluster) -> Cause:
    """Return the cause of a kind of pending pods.

    The obstacle that decides is a claim or a group that isn't there; else the one that the first remedy removes. Where
    nothing helps, it is told from the notes on volumes, and then from kube-scheduler's `reasons`.
    """
    pod = kind.pods[0]
    if kind.fits:
        text = str(kind.notes[0]) if kind.notes else "It fits, and waits for the other pods of its group."
        return Cause("preemption" if kind.outcome is KindOutcome.PREEMPTING else "group", text)
    if pod.spec.scheduling_gates:
        names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Cause("gate", f"It waits until its scheduling gate {names} is removed.")
    for problem in claim_problems(pod, cluster):
        return Cause("volume", problem.text)
    for found in missing_group(pod, cluster) if group_key(pod) and kind.notes else ():
        return Cause("group", str(found))
    first = kind.remedies[0].changes if kind.remedies else ()
    if (removed := _removed_by_all(first, kind, cluster)) is not None:
        return removed
    if kind.notes and pod.storage:
        return Cause("volume", str(kind.notes[0]))
    return _of_reasons(tuple(reasons), kind, cluster)


def _removed_by_all(changes: Sequence[Change], kind: PodKind, cluster: Cluster) -> Cause | None:
    """Return the obstacles that the changes remove, a sentence each; the code is that of the first."""
    taints = [each.taint for each in changes if isinstance(each, Tolerate)]
    if taints and len(taints) == len(changes):
        word = "taint" if len(taints) == 1 else "taints"
        told = " and ".join(map(taint_text, taints))
        return Cause("taint", f"The nodes that would do have the {word} {told}.")
    causes = [cause for each in changes if (cause := _removed_by(each, kind, cluster)) is not None]
    texts = dict.fromkeys(cause.text for cause in causes)
    return Cause(causes[0].code, " ".join(texts)) if causes else None


def _removed_by(change: Change, kind: PodKind, cluster: Cluster) -> Cause | None:
    """Return the obstacle that the change removes; None for a change, such as another pod's end, that removes any."""
    match change:
        case RemoveGates(gates):
            return Cause("gate", f"It waits until its scheduling gate {', '.join(gates)} is removed.")
        case RespellScheduler(name=name):
            return Cause("scheduler-name", f"No scheduler here is called {name}.")
        case RespellClaim(name=name):
            return Cause("volume", f"There is no claim {name}.")
        case RespellResource(name=name):
            return Cause("resources", f"No node offers {name}.")
        case RespellTopologyKey(key=key):
            return Cause("spread", f"No node has the label {key}.")
        case RespellPodLabel(key=key, value=value):
            return Cause("pod-affinity", f"It asks for pods with {_pair(key, value)}, and there are none.")
        case RespellToleration(key=key, value=value):
            return Cause("taint", f"It tolerates {_pair(key, value)}, which isn't the nodes' taint.")
        case RespellLabel(key=key, value=value):
            return Cause("node-labels", f"No node has {_pair(key, value)}.")
        case DropSelector(labels):
            return _of_labels(labels, kind.pods[0], cluster)
        case LabelNode(labels=labels):
            return _of_labels(
                FrozenDict({key: value for key, value in labels.items() if value is not None}),
                kind.pods[0],
                cluster,
            )
        case DropRequirements(requirements):
            return Cause(
                "node-labels", f"No node with room has {' and '.join(map(requirement_text, requirements))}."
            )
        case Tolerate(taint) | RemoveTaint(taint=taint):
            return Cause("taint", f"The nodes that would do have the taint {taint_text(taint)}.")
        case Uncordon(node):
            return Cause("node-state", f"The nodes that would do are cordoned, such as {node}.")
        case RequestLess(resource=resource) | EnlargeNode(resource=resource):
            return _of_request(resource, kind, cluster)
        case Spread(topology_key=key) | FewerDomains(topology_key=key):
            return Cause("spread", f"Its spread over {key} allows none of the nodes with room.")
        case PreferPodRule(topology_key=key, anti=True):
            return Cause("pod-affinity", f"Pods that it must keep away from are in every {key} with room.")
        case PreferPodRule(topology_key=key):
            return Cause("pod-affinity", f"No {key} with room has the pods that it must be beside.")
    return None


def _of_labels(labels: FrozenDict[str, str], pod: Pod, cluster: Cluster) -> Cause:
    """Return the cause for entries of a nodeSelector: nobody has them, or nobody together with the other entries."""
    nodes = [node.labels.items() for node in cluster.list(Node)]
    having = sum(labels.items() <= each for each in nodes)
    if not having:
        return Cause("node-labels", f"No node has {_pairs(labels)}.")
    others = FrozenDict({key: value for key, value in pod.spec.node_selector.items() if key not in labels})
    beside = [each for each in nodes if others.items() <= each] if others else []
    if beside and not any(labels.items() <= each for each in beside):
        none = "The only node" if len(beside) == 1 else f"The {len(beside):,} nodes"
        lack = "doesn't have" if len(beside) == 1 else "don't have"
        return Cause("node-labels", f"{none} with {_pairs(others)} {lack} {_pairs(labels)}.")
    with_them = "The only node" if having == 1 else f"The {having:,} nodes"
    return Cause("node-labels", f"{with_them} with {_pairs(labels)} can't take it.")


def _of_request(resource: str, kind: PodKind, cluster: Cluster) -> Cause:
    request, largest = kind.pods[0].requests.demand.get(resource), _largest(resource, cluster)
    asked = f"It requests {_amount_text(resource, request)} of {resource}"
    if request > largest:
        most = f"the largest has {_amount_text(resource, largest)}" if largest else "none offers it"
        return Cause("resources", f"{asked}, more than any node has: {most}.")
    for cause in kind.causes:
        free = cause.evidence.values.get("free")
        if cause.decisive and cause.node and cause.evidence.values.get("resource") == resource:
            left = "nothing" if not isinstance(free, int) or free <= 0 else _amount_text(resource, free)
            return Cause("resources", f"{asked}; of the nodes that would do, {cause.node} has {left} left.")
    return Cause("resources", f"{asked}, and no node that it may use has so much left.")


def _of_reasons(reasons: tuple[str, ...], kind: PodKind, cluster: Cluster) -> Cause:
    """Return the cause in plain words for kube-scheduler's reasons; a single other reason stands for itself."""
    short = {found for reason in reasons if (found := _INSUFFICIENT.search(reason))}
    if short:
        # The resource of which the pod asks for the most, compared to what nodes have.
        names = sorted(each.group(1) for each in short)
        worst = max(names, key=lambda name: _shortage(name, kind.pods[0], cluster))
        return _of_request(worst, kind, cluster)
    for part, code, text in _IN_WORDS:
        if any(part in reason for reason in reasons):
            return Cause(code, text)
    return Cause("other", "; ".join(reasons))


def _shortage(resource: str, pod: Pod, cluster: Cluster) -> float:
    largest = _largest(resource, cluster)
    return pod.requests.demand.get(resource) / largest if largest else math.inf


def _largest(resource: str, cluster: Cluster) -> int:
    """Return the most of the resource that any node has for pods."""
    return max((node_allocatable(node).get(resource) for node in cluster.list(Node)), default=0)


def _amount_text(resource: str, amount: int) -> str:
    """Return the amount as people compare it: CPU in cores, since 250 and 31850m look alike."""
    return f"{amount / 1000:g}" if resource == CPU else exact_text(resource, amount)


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(_pair(key, value) for key, value in labels.items())


def _pair(key: str, value: str) -> str:
    return f"{key}={value}" if value else key
