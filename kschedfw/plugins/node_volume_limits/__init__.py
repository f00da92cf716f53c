"""NodeVolumeLimits: refuses nodes that can't attach more volumes of a CSI driver."""

from kschedfw.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
