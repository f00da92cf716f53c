"""The required terms that rule a node out, and the pods behind them, for explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import attrs

from kschedfw import NodeInfo, PodInfo, Snapshot
from kschedfw.api import selector_text
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.nodes.pod_info import AffinityTerm, affinity_terms
from kschedfw.plugins.inter_pod_affinity.filtering import AVERSE, AVOIDED, WANTED, RequiredState

MOST_NAMED = 3
"""The number of pods that are named; others are counted."""

_EXISTING = "podAntiAffinity of existing pods"
_CODES = {"podAntiAffinity": "pod-anti-affinity", _EXISTING: "pod-anti-affinity-of-others"}


@frozen(eq=False)
class Neighbours:
    """The keys of pods on the snapshot's nodes by the term they match, topology key and domain.

    Each question takes one look at all pods, and its answers are kept: many nodes are refused for the same
    pods.
    """

    snapshot: Snapshot
    _known: dict[tuple[object, str], Mapping[str, list[str]]] = attrs.field(factory=dict)

    def of(
        self, node_info: NodeInfo, topology_key: str, what: object, matches: Callable[[PodInfo], bool]
    ) -> list[str]:
        """Return the matching pods in the node's domain; pods of the node itself come first, in their present state.

        `what` identifies the question in the cache.
        """
        own = [info.pod.key for info in node_info.pods if matches(info)]
        domain = node_info.node.labels.get(topology_key)
        if domain is None:
            return []
        by_domain = self._known.get((what, topology_key))
        if by_domain is None:
            by_domain = self._known[what, topology_key] = self._by_domain(topology_key, matches)
        return list(dict.fromkeys([*own, *by_domain.get(domain, ())]))

    def _by_domain(self, topology_key: str, matches: Callable[[PodInfo], bool]) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for info in self.snapshot.node_infos:
            domain = info.node.labels.get(topology_key)
            if domain is not None:
                found.setdefault(domain, []).extend(each.pod.key for each in info.pods if matches(each))
        return found


def evidence_of(state: RequiredState, node_info: NodeInfo, neighbours: Neighbours) -> Iterator[Evidence]:
    """Yield evidence for the refusal of the node: one entry for each term that it breaks."""
    labels = node_info.node.labels
    yield from _without_company(state, labels)
    given = affinity_terms(state.pod).required_anti_affinity
    for term, written in zip(state.terms.required_anti_affinity, given, strict=True):
        key = term.topology_key
        pods = neighbours.of(node_info, key, term, partial(_matches, term))
        if pods and state.any_at(AVOIDED, key, labels[key]):
            yield _broken("podAntiAffinity", key, labels[key], pods, _text(term, written))
    for key in sorted(state.keys(AVERSE)):
        pods = neighbours.of(node_info, key, _EXISTING, partial(_minds, state, key))
        if pods and state.any_at(AVERSE, key, labels[key]):
            yield _broken(_EXISTING, key, labels[key], pods)


def _without_company(state: RequiredState, labels: Mapping[str, str]) -> Iterator[Evidence]:
    terms = state.terms.required_affinity
    for term, written in zip(terms, affinity_terms(state.pod).required_affinity, strict=True):
        key = term.topology_key
        domain = labels.get(key)
        if domain is None:
            found = f"no label {key}"
        elif not state.any_at(WANTED, key, domain):
            every = " that matches all terms" if len(terms) > 1 else ""
            found = f"no such pod in {domain}{every}"
        else:
            continue
        selector = _text(term, written)
        yield Evidence(
            f"podAffinity on {key} to {selector}",
            found,
            values={
                "term": "podAffinity",
                "topologyKey": key,
                "selector": selector,
                "domain": domain,
                "terms": len(terms),
            },
            code="pod-affinity",
        )


def _broken(term: str, key: str, domain: str, pods: list[str], selector: str | None = None) -> Evidence:
    named = ", ".join(pods[:MOST_NAMED])
    more = f" and {len(pods) - MOST_NAMED} more" if len(pods) > MOST_NAMED else ""
    return Evidence(
        f"{term} on {key}{'' if selector is None else f' to {selector}'}",
        f"{domain} has {named}{more}",
        values={
            "term": term,
            "topologyKey": key,
            "selector": selector,
            "domain": domain,
            "pods": len(pods),
            "pod": pods[0],
            "examples": named,
        },
        code=_CODES[term],
    )


def _matches(term: AffinityTerm, existing: PodInfo) -> bool:
    return term.matches(existing.pod)


def _minds(state: RequiredState, key: str, existing: PodInfo) -> bool:
    return any(
        term.topology_key == key and term.matches(state.pod, state.namespace_labels)
        for term in existing.required_anti_affinity_terms
    )


def _text(term: AffinityTerm, written: AffinityTerm) -> str:
    """Return the term's selector and namespaces in words; `written` is the term before its namespaces were resolved."""
    spaces, of_spaces = sorted(term.namespaces), written.namespace_selector
    if term.namespace_selector.everything:
        where = "any namespace"
        if not of_spaces.everything:
            # Nobody who wrote "not this namespace" expects that it is every namespace.
            where += f" (kube-scheduler v1.36 matches {selector_text(of_spaces)} with no labels)"
    elif spaces:
        where = f"namespace {', '.join(spaces)}"
    else:
        where = f"namespaces with {selector_text(of_spaces)}"
    return f"pods with {selector_text(term.selector)} in {where}"
