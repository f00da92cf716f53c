"""Corrections of what is misspelt in a pod's spec, each a change that may get the pod a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

import attrs

from kschedfw import FrozenDict, Pod
from kschedfw.api import (
    CPU,
    Container,
    LabelSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    Requirement,
    ResourceRequirements,
    TopologySpreadConstraint,
    Volume,
    selector_text,
)
from kschedfw_advisor.amounts import exact_text, plain_text
from kschedfw_advisor.changes import Change, Effort, with_spec
from kschedfw_advisor.request_changes import RequestLess, requested, with_request

_Rule = TypeVar("_Rule", TopologySpreadConstraint, PodAffinityTerm)


@attrs.frozen
class _Respelling(Change):
    """The correction of a misspelt key, with or without its value."""

    usual_effort = Effort.TYPO
    where: ClassVar[str]
    key: str
    value: str
    new_key: str
    new_value: str

    def __str__(self) -> str:
        old, new = _pair_text(self.key, self.value), _pair_text(self.new_key, self.new_value)
        return f"correct {old} to {new}, {self.where}"

    def _respelt(self, key: str, value: str) -> tuple[str, str]:
        return (self.new_key, self.new_value) if (key, value) == (self.key, self.value) else (key, value)

    def _corrected(self, requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
        return tuple(self._requirement(each) if each.key == self.key else each for each in requirements)

    def _requirement(self, requirement: Requirement) -> Requirement:
        values = tuple(self.new_value if value == self.value else value for value in requirement.values)
        return attrs.evolve(requirement, key=self.new_key, values=values)


def _with_terms(pod: Pod, corrected: Callable[[PodAffinityTerm], PodAffinityTerm]) -> Pod:
    """Return the pod with the terms of its required affinity to other pods corrected."""
    rules = pod.spec.affinity.pod_affinity
    if rules is None:
        return pod
    terms = tuple(map(corrected, rules.required))
    affinity = attrs.evolve(pod.spec.affinity, pod_affinity=attrs.evolve(rules, required=terms))
    return with_spec(pod, attrs.evolve(pod.spec, affinity=affinity))


def _pair_text(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


@attrs.frozen
class RespellLabel(_Respelling):
    """The pod with another label of nodes in its nodeSelector and its required node affinity."""

    where = "which nodes have, in the labels that the pod wants"

    def changed(self, pod: Pod) -> Pod:
        selector = FrozenDict(dict([self._respelt(*label) for label in pod.spec.node_selector.items()]))
        spec = attrs.evolve(pod.spec, node_selector=selector)
        rules = spec.affinity.node_affinity
        if rules is None or rules.required is None:
            return with_spec(pod, spec)
        terms = tuple(
            NodeSelectorTerm(self._corrected(term.match_expressions), term.match_fields)
            for term in rules.required.node_selector_terms
        )
        required = attrs.evolve(rules.required, node_selector_terms=terms)
        affinity = attrs.evolve(spec.affinity, node_affinity=attrs.evolve(rules, required=required))
        return with_spec(pod, attrs.evolve(spec, affinity=affinity))


@attrs.frozen
class RespellPodLabel(_Respelling):
    """The pod with another label of pods in its required affinity to them."""

    where = "which pods have, in the pod's affinity to other pods"

    def changed(self, pod: Pod) -> Pod:
        return _with_terms(pod, self._term)

    def _term(self, term: PodAffinityTerm) -> PodAffinityTerm:
        selector = term.label_selector
        if selector is None:
            return term
        labels = FrozenDict(dict([self._respelt(*label) for label in selector.match_labels.items()]))
        corrected = LabelSelector(labels, self._corrected(selector.match_expressions))
        return attrs.evolve(term, label_selector=corrected)


@attrs.frozen
class LookInNamespace(Change):
    """The pod with a required affinity that looks for its pods in another namespace, where there are such pods."""

    usual_effort = Effort.TYPO
    topology_key: str
    selector: str
    namespace: str

    def __str__(self) -> str:
        where = f"in namespace {self.namespace}, where such pods run"
        return (
            f"look for {self.selector} {where}, by namespaces in the pod's affinity over {self.topology_key}"
        )

    def changed(self, pod: Pod) -> Pod:
        return _with_terms(pod, self._term)

    def _term(self, term: PodAffinityTerm) -> PodAffinityTerm:
        is_it = term.topology_key == self.topology_key and _selector_of(term) == self.selector
        return attrs.evolve(term, namespaces=(self.namespace,)) if is_it else term


def _selector_of(term: PodAffinityTerm) -> str:
    return "" if term.label_selector is None else selector_text(term.label_selector.compile())


@attrs.frozen
class RespellToleration(_Respelling):
    """The pod with a toleration of another taint."""

    where = "a taint of nodes, in the pod's tolerations"

    def changed(self, pod: Pod) -> Pod:
        tolerations = tuple(
            attrs.evolve(each, key=self.new_key, value=self.new_value)
            if (each.key, each.value) == (self.key, self.value) and not each.operator.compares_integers
            else each
            for each in pod.spec.tolerations
        )
        return with_spec(pod, attrs.evolve(pod.spec, tolerations=tolerations))


@attrs.frozen
class RespellTopologyKey(Change):
    """The pod with another label of nodes as the topology key of its spread constraints and its rules on pods."""

    usual_effort = Effort.TYPO
    key: str
    new_key: str

    def __str__(self) -> str:
        return f"correct {self.key} to {self.new_key}, a label of nodes, as the topologyKey"

    def changed(self, pod: Pod) -> Pod:
        constraints = tuple(map(self._corrected, pod.spec.topology_spread_constraints))
        spec = attrs.evolve(pod.spec, topology_spread_constraints=constraints)
        return _with_terms(with_spec(pod, spec), self._corrected)

    def _corrected(self, rule: _Rule) -> _Rule:
        return attrs.evolve(rule, topology_key=self.new_key) if rule.topology_key == self.key else rule


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
class RespellClaim(Change):
    """The pod with another PersistentVolumeClaim."""

    usual_effort = Effort.TYPO
    name: str
    new_name: str

    def __str__(self) -> str:
        return f"correct {self.name} to {self.new_name}, a claim of the namespace, in the pod's volumes"

    def changed(self, pod: Pod) -> Pod:
        volumes = tuple(map(self._corrected, pod.spec.volumes))
        return with_spec(pod, attrs.evolve(pod.spec, volumes=volumes))

    def _corrected(self, volume: Volume) -> Volume:
        claim = volume.persistent_volume_claim
        if claim is None or claim.claim_name != self.name:
            return volume
        return attrs.evolve(volume, persistent_volume_claim=attrs.evolve(claim, claim_name=self.new_name))


@attrs.frozen
class RespellScheduler(Change):
    """The pod for another scheduler."""

    usual_effort = Effort.TYPO
    name: str
    new_name: str

    def __str__(self) -> str:
        return (
            f"correct {self.name} to {self.new_name}, which schedules pods here, as the pod's schedulerName"
        )

    def changed(self, pod: Pod) -> Pod:
        return with_spec(pod, attrs.evolve(pod.spec, scheduler_name=self.new_name))


@attrs.frozen
class MistakenUnit(RequestLess):
    """The pod with requests whose unit was too large, such as `4000` cores for `4000m` and `8Ti` for `8Gi`.

    The amounts are those of the container with the largest request. `at_most` is what the largest node has that the pod
    may use: every request above that gets the smaller unit.
    """

    at_most: int = 0

    def __str__(self) -> str:
        there = f"no node that the pod may use has more than {plain_text(self.resource, self.at_most)}"
        if self.resource == CPU:
            cores = self.instead_of // 1000
            return f"request {cores}m of cpu: {cores} is a number of cores, and m for millicores is missing; {there}"
        less, more = (exact_text(self.resource, amount) for amount in (self.request, self.instead_of))
        return f"request {less} of {self.resource}: {more} has the wrong unit; {there}"

    @property
    def effort(self) -> Effort:
        return Effort.TYPO

    def changed(self, pod: Pod) -> Pod:
        spec = pod.spec
        changed = attrs.evolve(
            spec,
            containers=tuple(map(self._corrected, spec.containers)),
            init_containers=tuple(map(self._corrected, spec.init_containers)),
            resources=None if spec.resources is None else self._smaller_unit(spec.resources),
        )
        return with_spec(pod, changed)

    def _corrected(self, container: Container) -> Container:
        return attrs.evolve(container, resources=self._smaller_unit(container.resources))

    def _smaller_unit(self, given: ResourceRequirements) -> ResourceRequirements:
        amount = requested(given, self.resource)
        if amount <= self.at_most:
            return given
        return with_request(given, self.resource, amount * self.request // self.instead_of)
