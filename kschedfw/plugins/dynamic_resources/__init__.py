"""DynamicResources: devices that pods claim (resource.k8s.io/v1)."""

from kschedfw.plugins.dynamic_resources.plugin import DynamicResources, DynamicResourcesArgs

__all__ = ["DynamicResources", "DynamicResourcesArgs"]
