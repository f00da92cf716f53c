"""Pages for people: a cluster as a map, a decision as a matrix, a simulation over time.

`kschedfw simulate --html` and `kschedfw explain --html` write one static file. The distribution
kschedfw-advisor serves pages to work with. All of them show columns over nodes and pods (`cluster_map`,
`decision_matrix`, `group_matrix`, `replay`).
"""

from kschedfw_lab.pages.cluster_map import ClusterMap, cluster_map
from kschedfw_lab.pages.decision_matrix import decision_matrix
from kschedfw_lab.pages.group_matrix import group_matrix
from kschedfw_lab.pages.replay import ReplayView, replay
from kschedfw_lab.pages.static_page import STYLES, asset, environment

__all__ = [
    "STYLES",
    "ClusterMap",
    "ReplayView",
    "asset",
    "cluster_map",
    "decision_matrix",
    "environment",
    "group_matrix",
    "replay",
]
