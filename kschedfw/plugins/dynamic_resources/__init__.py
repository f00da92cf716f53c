"""DynamicResources: devices that pods claim (resource.k8s.io/v1)."""

from kschedfw.plugins.dynamic_resources.args import DynamicResourcesArgs
from kschedfw.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources", "DynamicResourcesArgs"]
