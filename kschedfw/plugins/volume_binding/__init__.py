"""VolumeBinding: places pods where their volumes are, can be used, or can be provisioned."""

from kschedfw.plugins.volume_binding.args import VolumeBindingArgs
from kschedfw.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding", "VolumeBindingArgs"]
