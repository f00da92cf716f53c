"""What is said of nodes that PreFilterResults left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kschedfw.framework.status import Status


def no_nodes_left(narrowing: Collection[str]) -> Status:
    """The verdict on the pod, of which these plugins together left no node over."""
    if len(narrowing) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {next(iter(narrowing))}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) {_listed(narrowing)} simultaneously")


def not_left_over(narrowing: Iterable[str]) -> Status:
    """The verdict on nodes that these plugins' PreFilterResults left out."""
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) {_listed(narrowing)}")


def _listed(names: Iterable[str]) -> str:
    """Names sorted and in brackets, as Go prints a list: `[A B]`."""
    return f"[{' '.join(sorted(names))}]"
