"""DefaultBinder: tells the cluster where the pod goes."""

from __future__ import annotations

from typing import ClassVar

from kschedfw import Plugin, Pod, Status, hookimpl


class DefaultBinder(Plugin):
    """Binds the pod to its node in the cluster."""

    name: ClassVar[str] = "DefaultBinder"

    @hookimpl
    def bind(self, pod: Pod, node_name: str) -> Status | None:
        try:
            self.handle.cluster.bind(pod, node_name)
        except Exception as error:
            # Whatever kind of cluster this is, a binding that it refuses is this pod's failure and no one else's.
            return Status.from_error(error)
        return None
