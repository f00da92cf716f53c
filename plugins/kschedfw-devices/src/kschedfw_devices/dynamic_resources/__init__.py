"""DynamicResources: devices that pods claim (resource.k8s.io/v1)."""

from kschedfw_devices.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
