"""DefaultBinder: binds the pod in the cluster."""

from __future__ import annotations

from kschedfw import Plugin, Pod, Status, hookimpl


class DefaultBinder(Plugin):
    """Binds the pod to its node in the cluster."""

    name = "DefaultBinder"

    @hookimpl
    def bind(self, pod: Pod, node_name: str) -> Status | None:
        try:
            self.handle.cluster.bind(pod, node_name)
        except Exception as error:
            # A cluster may raise anything; a refused binding only fails this pod's attempt.
            return Status.from_error(error)
        return None
