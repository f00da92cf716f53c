"""NodeLabel: required and preferred labels of nodes, regardless of the labels' values (until v1.22)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs

from kschedfw import MAX_NODE_SCORE, FieldError, NodeInfo, Plugin, Status, hookimpl

_WRONG_LABELS = Status.unresolvable("node(s) didn't have the requested labels")


@attrs.frozen
class NodeLabelArgs:
    """Labels that a node must have and must not have, and labels that it should have and should not have."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()

    def validate(self) -> Iterator[FieldError]:
        yield from _conflicts("presentLabels", self.present_labels, "absentLabels", self.absent_labels)
        yield from _conflicts(
            "presentLabelsPreference",
            self.present_labels_preference,
            "absentLabelsPreference",
            self.absent_labels_preference,
        )


class NodeLabel(Plugin[NodeLabelArgs]):
    """Refuses nodes that lack a required label or have a forbidden one. The labels' values don't matter.

    Other nodes are scored by the share of preferences that they meet.
    """

    name: ClassVar[str] = "NodeLabel"
    args_type: ClassVar[type[object] | None] = NodeLabelArgs
    pure = True

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        labels = node_info.node.labels
        allowed = all(label in labels for label in self.args.present_labels) and not any(
            label in labels for label in self.args.absent_labels
        )
        return None if allowed else _WRONG_LABELS

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        labels, args = node_info.node.labels, self.args
        preferences = len(args.present_labels_preference) + len(args.absent_labels_preference)
        met = sum(label in labels for label in args.present_labels_preference)
        met += sum(label not in labels for label in args.absent_labels_preference)
        return met * MAX_NODE_SCORE // preferences if preferences else 0


def _conflicts(
    present_path: str, present: Sequence[str], absent_path: str, absent: Sequence[str]
) -> Iterator[FieldError]:
    for index, label in enumerate(present):
        if label in absent:
            why = f"conflict with {absent_path}[{absent.index(label)}]"
            yield FieldError.invalid(f"{present_path}[{index}]", label, why)
