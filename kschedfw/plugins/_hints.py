"""What queueing hints share."""

from __future__ import annotations

from kschedfw import Pod, QueueingHint


def queue_if(helps: bool) -> QueueingHint:
    """QUEUE if the event may help the pod, else SKIP."""
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def takes_a_place(pod: Pod) -> bool:
    """Whether pods of equal or lower priority have to respect the pod: it is on a node, or nominated to one."""
    return bool(pod.node_name or pod.status.nominated_node_name)
