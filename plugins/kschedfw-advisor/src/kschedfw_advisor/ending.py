"""Pods that are being deleted: they hold their place until they have ended, and nobody needs to delete them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import attrs
from typing_extensions import override

from kschedfw import Pod, Transaction
from kschedfw.cluster import Cluster
from kschedfw_advisor.changes import Change, Effort

if TYPE_CHECKING:
    # remedies.py imports this module.
    from kschedfw_advisor.remedies import Remedy

_MOST_SINGLY: Final = 8
"""The number of ending pods up to which it is tried whether the pods need each of them to end."""
_MOST_NAMED: Final = 3


@attrs.frozen
class AwaitEnds(Change):
    """A cluster in which pods that are being deleted have ended."""

    usual_effort = Effort.NOTHING
    pods: tuple[Pod, ...]

    def __str__(self) -> str:
        named = ", ".join(pod.key for pod in self.pods[:_MOST_NAMED])
        more = f" and {len(self.pods) - _MOST_NAMED:,} more" if len(self.pods) > _MOST_NAMED else ""
        have = "has" if len(self.pods) == 1 else "have"
        return f"fits once {named}{more} {have} ended, {ends_by(self.pods)}"

    @override
    def make(self, trial: Transaction, cluster: Cluster) -> None:
        trial.delete(*self.pods)


def ends_by(pods: Sequence[Pod]) -> str:
    """Return the time by which all of the pods end, as `by 09:01:00 on 2026-11-28`."""
    last = max(pod.metadata.deletion_timestamp for pod in pods if pod.metadata.deletion_timestamp)
    return f"by {last:%H:%M:%S} on {last:%Y-%m-%d}"


def ending_pods(cluster: Cluster) -> tuple[Pod, ...]:
    """Return the pods that hold a place on a node and are being deleted, those that end first at the beginning."""
    pods = [
        pod
        for pod in cluster.list(Pod)
        if pod.metadata.deletion_timestamp is not None and pod.node_name and not pod.is_terminal
    ]
    return tuple(sorted(pods, key=lambda pod: (str(pod.metadata.deletion_timestamp), pod.key)))


def after_ends(
    try_changes: Callable[[tuple[Change, ...]], Remedy | None], pods: Sequence[Pod]
) -> Remedy | None:
    """Return the remedy of waiting for as few of the ending pods as place as many; None if that places none."""
    remedy = try_changes((AwaitEnds(tuple(pods)),)) if pods else None
    if remedy is None or not remedy.placed:
        return None
    on_nodes = tuple(pod for pod in pods if pod.node_name in remedy.nodes)
    if 0 < len(on_nodes) < len(pods):
        nearer = try_changes((AwaitEnds(on_nodes),))
        if nearer is not None and nearer.placed >= remedy.placed:
            remedy, pods = nearer, on_nodes
    needed = list(pods)
    # The pods that end last are left out first, so that the wait gets shorter.
    for pod in reversed(pods if len(pods) <= _MOST_SINGLY else ()):
        fewer = tuple(each for each in needed if each is not pod)
        found = try_changes((AwaitEnds(fewer),)) if fewer else None
        if found is not None and found.placed >= remedy.placed:
            remedy, needed = found, list(fewer)
    return remedy
