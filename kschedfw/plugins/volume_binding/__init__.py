"""VolumeBinding: pods go where their volumes are, can be, or can be made."""

from kschedfw.plugins.volume_binding.args import VolumeBindingArgs
from kschedfw.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding", "VolumeBindingArgs"]
