"""Candidates: changes that may help a pod without a place, made from the obstacles in its explanation, not tried yet.

A candidate is a set of changes that would take away all obstacles between the pod and one node, as far as the obstacles
tell. Whether it helps, only a transaction can say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, product
from typing import Final, TypeAlias

import attrs

from kschedfw import FeatureGates, FrozenDict, Node, Pod
from kschedfw.api import (
    NodeInclusionPolicy,
    NodeSelector,
    Operator,
    OwnerReference,
    Requirement,
    Taint,
    TaintEffect,
    is_extended,
)
from kschedfw.cluster import Cluster, belongs_to_its_node
from kschedfw.explain import Evidence, Explanation, NodeExplanation
from kschedfw_advisor.amounts import rounded
from kschedfw_advisor.changes import Change, Effort
from kschedfw_advisor.cluster_changes import CORDONED, AddNodes, DeletePod, LabelNode, RemoveTaint, Uncordon
from kschedfw_advisor.node_groups import CONDITIONS, HOSTNAME
from kschedfw_advisor.pod_rules import DropHostPort, DropRequirements, DropSelector, PreferPodRule, Tolerate
from kschedfw_advisor.priorities import that_may_preempt, with_more_priority
from kschedfw_advisor.request_changes import EnlargeNode, RequestLess
from kschedfw_advisor.sizes import has_labels_for, offered
from kschedfw_advisor.spreading import FewerDomains, HonorTaints, LabelDomains, Spread
from kschedfw_advisor.typos import typos

Changes: TypeAlias = tuple[Change, ...]

NODES_OF_A_PATTERN: Final = 2
"""The number of nodes looked at, of those that fail the same requirements: the closest ones."""
_HELD_BY_PODS: Final = frozenset(("InterPodAffinity", "NodePorts", "NodeResourcesFit"))
"""Plugins that may refuse a node only for the pods on it."""
MOST_NODES: Final = 16
"""The most nodes that are looked at."""
MOST_PATTERNS: Final = 100
"""The number of closest nodes that those are chosen from."""
MOST_FOR_A_NODE: Final = 12
"""The most candidates that are made from the obstacles of one node."""
MOST_DELETED: Final = 5
"""The number of pods of a node whose deletion is tried against an obstacle that no other change helps against."""
MOST_OBSTACLES: Final = 4
"""A node with more obstacles isn't looked at."""

_FACTS: Final = (
    "kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
)
"""Labels that describe the node's hardware, system or place. Changing such a label doesn't change the node itself."""


PodsOnNode: TypeAlias = Callable[[str], Sequence[Pod]]
"""Returns the pods on the node of this name."""


def candidates(
    pod: Pod,
    explanation: Explanation,
    cluster: Cluster,
    pods_on: PodsOnNode,
    groups: Iterable[AddNodes],
    targets: Collection[str] = (),
) -> Sequence[Changes]:
    """The candidates, those with the fewest and then the smallest changes first.

    With `targets`, the pods may only be on these nodes, and no new ones help.
    """
    keys = _separating_keys(pod, explanation)
    misspelt = tuple(typos(pod, cluster))
    promising = tuple(_promising(explanation, targets))
    is_met = any(has_labels_for(pod, node) for node in cluster.list(Node))
    found = chain(
        # One correction may be enough, and a pod may need all of them.
        ((each,) for each in misspelt),
        (misspelt,) if misspelt else (),
        *(_for_node(pod, cluster, explained, pods_on, is_met=is_met) for explained in promising),
        _with_labelled_domains(pod, cluster, promising),
        _that_preempt(pod, cluster, promising, pods_on),
        *(_with_new_node(pod, addition, keys) for addition in groups if not targets),
    )
    return sorted(dict.fromkeys(found), key=size)


def with_effective_tolerations(pod: Pod, gates: FeatureGates) -> Pod:
    """Return the pod without the tolerations that the scheduler ignores: Gt and Lt if their feature gate is off."""
    if gates.enabled("TaintTolerationComparisonOperators"):
        return pod
    effective = tuple(each for each in pod.spec.tolerations if not each.operator.compares_integers)
    return (
        pod
        if effective == pod.spec.tolerations
        else attrs.evolve(pod, spec=attrs.evolve(pod.spec, tolerations=effective))
    )


def size(changes: Changes) -> tuple[float, ...]:
    """Return the sort key of candidates.

    What happens by itself and corrections of typos come first, then corrections with other changes, and places that are
    kept for other pods last. Then come changes that keep a rule which nodes meet, those that give it up, and those that
    take too much. Then the number of changes counts, then the greatest effort, then the amounts.
    """
    efforts = [each.effort for each in changes]
    greatest = max(efforts)
    if greatest >= Effort.TOO_MUCH:
        group = int(greatest is Effort.RESERVED)
    else:
        group = -(Effort.TYPO in efforts) - (greatest <= Effort.TYPO)
    amount = sum(each.amount for each in changes)
    # A pod that names its pool is meant for it: two taints to tolerate there come before the pool is given up.
    far = (greatest >= Effort.MET_RULE) + (greatest >= Effort.TOO_MUCH)
    return group, far, len(changes), greatest, amount


def _promising(explanation: Explanation, targets: Collection[str]) -> Iterator[NodeExplanation]:
    """Yield the closest nodes of each combination of requirements that a node fails, up to `MOST_NODES`.

    Nodes with the labels that the pod wants come first: where many pools have taints of their own, their nodes fail no
    more requirements than the cordoned node that is meant.
    """
    closest = islice(explanation.closest_by_requirement(NODES_OF_A_PATTERN, targets), MOST_PATTERNS)
    yield from islice(sorted(closest, key=lambda node: "NodeAffinity" in _refusing(node)), MOST_NODES)


def _refusing(node: NodeExplanation) -> Sequence[str]:
    refusals = (node.refusal, *node.also_refused_by.values())
    plugins = tuple(dict.fromkeys(status.plugin for status in refusals if status is not None))
    # A node that a pre_filter left out has no plugin as its reason, beside the plugins that were asked to explain it.
    return tuple(filter(None, plugins)) or plugins


def _for_node(
    pod: Pod, cluster: Cluster, explained: NodeExplanation, pods_on: PodsOnNode, *, is_met: bool
) -> Iterator[Changes]:
    """Every way to take away all obstacles of a node; none if there is one that no change is known for."""
    node = cluster.get(Node, explained.node)
    if node is None:
        return
    obstacles: list[Sequence[Changes]] = []
    for plugin in _refusing(explained):
        obstacles.extend(
            _ways(plugin, pod, node, explained.evidence.get(plugin, ()), cluster, pods_on, is_met=is_met)
        )
    if all(obstacles) and 1 <= len(obstacles) <= MOST_OBSTACLES:
        for chosen in islice(product(*obstacles), MOST_FOR_A_NODE):
            yield tuple(dict.fromkeys(chain.from_iterable(chosen)))


def _ways(
    plugin: str,
    pod: Pod,
    node: Node,
    evidence: Sequence[Evidence],
    cluster: Cluster,
    pods_on: PodsOnNode,
    *,
    is_met: bool,
) -> Iterator[Sequence[Changes]]:
    """Yield the changes that may remove an obstacle, for each obstacle that a plugin sees on a node; perhaps none."""
    match plugin:
        # These plugins' changes are made from evidence. Without it the obstacle has no way around.
        case "NodePorts" | "PodTopologySpread" | "InterPodAffinity" if not evidence:
            yield []
        case "NodeUnschedulable":
            yield [(Uncordon(node.name),)]
        case "TaintToleration":
            yield from ([(change,)] for change in _around_taints(pod, node))
        case "NodeAffinity":
            yield list(_around_labels(pod, node, is_met=is_met))
        case "NodeResourcesFit":
            yield list(_around_shortages(pod, node, evidence, pods_on))
        case "NodePorts":
            yield from (_around_port(pod, each, cluster) for each in evidence)
        case "PodTopologySpread":
            yield from (_around_spread(pod, each) for each in evidence)
        case "InterPodAffinity":
            yield from (_around_pods(pod, each, cluster) for each in evidence)
        case _:
            yield _around_the_unknown(pod, pods_on(node.name))


def _untolerated(pod: Pod, node: Node) -> Iterator[Taint]:
    for taint in node.spec.taints:
        is_hard = taint.effect is not TaintEffect.PREFER_NO_SCHEDULE
        if is_hard and not any(each.tolerates(taint) for each in pod.spec.tolerations):
            yield taint


def _around_taints(pod: Pod, node: Node) -> Iterator[Change]:
    """Yield a change for each key and value of the taints that keep the pod off, whatever their effects."""
    alike: dict[tuple[str, str], list[Taint]] = {}
    for taint in _untolerated(pod, node):
        alike.setdefault((taint.key, taint.value), []).append(taint)
    for (key, _), taints in alike.items():
        if key == CORDONED:
            yield Uncordon(node.name)
        elif key.startswith(CONDITIONS):
            # A node with a problem is to be repaired; a pod that tolerates it would be no better off.
            yield RemoveTaint(node.name, taints[0])
        else:
            yield _tolerate(pod, node, *taints)


def _tolerate(pod: Pod, node: Node, taint: Taint, *others: Taint) -> Tolerate:
    offered = (
        name for name, amount in node.status.allocatable.items() if is_extended(name) and amount.value()
    )
    # Devices are dear: a taint keeps such nodes for the pods that use them.
    kept_for = tuple(sorted(name for name in offered if not pod.requests.amounts.get(name)))
    return Tolerate(
        taint,
        kept_for,
        is_wanted=taint.key in pod.spec.node_selector,
        other_effects=tuple(each.effect.value for each in others),
    )


def _around_labels(pod: Pod, node: Node, *, is_met: bool) -> Iterator[Changes]:
    wrong = {key: value for key, value in pod.spec.node_selector.items() if node.labels.get(key) != value}
    dropped = (DropSelector(FrozenDict(wrong), is_met),) if wrong else ()
    affinity = pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    more: dict[str, str | None] | None = {}
    if required is None or required.matches(node.labels, node.name):
        yield dropped
    else:
        yield from ((*dropped, each) for each in _without_requirements(required, node, is_met=is_met))
        more = _missing_labels(required, node)
    if more is not None:
        labels = FrozenDict({**wrong, **more})
        if labels and not any(key.startswith(_FACTS) for key in labels):
            yield (LabelNode(node.name, labels, is_met),)


def _without_requirements(required: NodeSelector, node: Node, *, is_met: bool) -> Iterator[Change]:
    """Yield the change with which the node matches a term, for each term."""
    fields = {"metadata.name": node.name}
    for term in required.node_selector_terms:
        failed = (
            *(each for each in term.match_expressions if not each.matches(node.labels)),
            *(each for each in term.match_fields if not each.matches(fields)),
        )
        if failed:
            yield DropRequirements(failed, is_met)


def _missing_labels(required: NodeSelector, node: Node) -> dict[str, str | None] | None:
    """Return the smallest set of labels with which the node matches; None if labels can't do it."""
    ways = []
    for term in required.node_selector_terms:
        if not all(field.matches({"metadata.name": node.name}) for field in term.match_fields):
            continue
        labels: dict[str, str | None] = {}
        for requirement in term.match_expressions:
            if not requirement.matches(node.labels):
                # A guess, which is checked below.
                labels[requirement.key] = _fitting(requirement)
        # A value that meets one requirement may break another one of the same key.
        if labels and all(each.matches(_labelled(node, labels)) for each in term.match_expressions):
            ways.append(labels)
    return min(ways, key=len, default=None)


def _labelled(node: Node, labels: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**node.labels, **labels}.items() if value is not None}


def _fitting(requirement: Requirement) -> str | None:
    """Return a label value that meets the requirement; None stands for a node without the label."""
    match requirement.operator:
        case Operator.IN:
            return requirement.values[0]
        case Operator.EXISTS:
            return ""
        case Operator.GT | Operator.LT:
            try:
                bound = int(requirement.values[0])
            except ValueError:
                return None
            return str(bound + 1 if requirement.operator is Operator.GT else bound - 1)
    return None


def _around_shortages(
    pod: Pod, node: Node, evidence: Sequence[Evidence], pods_on: PodsOnNode
) -> Iterator[Changes]:
    short: dict[str, int] = {}
    enlarged: list[Change] = []
    reduced: list[Change] = []
    for each in evidence:
        resource, missing, requested = (each.values.get(name) for name in ("resource", "short", "requested"))
        if not isinstance(resource, str) or not isinstance(missing, int) or not isinstance(requested, int):
            return
        short[resource] = missing
        # A node on which the pod wouldn't fit even when empty doesn't grow: that would be another machine.
        by = rounded(resource, missing, up=True)
        if max(by, requested) <= offered(node, resource):
            enlarged.append(EnlargeNode(node.name, resource, by, each.gap or 0.0))
        left = rounded(resource, requested - missing, up=False)
        if left > 0 and (less := RequestLess.of(pod, resource, left)):
            reduced.append(less)
    for changes in (reduced, enlarged):
        # Only if there is a change for each shortage: a part of them doesn't help.
        if len(changes) == len(short):
            yield tuple(changes)
    if (victim := _smallest_victim(pod, pods_on(node.name), short)) is not None:
        yield (DeletePod(victim),)


def _smallest_victim(pod: Pod, there: Sequence[Pod], short: dict[str, int]) -> Pod | None:
    """Return the least important, smallest pod whose resources would suffice and that may be deleted; None if none."""
    able = [
        each
        for each in there
        if _may_go(each, pod) and all(_freed(each, resource) >= amount for resource, amount in short.items())
    ]
    return min(
        able,
        key=lambda each: (each.priority, [_freed(each, name) for name in sorted(short)], each.key),
        default=None,
    )


def _around_the_unknown(pod: Pod, there: Sequence[Pod]) -> Sequence[Changes]:
    """Return changes for an obstacle of an unknown kind: delete one of the node's least important pods."""
    able = sorted((each for each in there if _may_go(each, pod)), key=lambda each: (each.priority, each.key))
    return [(DeletePod(each),) for each in able[:MOST_DELETED]]


def _freed(pod: Pod, resource: str) -> int:
    return 1 if resource == "pods" else pod.requests.amounts.get(resource)


def _around_port(pod: Pod, evidence: Evidence, cluster: Cluster) -> Sequence[Changes]:
    """Return the changes that delete the holder of the port, or give the port up."""
    port, protocol = evidence.values.get("port"), evidence.values.get("protocol")
    ways = [*_without_named_pod(pod, evidence, cluster)]
    # In the node's own network, every port of a container is one of the host.
    if isinstance(port, int) and isinstance(protocol, str) and not pod.spec.host_network:
        ways.append((DropHostPort(port, protocol),))
    return ways


def _without_named_pod(pod: Pod, evidence: Evidence, cluster: Cluster) -> Sequence[Changes]:
    """Return the change that deletes the single pod in the way, if it may be deleted."""
    key = evidence.values.get("pod")
    named = cluster.get(Pod, key) if isinstance(key, str) else None
    return [(DeletePod(named),)] if named is not None and _may_go(named, pod) else []


def _may_go(other: Pod, pod: Pod) -> bool:
    """Tell whether the other pod may be deleted for this one.

    That is so unless it ends anyway, belongs to its node, is a sibling, or is more important.
    """
    own = pod.metadata.controller
    is_sibling = own is not None and other.metadata.controller == own
    may_end = not (is_sibling or other.is_terminating or belongs_to_its_node(other))
    return may_end and other.priority <= pod.priority


def _around_spread(pod: Pod, evidence: Evidence) -> Sequence[Changes]:
    key, skew = evidence.values.get("topologyKey"), evidence.values.get("skew")
    if not isinstance(key, str):
        return []
    ways: list[Changes] = []
    # Given where minDomains makes the minimum 0. The API allows no minDomains below 1.
    domains = evidence.values.get("domains")
    if isinstance(domains, int) and domains > 0:
        ways.append((FewerDomains(key, domains),))
    if isinstance(skew, int):
        ways.append((Spread(key, skew),))
    constraints = [each for each in pod.spec.topology_spread_constraints if each.topology_key == key]
    has_min_domains = any(each.min_domains is not None for each in constraints)
    # Nodes whose taints or cordons keep the pod off count as empty domains unless the constraint says otherwise.
    if any(each.node_taints_policy is NodeInclusionPolicy.IGNORE for each in constraints):
        ways.append((HonorTaints(key),))
    return [*ways, (Spread(key, None, has_min_domains),)]


def _with_labelled_domains(
    pod: Pod, cluster: Cluster, promising: Iterable[NodeExplanation]
) -> Iterator[Changes]:
    """Yield the change that labels nodes, for each topology key of the pod's spread constraints that no node has."""
    keys = {each.topology_key for each in pod.spec.topology_spread_constraints}
    names = tuple(each.node for each in promising if "PodTopologySpread" in _refusing(each))
    for key in sorted(keys) if names else ():
        if not any(key in node.labels for node in cluster.list(Node)):
            yield (LabelDomains(key, names[:NODES_OF_A_PATTERN]),)


def _that_preempt(
    pod: Pod, cluster: Cluster, promising: Iterable[NodeExplanation], pods_on: PodsOnNode
) -> Iterator[Changes]:
    """Yield changes with which the pod preempts, if pods that may be preempted are all that is in the way."""
    names = [each.node for each in promising if _HELD_BY_PODS.issuperset(_refusing(each))]
    there = tuple(chain.from_iterable(map(pods_on, names)))
    for each in (*that_may_preempt(pod, there), *with_more_priority(pod, there, cluster)):
        yield (each,)


def _around_pods(pod: Pod, evidence: Evidence, cluster: Cluster) -> Sequence[Changes]:
    term, key = evidence.values.get("term"), evidence.values.get("topologyKey")
    ways: list[Changes] = []
    if isinstance(key, str):
        workload = _own_workload(pod, evidence, cluster)
        if term == "podAffinity":
            ways.append((PreferPodRule(key, anti=False),))
        # Rules of other workloads' pods aren't changed for this pod's sake.
        elif term == "podAntiAffinity" or workload is not None:
            ways.append((PreferPodRule(key, anti=True, workload=workload),))
    if evidence.values.get("pods") == 1:
        ways += _without_named_pod(pod, evidence, cluster)
    return ways


def _own_workload(pod: Pod, evidence: Evidence, cluster: Cluster) -> OwnerReference | None:
    """The pod's controller, if the pod in the way has the same one."""
    key = evidence.values.get("pod")
    named = cluster.get(Pod, key) if isinstance(key, str) else None
    own = pod.metadata.controller
    return own if named is not None and named.metadata.controller == own else None


def _separating_keys(pod: Pod, explanation: Explanation) -> Sequence[str]:
    """Return the topology keys of the pod's anti-affinity and spread constraints, if these refuse it everywhere."""
    refusing = () if explanation.beyond is None else explanation.beyond.refusals
    keys: list[str] = []
    if "InterPodAffinity" in refusing and (rules := pod.spec.affinity.pod_anti_affinity) is not None:
        keys += [term.topology_key for term in rules.required]
    if "PodTopologySpread" in refusing:
        keys += [each.topology_key for each in pod.spec.topology_spread_constraints]
    # Every new node has a host name of its own anyway.
    return [key for key in dict.fromkeys(keys) if key != HOSTNAME]


def _with_new_node(pod: Pod, addition: AddNodes, keys: Sequence[str]) -> Iterator[Changes]:
    template = addition.group.template
    tolerated = tuple(_around_taints(pod, template))
    for each in (addition, *(attrs.evolve(addition, apart=key) for key in keys)):
        yield (each,)
        if tolerated:
            yield (*tolerated, each)
