"""PrioritySort: the order of the queue."""

from __future__ import annotations

from kschedfw import Plugin, QueuedPodInfo, hookimpl


class PrioritySort(Plugin):
    """Orders pods by higher priority; among equals by earlier entry into the queue."""

    name = "PrioritySort"

    @hookimpl
    def queue_sort(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        first_priority, second_priority = first.pod_info.pod.priority, second.pod_info.pod.priority
        if first_priority != second_priority:
            return first_priority > second_priority
        return first.timestamp < second.timestamp
