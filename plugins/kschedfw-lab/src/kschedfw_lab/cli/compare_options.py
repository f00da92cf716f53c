"""Parses the options of `compare`: configurations (`--profile`) and conditions (`--fail-on`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from kschedfw import Node, Pod
from kschedfw.cli import UsageError
from kschedfw.cluster import Cluster
from kschedfw_lab.compare import Comparison, Condition, ConditionError, Setup


def check_pods(candidates: Iterable[Setup], cluster: Cluster) -> None:
    """Check that some pending pod names a scheduler of each candidate. Otherwise the candidate would have no pods.

    Raises:
        UsageError: no pod names a scheduler of a candidate. The message says what would be right.
    """
    pending = {
        pod.spec.scheduler_name for pod in cluster.list(Pod) if not pod.node_name and not pod.is_terminal
    }
    for candidate in candidates:
        own = {profile.scheduler_name for profile in candidate.profiles}
        if pending and not candidate.takes_every_pod and not pending & own:
            raise UsageError(
                f"--profile {candidate.label}: no pending pod names a scheduler of it ({', '.join(sorted(own))}); "
                f"they name {', '.join(sorted(pending))}. FILE#PROFILE schedules all of them with one profile"
            )


def conditions_of(values: Iterable[str]) -> list[Condition[Comparison]]:
    """Parse the conditions.

    Raises:
        UsageError: a text isn't a condition. The message says why.
    """
    try:
        return [Condition.parse(value) for value in values]
    except ConditionError as error:
        raise UsageError(f"--fail-on: {error}") from None


def check_resources(conditions: Sequence[Condition[Comparison]], cluster: Cluster) -> None:
    """Check that the resources in the conditions exist on some node.

    Raises:
        UsageError: a resource exists on no node. The message names a similar one.
    """
    known = {name for node in cluster.list(Node) for name in node.status.allocatable}
    for condition in conditions:
        for name in sorted(condition.resources - known):
            similar = get_close_matches(name, known, n=1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise UsageError(f"--fail-on {condition.text}: no node has the resource {name}{hint}")
