"""Changes of a cluster, or of pending pods, that may get the pods a place; each says what it is in one line."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from enum import IntEnum
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from kschedfw import FrozenDict, Node, Pod, Quantity, Transaction
from kschedfw.api import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Container,
    NodeSelectorTerm,
    OwnerReference,
    PodAffinity,
    PodSpec,
    Requirement,
    ResourceRequirements,
    Taint,
    Toleration,
    TolerationOperator,
    UnsatisfiableAction,
    WeightedPodAffinityTerm,
    counted,
    requirement_text,
    with_article,
)
from kschedfw.cluster import Cluster
from kschedfw.explain import code_of_plugin
from kschedfw_advisor.amounts import exact_text, quantity_of, step_of
from kschedfw_advisor.edits import Edit, object_differences, written
from kschedfw_advisor.new_nodes import add_nodes
from kschedfw_advisor.node_groups import HOSTNAME, NodeGroup

_HALF: Final = 0.5
_MOST_LABELS: Final = 100
"""More labels than a pod asks for."""
_MOST_WEIGHT: Final = 100
"""The greatest weight of a preferred term."""

CORDONED: Final = "node.kubernetes.io/unschedulable"
"""The key of the taint that the node controller gives a cordoned node, and takes away with the cordon."""

_CONTROL_PLANE: Final = frozenset(("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"))
"""Keys of the taints that keep nodes free for the control plane."""
_PLATFORM: Final = frozenset(
    ("beta.kubernetes.io/arch", "beta.kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/os")
)
"""Labels that say which images run on a node."""


class Effort(IntEnum):
    """The effort of a change, from little to much: the order in which changes are offered."""

    NOTHING = -1
    """The change happens without anybody doing anything: pods that are ending will be gone."""
    TYPO = 0
    GATE = 1
    NODE_STATE = 2
    POD_RULE = 3
    NODE_LABEL = 4
    POD_REQUEST = 5
    NODE_SIZE = 6
    OTHER_POD = 7
    NEW_NODES = 8
    MET_RULE = 9
    """Nodes meet the pod's selector and node affinity, and yet it would go to others."""
    TOO_MUCH = 10
    """The request or node would change beyond recognition."""
    RESERVED = 11
    """The place is kept for other pods, or the pod's image may not run there."""


@attrs.frozen
class Change:
    """One change. It is made to the cluster of a transaction, to the pending pods, or to both.

    Its text is made from its attributes, which are its parameters for programs. Its code is the class's name in
    kebab-case; the page of codes has all of them, so renaming a class raises the schema's version.
    """

    usual_effort: ClassVar[Effort]

    @classmethod
    def code(cls) -> str:
        """Return the code of changes of this kind."""
        return code_of_plugin(cls.__name__)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters of changes of this kind."""
        return tuple(camel_case(each.name) for each in attrs.fields(cls) if each.eq)

    def to_json(self) -> dict[str, object]:
        """Return code, parameters and text in types that `json.dumps` knows; amounts are in the resource's unit."""
        fields = [each.name for each in attrs.fields(type(self)) if each.eq]
        parameters = {camel_case(name): _as_parameter(getattr(self, name)) for name in fields}
        return {"code": self.code(), "parameters": parameters, "text": str(self)}

    @property
    def effort(self) -> Effort:
        """Return how much the change takes."""
        return self.usual_effort

    @property
    def amount(self) -> float:
        """Return the size of the change, for comparing changes of the same effort."""
        return 0.0

    @property
    def requirement(self) -> Hashable:
        """The requirement that the change takes away. Of changes with the same one, the smallest is offered."""
        return None

    @property
    def steps(self) -> int:
        """Return the number of steps by which the change can be made smaller."""
        return 0

    def smaller(self, steps: int) -> Change:
        """Return the change, smaller by 0 to `self.steps` steps."""
        assert steps == 0
        return self

    def make(self, trial: Transaction, cluster: Cluster) -> None:
        """Make the change in the transaction, if it is a change of the cluster."""

    def changed(self, pod: Pod) -> Pod:
        """Return the pod with the change; the pod itself if the change isn't one of the pod."""
        return pod

    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:  # noqa: ARG002  # some look at other pods
        """Return the edits of other objects than the pod and, for a NodeChange, the node."""
        return iter(())


@attrs.frozen
class NodeChange(Change):
    """One change of a node."""

    node: str

    def altered(self, node: Node) -> Node:
        """The node with the change."""
        raise NotImplementedError

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        trial.update(self.altered(_node(cluster, self.node)))


def camel_case(name: str) -> str:
    """Return the name of an attribute as JSON spells it."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _as_parameter(value: object) -> object:
    """Return an attribute of a change in types of JSON; of an object, its name."""
    match value:
        case Pod():
            return {"pod": value.key, "node": value.node_name}
        case NodeGroup() | OwnerReference():
            return value.name
        case Taint():
            return {"key": value.key, "value": value.value, "effect": value.effect.value}
        case Requirement():
            return {"key": value.key, "operator": value.operator.value, "values": list(value.values)}
        case FrozenDict():
            return dict(value)
        case tuple():
            return [_as_parameter(each) for each in value]
    return value


def edits_of(changes: Iterable[Change], pod: Pod, cluster: Cluster) -> Iterator[Edit]:
    """Return the edits of manifests that all changes together amount to."""
    changed = pod
    nodes: dict[str, Node] = {}
    for change in changes:
        changed = change.changed(changed)
        if isinstance(change, NodeChange):
            # Several changes of one node add up.
            nodes[change.node] = change.altered(nodes.get(change.node) or _node(cluster, change.node))
    if changed != pod:
        yield from object_differences(pod, changed)
    for name, node in nodes.items():
        yield from object_differences(_node(cluster, name), node)
    for change in changes:
        yield from change.other_edits(cluster)


def with_spec(pod: Pod, spec: PodSpec) -> Pod:
    """The pod with another spec."""
    return attrs.evolve(pod, spec=spec)


def taint_text(taint: Taint) -> str:
    """The taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


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
class Uncordon(NodeChange):
    """A node that takes pods again."""

    usual_effort = Effort.NODE_STATE

    def __str__(self) -> str:
        return f"uncordon node {self.node}"

    @override
    def altered(self, node: Node) -> Node:
        # Both, since NodeUnschedulable reads the field and TaintToleration the taint.
        taints = tuple(taint for taint in node.spec.taints if taint.key != CORDONED)
        return attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=False, taints=taints))


@attrs.frozen
class RemoveTaint(NodeChange):
    """A node without the taint of a condition, as when it has been repaired."""

    usual_effort = Effort.NODE_STATE
    taint: Taint

    def __str__(self) -> str:
        # Taken away by hand, the taint of a condition comes back.
        return f"repair node {self.node}, so that its taint {taint_text(self.taint)} goes"

    @override
    def altered(self, node: Node) -> Node:
        taints = tuple(each for each in node.spec.taints if each != self.taint)
        return attrs.evolve(node, spec=attrs.evolve(node.spec, taints=taints))


@attrs.frozen
class Tolerate(Change):
    """The pod with one more toleration."""

    usual_effort = Effort.POD_RULE
    taint: Taint
    kept_for: tuple[str, ...] = ()
    """The extended resources that nodes with the taint offer and the pod doesn't request."""

    def __str__(self) -> str:
        for_whom = ""
        if self._is_of_control_plane:
            for_whom = "; such nodes are kept for the control plane"
        elif self.kept_for:
            for_whom = f"; such nodes offer {' and '.join(self.kept_for)}, which the pod doesn't request"
        return f"tolerate {taint_text(self.taint)}{for_whom}"

    @property
    def requirement(self) -> Hashable:
        return self.taint

    @property
    def _is_of_control_plane(self) -> bool:
        return self.taint.key in _CONTROL_PLANE

    @property
    def effort(self) -> Effort:
        return Effort.RESERVED if self._is_of_control_plane or self.kept_for else self.usual_effort

    def changed(self, pod: Pod) -> Pod:
        taint = self.taint
        operator = TolerationOperator.EQUAL if taint.value else TolerationOperator.EXISTS
        added = Toleration(taint.key, operator, taint.value, taint.effect)
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
        left = tuple(each for each in term.match_expressions if each not in self.requirements)
        return attrs.evolve(term, match_expressions=left)


def _platform_text(keys: Iterable[str]) -> str:
    return "" if _PLATFORM.isdisjoint(keys) else "; its image may not run on another platform"


def _effort_without(keys: Iterable[str], *, is_met: bool) -> Effort:
    """Return the effort of letting the pod onto nodes with any values of these labels."""
    if not _PLATFORM.isdisjoint(keys):
        return Effort.RESERVED
    return Effort.MET_RULE if is_met else Effort.POD_RULE


@attrs.frozen
class FewerDomains(Change):
    """The pod with a smaller minDomains of its spread over a topology."""

    usual_effort = Effort.POD_RULE
    topology_key: str
    min_domains: int

    def __str__(self) -> str:
        return f"minDomains {self.min_domains} for the spread over {self.topology_key}"

    def changed(self, pod: Pod) -> Pod:
        constraints = tuple(
            attrs.evolve(each, min_domains=min(self.min_domains, each.min_domains))
            if each.topology_key == self.topology_key and each.min_domains is not None
            else each
            for each in pod.spec.topology_spread_constraints
        )
        return with_spec(pod, attrs.evolve(pod.spec, topology_spread_constraints=constraints))


@attrs.frozen
class Spread(Change):
    """The pod with a greater maxSkew over a topology; with None as `max_skew`, the spread is only preferred.

    `has_min_domains` says that the pod's constraint has minDomains, which a preferred spread can't have.
    """

    usual_effort = Effort.POD_RULE
    topology_key: str
    max_skew: int | None
    has_min_domains: bool = False

    def __str__(self) -> str:
        if self.max_skew is None:
            without = " and no minDomains" if self.has_min_domains else ""
            return f"whenUnsatisfiable: ScheduleAnyway{without} for the spread over {self.topology_key}"
        return f"maxSkew {self.max_skew} for the spread over {self.topology_key}"

    @property
    def amount(self) -> float:
        return 1.0 if self.max_skew is None else 1 - 1 / self.max_skew

    def changed(self, pod: Pod) -> Pod:
        constraints = tuple(
            each
            if each.topology_key != self.topology_key
            # The API allows minDomains only with DoNotSchedule.
            else attrs.evolve(each, when_unsatisfiable=UnsatisfiableAction.SCHEDULE_ANYWAY, min_domains=None)
            if self.max_skew is None
            else attrs.evolve(each, max_skew=max(self.max_skew, each.max_skew))
            for each in pod.spec.topology_spread_constraints
        )
        return with_spec(pod, attrs.evolve(pod.spec, topology_spread_constraints=constraints))


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
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        for pod in self._siblings(cluster):
            trial.update(self.changed(pod))

    def _siblings(self, cluster: Cluster) -> Iterator[Pod]:
        if self.workload is not None:
            for pod in cluster.list(Pod):
                if pod.node_name and pod.metadata.controller == self.workload:
                    yield pod

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

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        for pod in self._siblings(cluster):
            yield from object_differences(pod, self.changed(pod))


@attrs.frozen
class LabelNode(NodeChange):
    """A node with other labels; None as a value takes the label away."""

    usual_effort = Effort.NODE_LABEL
    labels: FrozenDict[str, str | None]
    is_met: bool = False
    """Tells whether nodes meet all the rules of the pod on nodes, without this label."""

    @property
    def effort(self) -> Effort:
        return Effort.MET_RULE if self.is_met else self.usual_effort

    def __str__(self) -> str:
        told = [f"{key}-" if value is None else f"{key}={value}" for key, value in self.labels.items()]
        return f"label node {self.node} {' '.join(told)}"

    @property
    def amount(self) -> float:
        # A node that is given to the pod is lost to others: dropping the rule comes first.
        return len(self.labels) + (_MOST_LABELS if self.is_met else 0)

    @override
    def altered(self, node: Node) -> Node:
        changed = {**node.labels, **self.labels}
        labels = FrozenDict({key: value for key, value in changed.items() if value is not None})
        return attrs.evolve(node, metadata=attrs.evolve(node.metadata, labels=labels))


@attrs.frozen
class RequestLess(Change):
    """The pod with a lower request of a resource, all containers together; in the resource's unit.

    `where` are the init containers whose requests change, for the text.
    """

    usual_effort = Effort.POD_REQUEST
    resource: str
    request: int
    instead_of: int
    where: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: Pod, resource: str, request: int) -> RequestLess | None:
        """Return the change to this request; None if lower requests of containers don't lead to it."""
        change = cls(resource, request, pod.requests.demand.get(resource))
        changed = change.changed(pod)
        if changed.requests.demand.get(resource) > request:
            return None
        pairs = zip(pod.spec.init_containers, changed.spec.init_containers, strict=True)
        return attrs.evolve(change, where=tuple(old.name for old, new in pairs if old != new))

    def __str__(self) -> str:
        less, more = (exact_text(self.resource, amount) for amount in (self.request, self.instead_of))
        return f"request {less} of {self.resource} instead of {more}{self._where_text}"

    @property
    def _where_text(self) -> str:
        several = "s" * (len(self.where) > 1)
        return f" in init container{several} {' and '.join(self.where)}" if self.where else ""

    @property
    def effort(self) -> Effort:
        return Effort.TOO_MUCH if self.amount > _HALF else self.usual_effort

    @property
    def amount(self) -> float:
        return 1 - self.request / self.instead_of

    @property
    def steps(self) -> int:
        return (self.instead_of - self.request - 1) // step_of(self.resource)

    def smaller(self, steps: int) -> Change:
        return attrs.evolve(self, request=self.request + steps * step_of(self.resource))

    def changed(self, pod: Pod) -> Pod:
        spec, name = pod.spec, self.resource
        overhead = spec.overhead.get(name)
        taken = 0 if overhead is None else _amount(overhead, name)
        most = pod.requests.demand.get(name) - (self.instead_of - self.request) - taken
        # Each init container runs beside the sidecars that come before it.
        beside, init_containers = 0, list(spec.init_containers)
        for index, each in enumerate(init_containers):
            if each.is_sidecar:
                beside += _request(each, name)
            elif _request(each, name) > most - beside:
                if most - beside <= 0:
                    return pod
                init_containers[index] = _with_request(each, name, most - beside)
        containers, sizes = list(spec.containers), [_request(each, name) for each in spec.containers]
        if (excess := sum(sizes) + beside - most) > 0:
            # One container alone, so that one number of the manifest changes.
            largest = sizes.index(max(sizes))
            if sizes[largest] <= excess:
                return pod
            containers[largest] = _with_request(containers[largest], name, sizes[largest] - excess)
        return with_spec(
            pod, attrs.evolve(spec, containers=tuple(containers), init_containers=tuple(init_containers))
        )


def _request(container: Container, resource: str) -> int:
    amount = container.resources.requests.get(resource)
    return 0 if amount is None else _amount(amount, resource)


def _amount(quantity: Quantity, resource: str) -> int:
    """Return the quantity in the resource's unit."""
    return quantity.milli_value() if resource == CPU else quantity.value()


def _with_request(container: Container, resource: str, amount: int) -> Container:
    given = container.resources
    quantity = quantity_of(resource, amount)
    requests = FrozenDict({**given.requests, resource: quantity})
    limits = given.limits
    if limits.get(resource) == given.requests.get(resource) and resource not in (
        CPU,
        MEMORY,
        EPHEMERAL_STORAGE,
    ):
        # Such resources can't be overcommitted: the API server demands a limit that equals the request.
        limits = FrozenDict({**limits, resource: quantity})
    return attrs.evolve(container, resources=ResourceRequirements(requests, limits))


@attrs.frozen
class EnlargeNode(NodeChange):
    """A node that offers more of a resource; `by` is in the resource's unit."""

    usual_effort = Effort.NODE_SIZE
    resource: str
    by: int
    share: float
    """Return `by` as a share of the pod's request, for comparing resources."""

    def __str__(self) -> str:
        return f"{exact_text(self.resource, self.by)} more {self.resource} on node {self.node}"

    @property
    def effort(self) -> Effort:
        return Effort.TOO_MUCH if self.amount > _HALF else self.usual_effort

    @property
    def amount(self) -> float:
        return self.share

    @property
    def steps(self) -> int:
        return (self.by - 1) // step_of(self.resource)

    def smaller(self, steps: int) -> Change:
        by = self.by - steps * step_of(self.resource)
        return attrs.evolve(self, by=by, share=self.share * by / self.by)

    @override
    def altered(self, node: Node) -> Node:
        offered = node.status.allocatable
        there = offered.get(self.resource)
        now = 0 if there is None else there.milli_value() if self.resource == CPU else there.value()
        # kube-scheduler reads allocatable alone, so capacity stays.
        more = FrozenDict({**offered, self.resource: quantity_of(self.resource, now + self.by)})
        return attrs.evolve(node, status=attrs.evolve(node.status, allocatable=more))


@attrs.frozen
class DeletePod(Change):
    """A cluster without another pod."""

    usual_effort = Effort.OTHER_POD
    pod: Pod

    def __str__(self) -> str:
        return f"delete pod {self.pod.key} from node {self.pod.node_name}"

    @property
    def amount(self) -> float:
        return self.pod.priority

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        trial.delete(self.pod)

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        yield Edit(f"Pod {self.pod.key}", "", written(self.pod), None)


@attrs.frozen
class AddNodes(Change):
    """A cluster with more nodes of a group; `exists` says that the group is a kind of node that the cluster has."""

    usual_effort = Effort.NEW_NODES
    group: NodeGroup
    exists: bool
    count: int = 1
    apart: str = ""
    """The label with a different value on each new node, such as the zone's; empty for none."""
    daemons: tuple[Pod, ...] = attrs.field(default=(), eq=False, repr=False)
    """A pod of each DaemonSet, whose siblings come with the nodes (`daemons_of`)."""

    def __str__(self) -> str:
        text = f"{counted(self.count, 'more node')} {'like' if self.exists else 'of group'} {self.group.name}"
        if self.apart:
            text += f"{', each' if self.count > 1 else ''} with {with_article(self.apart)} of its own"
        return text

    @property
    def amount(self) -> float:
        return self.count + bool(self.apart)

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        self.add_to(trial)

    def add_to(self, trial: Transaction) -> tuple[Node, ...]:
        """Add the nodes, and return them."""
        nodes = add_nodes(trial, self.group.template, self.count, self.daemons)
        if self.apart:
            nodes = tuple(trial.update(self._apart(node)) for node in nodes)
        return nodes

    def _apart(self, node: Node) -> Node:
        labels = FrozenDict({**node.labels, self.apart: node.name})
        return node.with_metadata(attrs.evolve(node.metadata, labels=labels))

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        for number in range(1, self.count + 1):
            name = f"{self.group.template.name}-{number}"
            yield Edit(f"Node {name}", "", None, written(self._new_node(name)))

    def _new_node(self, name: str) -> Node:
        template = self.group.template
        labels = {**template.labels, HOSTNAME: name, **({self.apart: name} if self.apart else {})}
        metadata = attrs.evolve(template.metadata, name=name, labels=FrozenDict(labels))
        return template.with_metadata(metadata)


def _labels_text(labels: FrozenDict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _node(cluster: Cluster, name: str) -> Node:
    node = cluster.get(Node, name)
    assert node is not None
    return node
