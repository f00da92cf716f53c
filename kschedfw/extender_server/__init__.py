"""The reverse of an extender client: plugins of this framework, offered to a kube-scheduler over HTTP."""

from kschedfw.extender_server.app import ExtenderApp, ServerLimits

__all__ = ["ExtenderApp", "ServerLimits"]
