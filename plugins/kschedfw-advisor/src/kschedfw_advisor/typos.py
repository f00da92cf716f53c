"""Misspelt names in a pod's spec: those that nothing in the cluster has, next to one that something has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import Final

import attrs

from kschedfw import FrozenDict, Node, Pod
from kschedfw.api import CPU, Container, NodeSelectorTerm, Operator, Requirement
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change, Effort, RequestLess, with_spec

_SIMILAR: Final = 0.66
"""difflib's ratio from which on one name may be meant by another: sdd and ssd have 0.67, zones and zone 0.89."""
_CORES_OF_NO_POD: Final = 1000
"""From so many cores on, a request was meant in millicores: the largest machines on offer have fewer."""


def close_to(name: str, names: Collection[str]) -> str | None:
    """The name of those that are there that may be meant by one that isn't; None if there is none, or it is there."""
    if name in names:
        return None
    found = get_close_matches(name, names, 5, _SIMILAR)
    # Of names that are equally close, the one with the same first letter: few people get that one wrong.
    closest = max((SequenceMatcher(None, each, name).ratio() for each in found), default=0.0)
    equal = [each for each in found if SequenceMatcher(None, each, name).ratio() == closest]
    return next((each for each in equal if each[:1] == name[:1]), next(iter(equal), None))


def typos(pod: Pod, cluster: Cluster) -> Iterator[Change]:
    """The corrections of what may be misspelt in the pod's spec."""
    nodes = cluster.list(Node)
    yield from _in_labels(pod, nodes)
    yield from _in_tolerations(pod, nodes)
    yield from _in_resources(pod, nodes)
    cores = pod.requests.amounts.get(CPU) // 1000
    if cores >= _CORES_OF_NO_POD:
        yield MilliCores(CPU, cores, cores * 1000)


def _in_labels(pod: Pod, nodes: Collection[Node]) -> Iterator[Change]:
    values: defaultdict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for key, value in node.labels.items():
            values[key].add(value)
    affinity = pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    wanted = list(pod.spec.node_selector.items())
    for term in () if required is None else required.node_selector_terms:
        for each in term.match_expressions:
            if each.operator in (Operator.IN, Operator.EXISTS):
                wanted += [(each.key, value) for value in each.values or ("",)]
    for key, value in dict.fromkeys(wanted):
        meant = _meant(key, value, values)
        if meant is not None:
            yield RespellLabel(key, value, *meant)


def _meant(key: str, value: str, values: Mapping[str, Collection[str]]) -> tuple[str, str] | None:
    """The label that nodes have, if the one that is wanted is close to it and no node has that."""
    if key in values:
        meant = close_to(value, values[key]) if value else None
        return None if meant is None else (key, meant)
    meant = close_to(key, values.keys())
    if meant is None:
        return None
    if not value or value in values[meant]:
        return meant, value
    similar = close_to(value, values[meant])
    return None if similar is None else (meant, similar)


@attrs.frozen
class RespellLabel(Change):
    """The pod with another label of nodes in its nodeSelector and its required node affinity."""

    usual_effort = Effort.TYPO
    key: str
    value: str
    new_key: str
    new_value: str

    def __str__(self) -> str:
        old, new = (
            f"{k}={v}" if v else k for k, v in ((self.key, self.value), (self.new_key, self.new_value))
        )
        return f"correct {old} to {new}, which nodes have, in the labels that the pod wants"

    def changed(self, pod: Pod) -> Pod:
        selector = FrozenDict(dict([self._respelt(*label) for label in pod.spec.node_selector.items()]))
        spec = attrs.evolve(pod.spec, node_selector=selector)
        rules = spec.affinity.node_affinity
        if rules is None or rules.required is None:
            return with_spec(pod, spec)
        terms = tuple(
            NodeSelectorTerm(tuple(map(self._corrected, term.match_expressions)), term.match_fields)
            for term in rules.required.node_selector_terms
        )
        required = attrs.evolve(rules.required, node_selector_terms=terms)
        affinity = attrs.evolve(spec.affinity, node_affinity=attrs.evolve(rules, required=required))
        return with_spec(pod, attrs.evolve(spec, affinity=affinity))

    def _respelt(self, key: str, value: str) -> tuple[str, str]:
        return (self.new_key, self.new_value) if (key, value) == (self.key, self.value) else (key, value)

    def _corrected(self, requirement: Requirement) -> Requirement:
        if requirement.key != self.key:
            return requirement
        values = tuple(self.new_value if value == self.value else value for value in requirement.values)
        return attrs.evolve(requirement, key=self.new_key, values=values)


def _in_tolerations(pod: Pod, nodes: Collection[Node]) -> Iterator[Change]:
    taints = {taint.key: taint.value for node in nodes for taint in node.spec.taints}
    values = defaultdict(set)
    for node in nodes:
        for taint in node.spec.taints:
            values[taint.key].add(taint.value)
    for each in pod.spec.tolerations:
        if not each.key:
            continue
        if each.key in taints:
            meant = close_to(each.value, values[each.key]) if each.value else None
            if meant is not None:
                yield RespellToleration(each.key, each.value, each.key, meant)
        elif (key := close_to(each.key, taints)) is not None:
            yield RespellToleration(each.key, each.value, key, each.value)


@attrs.frozen
class RespellToleration(Change):
    """The pod with a toleration of another taint."""

    usual_effort = Effort.TYPO
    key: str
    value: str
    new_key: str
    new_value: str

    def __str__(self) -> str:
        old, new = (
            f"{k}={v}" if v else k for k, v in ((self.key, self.value), (self.new_key, self.new_value))
        )
        return f"correct {old} to {new}, a taint of nodes, in the pod's tolerations"

    def changed(self, pod: Pod) -> Pod:
        tolerations = tuple(
            attrs.evolve(each, key=self.new_key, value=self.new_value)
            if (each.key, each.value) == (self.key, self.value)
            else each
            for each in pod.spec.tolerations
        )
        return with_spec(pod, attrs.evolve(pod.spec, tolerations=tolerations))


def _in_resources(pod: Pod, nodes: Collection[Node]) -> Iterator[Change]:
    offered = {name for node in nodes for name in node.status.allocatable}
    wanted = {name for each in pod.spec.containers for name in each.resources.requests}
    for name in sorted(wanted):
        if (meant := close_to(name, offered)) is not None:
            yield RespellResource(name, meant)


@attrs.frozen
class RespellResource(Change):
    """The pod with a request of another resource."""

    usual_effort = Effort.TYPO
    name: str
    new_name: str

    def __str__(self) -> str:
        return f"correct {self.name} to {self.new_name}, which nodes offer, in the pod's requests"

    def changed(self, pod: Pod) -> Pod:
        containers = tuple(map(self._corrected, pod.spec.containers))
        return with_spec(pod, attrs.evolve(pod.spec, containers=containers))

    def _corrected(self, container: Container) -> Container:
        given = container.resources
        requests, limits = (
            FrozenDict(
                {self.new_name if name == self.name else name: amount for name, amount in amounts.items()}
            )
            for amounts in (given.requests, given.limits)
        )
        return attrs.evolve(container, resources=attrs.evolve(given, requests=requests, limits=limits))


@attrs.frozen
class MilliCores(RequestLess):
    """The pod with a request in millicores whose number was written as cores."""

    usual_effort = Effort.TYPO

    def __str__(self) -> str:
        return f"request {self.request}m of cpu: {self.request} is a number of cores, and m for millicores is missing"

    @property
    def effort(self) -> Effort:
        return self.usual_effort
