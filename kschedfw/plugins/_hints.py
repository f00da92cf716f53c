"""Helpers for queueing hints."""

from __future__ import annotations

from kschedfw import Pod, QueueingHint


def queue_if(helps: bool) -> QueueingHint:
    """Return QUEUE if the event may help the pod, else SKIP."""
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def takes_a_place(pod: Pod) -> bool:
    """Tell whether the pod takes room from pods of equal or lower priority: it is on a node, or nominated to one."""
    return bool(pod.node_name or pod.status.nominated_node_name)
