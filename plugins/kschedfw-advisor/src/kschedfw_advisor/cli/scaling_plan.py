"""`kschedfw what-if --plan`: the check of an autoscaler's plan, from its file to the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
from rich.console import RenderableType

from kschedfw.api import FieldErrors
from kschedfw.api.reading import UnreadableError, shown
from kschedfw.cli import block, counted
from kschedfw.explain import SCHEMA_VERSION
from kschedfw.what_if import PlanCheck, ScalingPlan
from kschedfw_advisor.explore.changes import MOST_ADDED, Name
from kschedfw_advisor.node_groups import read_node

MOST_BYTES: Final = 16 << 20
"""The largest file of a plan, in bytes: a thousand nodes as an API server has them."""


class PlanDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A plan as its file has it."""

    add_nodes: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=MOST_ADDED)] = ()
    remove_nodes: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_ADDED)] = ()
    pods: dict[Name, Name | None] = {}


def plan_of(content: object) -> ScalingPlan:
    """Return the plan in a document.

    Raises:
        UnreadableError: the document is no plan.
    """
    if not isinstance(content, dict) or not content:
        fields = ", ".join(PlanDocument.__struct_encode_fields__)
        raise UnreadableError(f"expected a mapping with some of {fields}; found {shown(content)}")
    try:
        given = msgspec.convert(content, PlanDocument)
    except msgspec.ValidationError as error:
        # The place comes last in its text, and `$` stands for the plan.
        what, _, place = str(error).partition(" - at `$.")
        raise UnreadableError(f"{place.removesuffix('`') or 'plan'}: {what}") from None
    try:
        nodes = tuple(
            read_node(manifest, f"addNodes[{number}]", "expected a Node")
            for number, manifest in enumerate(given.add_nodes)
        )
    except FieldErrors as error:
        raise UnreadableError("; ".join(map(str, error.errors))) from None
    return ScalingPlan(nodes, given.remove_nodes, {key: node or "" for key, node in given.pods.items()})


def to_json(found: PlanCheck, notes: Sequence[str]) -> dict[str, object]:
    """The answer in types that `json.dumps` knows."""
    schedule = found.schedule
    return {
        "schemaVersion": SCHEMA_VERSION,
        "agrees": bool(found),
        "works": found.works,
        "pods": [
            *({"pod": each.pod.key, "node": each.node_name} for each in schedule.placed),
            *({"pod": each.pod.key, "node": None} for each in schedule.waiting),
            *({"pod": each.pod.key, "node": None} for each in schedule.refused),
        ],
        "deviations": [
            {
                "code": str(each.kind),
                "pod": each.pod or None,
                "planned": each.planned or None,
                "node": each.node or None,
                "message": each.message,
            }
            for each in found.deviations
        ],
        "notes": list(notes),
    }


def parts(found: PlanCheck) -> Iterator[RenderableType]:
    """The answer as paragraphs."""
    schedule = found.schedule
    pods = len(schedule.placed) + len(schedule.waiting) + len(schedule.refused)
    if found:
        yield f"kube-scheduler agrees: {counted(pods, 'pod')} would run as planned"
        return
    verdict = "all pods would run" if found.works else "not all pods would run as planned"
    yield f"kube-scheduler decides otherwise in {counted(len(found.deviations), 'case')}; {verdict}"
    yield block(*(f"{_subject(each.pod, each.planned)}: {each.message}" for each in found.deviations))


def _subject(pod: str, planned: str) -> str:
    if not pod:
        return f"new node {planned}"
    return f"{pod}, planned for {planned}" if planned else pod
