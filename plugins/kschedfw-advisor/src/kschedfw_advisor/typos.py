"""Finds what is misspelt in a pod's spec: names that nothing in the cluster has, close to one that something has."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import attrs

from kschedfw import Node, Pod
from kschedfw.api import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Operator,
    PersistentVolumeClaim,
    PodAffinityTerm,
    Requirement,
    ResourceRequirements,
    close_to,
    selector_text,
)
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change
from kschedfw_advisor.corrections import (
    LookInNamespace,
    MistakenUnit,
    RespellClaim,
    RespellLabel,
    RespellPodLabel,
    RespellResource,
    RespellToleration,
    RespellTopologyKey,
)
from kschedfw_advisor.node_groups import CONDITIONS, HOSTNAME
from kschedfw_advisor.request_changes import requested
from kschedfw_advisor.sizes import allowed_nodes, allows, largest, offered

_MIB: Final = 1 << 20


@attrs.frozen
class _Usual:
    """The requests of containers for a resource: the least that is taken for one, and what tells a mistaken unit.

    A request has a mistaken unit if it is more than `far_more` times as large as the largest node that the pod may use;
    more than `more` times is enough where the smaller unit gives at least `common`.
    """

    least: int
    common: int
    more: int
    far_more: int = 4


_USUAL: Final = {
    CPU: _Usual(100, 100, more=2),
    MEMORY: _Usual(16 * _MIB, 100 * _MIB, more=2),
    # Disks differ more than memories do: twice the largest one may well be meant.
    EPHEMERAL_STORAGE: _Usual(16 * _MIB, 100 * _MIB, more=4),
}

_SAID_OF_MUCH: Final = frozenset(("true", "false", "yes", "no", "on", "off"))
"""Values that labels of different meanings have."""
_WORD: Final = re.compile(r"[a-z0-9]+")

_Pair = tuple[str, str]
"""A key and its value; the value is empty where only the key is wanted."""


def typos(pod: Pod, cluster: Cluster) -> Iterator[Change]:
    """The corrections of what may be misspelt in the pod's spec."""
    nodes = cluster.list(Node)
    wanted, topology_keys = list(_wanted_of_nodes(pod)), dict.fromkeys(_topology_keys(pod))
    if wanted or topology_keys:
        labels = _values(node.labels.items() for node in nodes)
        for pair, meant in _misspelt(wanted, labels):
            yield RespellLabel(*pair, *meant)
        for key in topology_keys:
            new_key = close_to(key, labels) or (None if key in labels else _same_name(key, labels))
            if new_key is not None:
                yield RespellTopologyKey(key, new_key)
    if tolerated := list(_tolerated(pod)):
        taints = _values(((taint.key, taint.value) for taint in node.spec.taints) for node in nodes)
        for pair, meant in _misspelt(tolerated, taints):
            yield RespellToleration(*pair, *meant)
        for key, value in tolerated:
            # A taint's value says little, so where there is one only, a toleration of the key means it.
            there = taints.get(key, ())
            if value and value not in there and len(there) == 1 and close_to(value, there) is None:
                yield RespellToleration(key, value, key, next(iter(there)))
    yield from _in_pod_affinity(pod, cluster)
    yield from _in_claims(pod, cluster)
    yield from _in_resources(pod, nodes)


def _values(pairs: Iterable[Iterable[_Pair]]) -> Mapping[str, Collection[str]]:
    """Return the values of each key in the pairs."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for of_one in pairs:
        for key, value in of_one:
            found[key].add(value)
    return found


def _misspelt(wanted: Iterable[_Pair], there: Mapping[str, Collection[str]]) -> Iterator[tuple[_Pair, _Pair]]:
    """Yield each wanted pair that doesn't exist, with the existing pair that was meant."""
    for pair in dict.fromkeys(wanted):
        meant = _meant(*pair, there)
        if meant is not None:
            yield pair, meant


def _meant(key: str, value: str, there: Mapping[str, Collection[str]]) -> _Pair | None:
    if key in there:
        meant = close_to(value, there[key]) if value else None
        return None if meant is None else (key, meant)
    meant = close_to(key, there.keys())
    if meant is None:
        return _renamed(key, value, there)
    if not value or value in there[meant]:
        return meant, value
    similar = close_to(value, there[meant])
    return None if similar is None else (meant, similar)


def _renamed(key: str, value: str, there: Mapping[str, Collection[str]]) -> _Pair | None:
    """Return the pair that has another key now: the only one with the value, or the one most alike of several."""
    if not value or value.lower() in _SAID_OF_MUCH or value.isdecimal():
        return None
    alike = Counter(
        {other: _words_shared(key, other) for other in there if other != HOSTNAME and value in there[other]}
    )
    best = alike.most_common(2)
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        return None
    return best[0][0], value


def _words_shared(key: str, other: str) -> int:
    return len(_words(key) & _words(other))


def _words(key: str) -> frozenset[str]:
    return frozenset(_WORD.findall(key.lower()))


def _same_name(key: str, there: Iterable[str]) -> str | None:
    """Return the only key that has the same name in another domain, such as `zone` in `topology.kubernetes.io/zone`."""
    domain, _, name = key.rpartition("/")
    found = [other for other in there if other.rpartition("/")[2] == name] if domain else []
    return found[0] if len(found) == 1 else None


def _wanted_of_nodes(pod: Pod) -> Iterator[_Pair]:
    # Host names resemble each other: node-1 is no misspelt node-2.
    yield from (pair for pair in pod.spec.node_selector.items() if pair[0] != HOSTNAME)
    affinity = pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    for term in () if required is None else required.node_selector_terms:
        yield from _wanted_by(term.match_expressions)


def _wanted_by(requirements: Iterable[Requirement]) -> Iterator[_Pair]:
    for each in requirements:
        if each.operator in (Operator.IN, Operator.EXISTS):
            for value in each.values or ("",):
                yield each.key, value


def _tolerated(pod: Pod) -> Iterator[_Pair]:
    """Yield the taints that the pod names in tolerations.

    Conditions of nodes are left out, since every pod tolerates them by default. So are the bounds of Gt and Lt: a bound
    that no taint has as its value isn't misspelt.
    """
    for each in pod.spec.tolerations:
        if each.key and not each.key.startswith(CONDITIONS) and not each.operator.compares_integers:
            yield each.key, each.value


def _topology_keys(pod: Pod) -> Iterator[str]:
    yield from (each.topology_key for each in pod.spec.topology_spread_constraints)
    yield from (term.topology_key for term in _company(pod))


def _company(pod: Pod) -> Collection[PodAffinityTerm]:
    rules = pod.spec.affinity.pod_affinity
    return () if rules is None else rules.required


def _in_pod_affinity(pod: Pod, cluster: Cluster) -> Iterator[Change]:
    """Yield corrections of other pods' labels in the pod's required affinity.

    Anti-affinity needs none: where its labels are misspelt, it refuses no node.
    """
    for term in _company(pod):
        if term.label_selector is None:
            continue
        spaces = frozenset(term.namespaces or (() if term.namespace_selector else (pod.namespace,)))
        others = [each for each in cluster.list(Pod) if not spaces or each.namespace in spaces]
        if (elsewhere := _only_namespace(term, others, cluster)) is not None:
            yield LookInNamespace(term.topology_key, selector_text(term.label_selector.compile()), elsewhere)
            continue
        there = _values(each.labels.items() for each in others)
        for pair, meant in _misspelt(_wanted_by(term.label_selector.compile().requirements), there):
            yield RespellPodLabel(*pair, *meant)


def _only_namespace(term: PodAffinityTerm, others: Iterable[Pod], cluster: Cluster) -> str | None:
    """Return the only namespace with pods that the term selects, if none of the others is one; None otherwise."""
    if term.namespaces or term.namespace_selector or term.label_selector is None:
        return None
    selector = term.label_selector.compile()
    if selector.everything or any(selector.matches(each.labels) for each in others):
        return None
    found = {each.namespace for each in cluster.list(Pod) if each.node_name and selector.matches(each.labels)}
    return next(iter(found)) if len(found) == 1 else None


def _in_claims(pod: Pod, cluster: Cluster) -> Iterator[Change]:
    wanted = [each.persistent_volume_claim.claim_name for each in pod.storage if each.persistent_volume_claim]
    if wanted:
        names = [each.name for each in cluster.list(PersistentVolumeClaim) if each.namespace == pod.namespace]
        for name in wanted:
            if (meant := close_to(name, names)) is not None:
                yield RespellClaim(name, meant)


def _in_resources(pod: Pod, nodes: Collection[Node]) -> Iterator[Change]:
    there = {name for node in nodes for name in node.status.allocatable}
    wanted = {name for each in pod.spec.containers for name in each.resources.requests}
    for name in sorted(wanted):
        if (meant := close_to(name, there)) is not None:
            yield RespellResource(name, meant)
    yield from _mistaken_units(pod, nodes)


def _mistaken_units(pod: Pod, nodes: Collection[Node]) -> Iterator[Change]:
    """Yield the next smaller unit for requests above what any node has that the pod may use, even when empty.

    With the smaller unit the request has to fit on such a node, and to be an amount that containers are given.
    """
    for name, usual in _USUAL.items():
        wrong = max((requested(each, name) for each in _given(pod)), default=0)
        # A multiple of 1024 was written with a binary unit.
        step = 1024 if name != CPU and wrong % 1024 == 0 else 1000
        meant = wrong // step
        # A fraction of a core was meant as cores.
        if meant < usual.least or (name == CPU and wrong % step):
            continue
        # A request that is a little too large is rather a large pod: 48 cores, and not 48 millicores.
        more = usual.more if meant >= usual.common else usual.far_more
        if any(offered(node, name) * more >= wrong and allows(pod, node) for node in nodes):
            # The usual case, found at the first nodes.
            continue
        most = largest(allowed_nodes(pod, nodes) or nodes, name)
        if most is not None and wrong > more * most.amount and meant <= most.amount:
            yield MistakenUnit(name, meant, wrong, at_most=most.amount)


def _given(pod: Pod) -> Iterator[ResourceRequirements]:
    """Yield the requirements of the containers, and those of the pod itself."""
    spec = pod.spec
    yield from (each.resources for each in (*spec.init_containers, *spec.containers))
    if spec.resources is not None:
        yield spec.resources
