"""An extender server: serves the plugins of a profile to a kube-scheduler over HTTP."""

from kschedfw_kubernetes.extender_server.app import ExtenderApp, ServerLimits

__all__ = ["ExtenderApp", "ServerLimits"]
