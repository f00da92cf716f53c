"""What `--fail-on` says: conditions, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from kschedfw.api.node import Node
from kschedfw.cli.enabled import UsageError
from kschedfw.cluster import Cluster
from kschedfw.compare import Condition, ConditionError


def conditions_of(values: Iterable[str]) -> list[Condition]:
    """The conditions, in their order.

    Raises:
        UsageError: one of them is none; says why.
    """
    try:
        return [Condition.parse(value) for value in values]
    except ConditionError as error:
        raise UsageError(f"--fail-on: {error}") from None


def check_resources(conditions: Sequence[Condition], cluster: Cluster) -> None:
    """See to it that some node has the resources that the conditions ask about.

    Raises:
        UsageError: none has one of them; says what is similar.
    """
    known = {name for node in cluster.list(Node) for name in node.status.allocatable}
    for condition in conditions:
        for name in sorted(condition.resources - known):
            similar = get_close_matches(name, known, n=1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise UsageError(f"--fail-on {condition.text}: no node has the resource {name}{hint}")
