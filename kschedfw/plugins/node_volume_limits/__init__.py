"""NodeVolumeLimits: how many volumes of each CSI driver a node can attach."""

from kschedfw.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
