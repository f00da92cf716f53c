"""How many pods in the queue each plugin has rejected (kube-scheduler's metric `unschedulable_pods`)."""

from __future__ import annotations

from kschedfw.framework.metrics import MetricsRecorder, listens
from kschedfw.framework.nodes.pod_info import QueuedPodInfo


class Rejections:
    """Tells a recorder of every pod that enters the queue rejected, or leaves it. Not thread-safe.

    A pod counts for each plugin that refused it in its last attempt or keeps it gated, from when it is back in the
    queue until it is popped or deleted. kube-scheduler doesn't take off pods that are deleted while they are active or
    back off; here the numbers are those of the pods that there are.
    """

    def __init__(self, metrics: MetricsRecorder) -> None:
        self._metrics = metrics
        self._listens = listens(metrics)
        self._told: dict[str, tuple[str, frozenset[str]]] = {}

    def note(self, info: QueuedPodInfo) -> None:
        """Take note of who rejected the pod, which is in the queue."""
        if not self._listens:
            return
        profile, plugins = info.pod.spec.scheduler_name, frozenset(info.rejector_plugins)
        _, known = self._told.get(info.pod.uid, (profile, frozenset[str]()))
        self._tell(profile, plugins - known, 1)
        self._tell(profile, known - plugins, -1)
        if plugins:
            self._told[info.pod.uid] = profile, plugins

    def forget(self, uid: str) -> None:
        """The pod has left the queue."""
        if (told := self._told.pop(uid, None)) is not None:
            self._tell(*told, -1)

    def _tell(self, profile: str, plugins: frozenset[str], change: int) -> None:
        for plugin in sorted(plugins):
            self._metrics.unschedulable_pods(plugin, profile, change)
