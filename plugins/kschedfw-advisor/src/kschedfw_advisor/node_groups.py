"""Groups of equal nodes: groups that a file describes, and kinds of nodes that a cluster has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

import attrs

from kschedfw import FieldError, FrozenDict, KschedfwError, Node, ObjectMeta
from kschedfw.api import (
    PODS,
    PRICE,
    FieldErrors,
    Limits,
    ManifestError,
    NodeSpec,
    NodeStatus,
    Selector,
    read_object,
    supported_kind,
    unknown_fields,
)
from kschedfw.api.reading import Document, UnreadableError, documents, first_of, sources, structure_strictly

MOST_NODES: Final = 1000
"""The largest size of a group without `max`."""

HOSTNAME: Final = "kubernetes.io/hostname"
CONDITIONS: Final = "node.kubernetes.io/"
"""The prefix of taints that stand for the state of a node, and not for its kind."""

_FORM: Final = "expected a Node, or name and template (a Node), with min, max, price and selector as wanted"
_LIMITS: Final = Limits(unpacked=16 << 20, document=4 << 20, object=4 << 20)
_MOST_EXPENSIVE: Final = Decimal(10) ** 12


class NodeGroupError(KschedfwError, ValueError):
    """Files of node groups are wrong; `problems` has a line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(first_of(list(self.problems), "problems"))


@attrs.frozen
class NodeGroup:
    """Nodes of which there can be more.

    New nodes are made from `template`. `min` and `max` are bounds of the group's size. The nodes that match `selector`
    are in the group already; without one, none is. `price` is what a node costs, in whatever unit.
    """

    name: str
    template: Node
    min: int = 0
    max: int = MOST_NODES
    price: Decimal | None = None
    selector: Selector | None = None

    def has(self, node: Node) -> bool:
        """Tell whether the node is in the group."""
        return self.selector is not None and self.selector.matches(node.labels)

    def size(self, nodes: Iterable[Node]) -> int:
        """Return the number of these nodes that are in the group."""
        return sum(map(self.has, nodes))


@attrs.frozen
class _Form:
    """The fields of a group's document beside its template."""

    name: str = ""
    template: FrozenDict[str, object] | None = None
    min: int = 0
    max: int = MOST_NODES
    price: float | None = None
    selector: FrozenDict[str, str] | None = None


def read_node_groups(paths: Iterable[Path | str]) -> tuple[NodeGroup, ...]:
    """The groups in files: each document is a Node, or a mapping with `name`, `template` and so on.

    Raises:
        NodeGroupError: with everything that is wrong with the files.
    """
    groups: dict[str, NodeGroup] = {}
    problems: list[str] = []
    for source in sources(paths):
        found = 0
        try:
            for document in documents(source.pieces(_LIMITS), _LIMITS):
                where = f"{source.name}: document {document.number}"
                found += 1
                try:
                    group = _group_of(document)
                except FieldErrors as error:
                    problems += [f"{where}: {each}" for each in error.errors]
                    continue
                if group.name in groups:
                    problems.append(f'{where}: name: Duplicate value: "{group.name}"')
                groups[group.name] = group
        except UnreadableError as error:
            problems.append(f"{source.name}: {error}")
            continue
        if not found:
            problems.append(f"{source.name}: is empty; {_FORM}")
    if problems:
        raise NodeGroupError(problems)
    return tuple(groups.values())


def _group_of(document: Document) -> NodeGroup:
    content = document.content
    if document.problem:
        raise FieldErrors([FieldError("", document.problem)])
    if not isinstance(content, Mapping):
        raise FieldErrors([FieldError.invalid("", content, _FORM)])
    if "kind" in content or "apiVersion" in content:
        node = _node(content, "")
        return NodeGroup(node.name, node, price=_price_of(node, ""))
    form = structure_strictly(content, _Form)
    errors = []
    if not form.name:
        errors.append(FieldError.required("name"))
    if form.template is None:
        errors.append(FieldError.required("template", "the Node that new nodes are like"))
    if form.min < 0:
        errors.append(FieldError.invalid("min", form.min, "must be 0 or more"))
    if not 1 <= form.max <= MOST_NODES * 100:
        errors.append(FieldError.invalid("max", form.max, f"must be between 1 and {MOST_NODES * 100}"))
    elif form.max < form.min:
        errors.append(FieldError.invalid("max", form.max, f"must be {form.min} or more, as min is"))
    # By the text, so that 0.1 is 0.1: sums of prices are compared exactly.
    price = None if form.price is None else _price("price", str(form.price), errors)
    if errors or form.template is None:
        raise FieldErrors(errors)
    named = {**form.template, "metadata": {"name": form.name, **_mapping(form.template.get("metadata"))}}
    node = _node(named, "template")
    return NodeGroup(
        form.name,
        node,
        form.min,
        form.max,
        _price_of(node, "template") if price is None else price,
        None if form.selector is None else Selector.from_labels(form.selector),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def read_node(manifest: Mapping[str, Any], path: str, form: str) -> Node:
    """Read a Node, with or without `kind` and `apiVersion`, at this path of a document; `form` says what is expected.

    Raises:
        FieldErrors: an API server would refuse it, or it has unknown fields; names all errors.
    """
    try:
        kind = supported_kind(manifest, "Node")
        if kind is None or kind.cls is not Node:
            raise FieldErrors([FieldError.invalid("kind", manifest.get("kind"), form)])
        node = read_object(manifest, kind, unknown=unknown_fields(manifest, "Node"))
    except (ManifestError, FieldErrors) as error:
        raise FieldErrors([each.inside(path) for each in error.errors]) from None
    assert isinstance(node, Node)
    return node


def _node(manifest: Mapping[str, Any], path: str) -> Node:
    node = read_node(manifest, path, _FORM)
    pods = node.status.allocatable.get(PODS)
    if pods is None or not pods.sign:
        why = "a node without it takes no pods"
        raise FieldErrors([FieldError.required("status.allocatable.pods", why).inside(path)])
    return node


def price_of(node: Node, groups: Iterable[NodeGroup] = ()) -> Decimal | None:
    """The price in the node's annotation, or else of the first group that it is in; None if neither has one.

    Raises:
        NodeGroupError: the annotation isn't a price.
    """
    try:
        own = _price_of(node, "")
    except FieldErrors as error:
        raise NodeGroupError([f"node {node.name}: {each}" for each in error.errors]) from None
    if own is not None:
        return own
    return next((group.price for group in groups if group.price is not None and group.has(node)), None)


def _price_of(node: Node, path: str) -> Decimal | None:
    text = node.annotations.get(PRICE)
    if text is None:
        return None
    errors: list[FieldError] = []
    price = _price(f"metadata.annotations[{PRICE}]", text, errors)
    if errors:
        raise FieldErrors([each.inside(path) for each in errors])
    return price


def _price(path: str, text: str, errors: list[FieldError]) -> Decimal | None:
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price <= _MOST_EXPENSIVE:
        errors.append(FieldError.invalid(path, text, "must be a decimal number, 0 or more"))
    return price


def node_shapes(nodes: Iterable[Node]) -> tuple[NodeGroup, ...]:
    """The kinds of nodes that a cluster has, those with the most nodes first; each is named after its first node.

    Nodes are of the same kind if their labels (the hostname excepted), their taints (conditions excepted) and what they
    offer are the same. A new node of the kind is without conditions and images, and takes pods.
    """
    first: dict[object, Node] = {}
    counts: dict[object, int] = {}
    for node in nodes:
        template = _as_new(node)
        shape = (template.labels, template.spec, template.status)
        # The shape is hashed and compared as values, with quantities by their amount and not by their text.
        first.setdefault(shape, template)
        counts[shape] = counts.get(shape, 0) + 1
    shapes = sorted(first, key=lambda shape: -counts[shape])
    return tuple(NodeGroup(first[shape].name, first[shape]) for shape in shapes)


def _as_new(node: Node) -> Node:
    labels = FrozenDict({key: value for key, value in node.labels.items() if key != HOSTNAME})
    taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith(CONDITIONS))
    status = NodeStatus(
        capacity=node.status.capacity,
        allocatable=node.status.allocatable,
        declared_features=node.status.declared_features,
    )
    return Node(ObjectMeta(name=node.name, labels=labels), NodeSpec(taints), status)
