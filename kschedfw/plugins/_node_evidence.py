"""Which of a pod's demands on a node's labels and name a node doesn't meet, for explanations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kschedfw import FrozenDict, Node
from kschedfw.api import NodeSelectorTerm
from kschedfw.api.selector_text import requirement_text
from kschedfw.framework.evidence import Evidence
from kschedfw.plugins._node_terms import is_empty, term_errors


def unmatched_labels(node_selector: Mapping[str, str], node: Node) -> Iterator[Evidence]:
    """The entries of a `nodeSelector` that the node doesn't have."""
    for key, value in node_selector.items():
        if node.labels.get(key) != value:
            yield _unmatched(f"nodeSelector {key}={value}", "nodeSelector", key, node.labels)


def unmatched_terms(terms: Sequence[NodeSelectorTerm], node: Node, where: str) -> Iterator[Evidence]:
    """What the node lacks of each of the terms, none of which it matches; one of them would do."""
    if not terms:
        yield Evidence(f"{where} without a term", "matches no node", values=FrozenDict({"term": where}))
    for index, term in enumerate(terms):
        name = where if len(terms) == 1 else f"{where} term {index + 1} of {len(terms)}"
        problem = "empty" if is_empty(term) else next(map(str, term_errors(term, "")), None)
        if problem is not None:
            yield Evidence(f"{name} matches no node", problem, values=FrozenDict({"term": name}))
            continue
        for requirements, given in (
            (term.match_expressions, node.labels),
            (term.match_fields, {"metadata.name": node.name}),
        ):
            for requirement in requirements:
                if not requirement.matches(given):
                    yield _unmatched(f"{name}: {requirement_text(requirement)}", name, requirement.key, given)


def _unmatched(asked: str, term: str, key: str, given: Mapping[str, str]) -> Evidence:
    value = given.get(key)
    found = f"no label {key}" if value is None else f"{key}={value}"
    return Evidence(asked, found, values=FrozenDict({"term": term, "key": key, "value": value}))
