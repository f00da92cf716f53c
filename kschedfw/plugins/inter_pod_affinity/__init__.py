"""InterPodAffinity: places pods near other pods, or far from them."""

from kschedfw.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
