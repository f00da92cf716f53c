"""Changes of a pod's own rules: its gates, tolerations, selectors and affinities."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Final

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Pod
from kschedfw.api import (
    Container,
    ContainerPort,
    Named,
    NodeSelectorTerm,
    OwnerReference,
    PodAffinity,
    Requirement,
    Taint,
    Toleration,
    TolerationOperator,
    WeightedPodAffinityTerm,
    requirement_text,
)
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change, Effort, taint_text, with_spec

_MOST_WEIGHT: Final = 100
"""The greatest weight of a preferred term."""

_CONTROL_PLANE: Final = frozenset(("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"))
"""Keys of the taints that keep nodes free for the control plane."""

_PLATFORM: Final = frozenset(("arch", "os"))
"""Names of labels, in any domain, that say which images run on a node."""


@attrs.frozen
class RemoveGates(Change):
    """The pod without its scheduling gates."""

    usual_effort = Effort.GATE
    gates: tuple[str, ...]

    def __str__(self) -> str:
        return f"remove the scheduling gate{'s' * (len(self.gates) > 1)} {', '.join(self.gates)}"

    def changed(self, pod: Pod) -> Pod:
        return with_spec(pod, attrs.evolve(pod.spec, scheduling_gates=()))


@attrs.frozen
class Tolerate(Change):
    """The pod with one more toleration."""

    usual_effort = Effort.POD_RULE
    taint: Taint
    kept_for: tuple[str, ...] = ()
    """The extended resources that nodes with the taint offer and the pod doesn't request."""
    is_wanted: bool = False
    """Tells whether the pod's nodeSelector asks for nodes by a label with the taint's key."""
    other_effects: tuple[str, ...] = ()
    """The effects of the node's other taints with the same key and value; one toleration covers all of them."""

    def __str__(self) -> str:
        for_whom = ""
        if self._is_of_control_plane:
            for_whom = "; such nodes are kept for the control plane"
        elif self.kept_for:
            for_whom = f"; such nodes offer {' and '.join(self.kept_for)}, which the pod doesn't request"
        more = "".join(f" and {effect}" for effect in self.other_effects)
        return f"tolerate {taint_text(self.taint)}{more}{for_whom}"

    @property
    def requirement(self) -> Hashable:
        return self.taint

    @property
    def _is_of_control_plane(self) -> bool:
        return self.taint.key in _CONTROL_PLANE

    @property
    def effort(self) -> Effort:
        is_kept = self._is_of_control_plane and not self.is_wanted
        return Effort.RESERVED if is_kept or self.kept_for else self.usual_effort

    def changed(self, pod: Pod) -> Pod:
        taint = self.taint
        operator = TolerationOperator.EQUAL if taint.value else TolerationOperator.EXISTS
        added = Toleration(taint.key, operator, taint.value, None if self.other_effects else taint.effect)
        return with_spec(pod, attrs.evolve(pod.spec, tolerations=(*pod.spec.tolerations, added)))


@attrs.frozen
class DropSelector(Change):
    """The pod without some entries of its nodeSelector."""

    usual_effort = Effort.POD_RULE
    labels: FrozenDict[str, str]
    is_met: bool = False
    """Tells whether nodes meet all the rules of the pod on nodes."""

    def __str__(self) -> str:
        return f"drop {_labels_text(self.labels)} from the pod's nodeSelector{_platform_text(self.labels)}"

    @property
    def requirement(self) -> Hashable:
        return self.labels

    @property
    def effort(self) -> Effort:
        return _effort_without(self.labels, is_met=self.is_met)

    @property
    def amount(self) -> float:
        return 1 + len(self.labels)

    def changed(self, pod: Pod) -> Pod:
        left = FrozenDict(
            {key: each for key, each in pod.spec.node_selector.items() if key not in self.labels}
        )
        return with_spec(pod, attrs.evolve(pod.spec, node_selector=left))


@attrs.frozen
class DropRequirements(Change):
    """The pod without some requirements of its required node affinity; a term that has no others allows all nodes."""

    usual_effort = Effort.POD_RULE
    requirements: tuple[Requirement, ...]
    is_met: bool = False
    """Tells whether nodes meet all the rules of the pod on nodes."""

    def __str__(self) -> str:
        dropped = " and ".join(map(requirement_text, self.requirements))
        return f"drop {dropped} from the pod's required node affinity{_platform_text(self._keys)}"

    @property
    def _keys(self) -> Collection[str]:
        return [each.key for each in self.requirements]

    @property
    def requirement(self) -> Hashable:
        return self.requirements

    @property
    def effort(self) -> Effort:
        return _effort_without(self._keys, is_met=self.is_met)

    @property
    def amount(self) -> float:
        return 1 + len(self.requirements)

    def changed(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity
        rules = affinity.node_affinity
        if rules is None or rules.required is None:
            return pod
        terms = tuple(map(self._without, rules.required.node_selector_terms))
        # In the API an empty term matches no node. So a term without requirements takes the whole rule away, since
        # terms are alternatives.
        unlimited = any(not (term.match_expressions or term.match_fields) for term in terms)
        required = None if unlimited else attrs.evolve(rules.required, node_selector_terms=terms)
        affinity = attrs.evolve(affinity, node_affinity=attrs.evolve(rules, required=required))
        return with_spec(pod, attrs.evolve(pod.spec, affinity=affinity))

    def _without(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        expressions, fields = (
            tuple(each for each in given if each not in self.requirements)
            for given in (term.match_expressions, term.match_fields)
        )
        return NodeSelectorTerm(expressions, fields)


def _platform_text(keys: Iterable[str]) -> str:
    return "; its image may not run on another platform" if _has_platform(keys) else ""


def _has_platform(keys: Iterable[str]) -> bool:
    return any(key.rpartition("/")[2] in _PLATFORM for key in keys)


def _effort_without(keys: Iterable[str], *, is_met: bool) -> Effort:
    """Return the effort of letting the pod onto nodes with any values of these labels."""
    if _has_platform(keys):
        return Effort.RESERVED
    return Effort.MET_RULE if is_met else Effort.POD_RULE


@attrs.frozen
class PreferPodRule(Change):
    """The pod with a preferred affinity, or anti-affinity, to other pods over a topology in place of a required one.

    With the `workload` of the pod, the pods of it that run get the same: their own rules keep the pod away as well.
    """

    usual_effort = Effort.POD_RULE
    topology_key: str
    anti: bool
    workload: OwnerReference | None = None

    def __str__(self) -> str:
        kind = "podAntiAffinity" if self.anti else "podAffinity"
        return f"prefer the {kind} over {self.topology_key} instead of requiring it"

    @property
    def amount(self) -> float:
        # A workload that keeps off its own pods was given too many of them. Other rules are there for other pods' sake.
        return -1.0 if self.workload is not None else 1000.0

    @override
    def others_changed(self, cluster: Cluster) -> Iterator[tuple[Named, Named]]:
        if self.workload is not None:
            for pod in cluster.list(Pod):
                if pod.node_name and pod.metadata.controller == self.workload:
                    yield pod, self.changed(pod)

    def changed(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity
        rules = affinity.pod_anti_affinity if self.anti else affinity.pod_affinity
        if rules is None:
            return pod
        relaxed = self._relaxed(rules)
        if self.anti:
            affinity = attrs.evolve(affinity, pod_anti_affinity=relaxed)
        else:
            affinity = attrs.evolve(affinity, pod_affinity=relaxed)
        return with_spec(pod, attrs.evolve(pod.spec, affinity=affinity))

    def _relaxed(self, rules: PodAffinity) -> PodAffinity:
        relaxed = [term for term in rules.required if term.topology_key == self.topology_key]
        return attrs.evolve(
            rules,
            required=tuple(term for term in rules.required if term not in relaxed),
            preferred=(*rules.preferred, *(WeightedPodAffinityTerm(_MOST_WEIGHT, term) for term in relaxed)),
        )


def _labels_text(labels: FrozenDict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


@attrs.frozen
class DropHostPort(Change):
    """The pod without a host port that other pods hold; what reached it there has to go another way."""

    usual_effort = Effort.OTHER_POD
    port: int
    protocol: str

    def __str__(self) -> str:
        return f"drop hostPort {self.port}/{self.protocol}, which other pods hold"

    @property
    def amount(self) -> float:
        # Above every priority: where the holder may go, that is less of a change than a port that is closed for good.
        return 1e10

    def changed(self, pod: Pod) -> Pod:
        containers = tuple(map(self._without, pod.spec.containers))
        return with_spec(pod, attrs.evolve(pod.spec, containers=containers))

    def _without(self, container: Container) -> Container:
        ports = tuple(
            attrs.evolve(each, host_port=0) if self._is_it(each) else each for each in container.ports
        )
        return attrs.evolve(container, ports=ports)

    def _is_it(self, port: ContainerPort) -> bool:
        return (port.host_port, port.protocol) == (self.port, self.protocol)
