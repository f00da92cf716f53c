"""VolumeBinding: places pods where their volumes are, can be used, or can be provisioned."""

from kschedfw.plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs

__all__ = ["VolumeBinding", "VolumeBindingArgs"]
