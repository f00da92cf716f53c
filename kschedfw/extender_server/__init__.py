"""The reverse of an extender client: plugins of this framework, offered to a kube-scheduler over HTTP."""

from kschedfw.extender_server.app import MAX_BODY_BYTES, ExtenderApp

__all__ = ["MAX_BODY_BYTES", "ExtenderApp"]
