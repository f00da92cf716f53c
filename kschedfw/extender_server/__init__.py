"""An extender server: offers the plugins of this framework to a kube-scheduler over HTTP."""

from kschedfw.extender_server.app import ExtenderApp, ServerLimits

__all__ = ["ExtenderApp", "ServerLimits"]
