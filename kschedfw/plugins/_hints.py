"""What queueing hints share."""

from __future__ import annotations

from kschedfw.framework.events import QueueingHint


def queue_if(helps: bool) -> QueueingHint:
    """QUEUE if the event may help the pod, else SKIP."""
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
