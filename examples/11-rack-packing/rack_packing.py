"""Gangs go into one rack, or into two neighbouring ones if none has room for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import attrs
import numpy as np

from kschedfw import (
    FeatureGates,
    GroupPlacement,
    InMemoryCluster,
    NodeSelection,
    PlacedGroup,
    Plugin,
    Pod,
    Registry,
    Scheduler,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
    make_pod_group,
)


class RackPacking(Plugin):
    """Tries every rack and every pair of neighbours. Fewer racks are better, then fuller ones."""

    name = "RackPacking"

    @hookimpl
    def placement_generate(self, placement: GroupPlacement) -> Sequence[GroupPlacement]:
        table, racks = placement.nodes.table, defaultdict[str, list[int]](list)
        for row, info in zip(placement.nodes.rows.tolist(), placement.nodes, strict=True):
            racks[info.node.labels.get("rack", "")].append(row)
        names = sorted(racks)
        found = dict(racks) | {f"{one}+{two}": racks[one] + racks[two] for one, two in pairwise(names)}
        return [
            GroupPlacement(name, NodeSelection(table, np.array(rows, np.int64)))
            for name, rows in found.items()
        ]

    @hookimpl
    def placement_score(self, placed: PlacedGroup) -> int:
        pods = sum(len(info.pods) for info in placed.placement.nodes) + len(placed.node_names)
        fullness = 50 * pods // (pods + len(placed.placement.nodes))
        return fullness if "+" in placed.placement.name else 50 + fullness


gates = FeatureGates.of("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
default = default_profile(feature_gates=gates)
kept = [plugin for plugin in default.multi_point if plugin.name != "TopologyPlacementGenerator"]
profile = attrs.evolve(default, multi_point=(*kept, "RackPacking"))
registry = Registry()
registry.register(RackPacking)
cluster = InMemoryCluster(
    make_node(f"node-{i}").capacity(cpu=4, memory="8Gi", pods=10).labels(rack=f"r{i // 2}").build()
    for i in range(6)
)
for name, size in (("small", 6), ("large", 10)):
    cluster.add(make_pod_group(name).gang(size).build())
    for i in range(size):
        cluster.add(make_pod(f"{name}-{i}").requests(cpu=1, memory="512Mi").group(name).build())
Scheduler(cluster, [profile], registry=registry, feature_gates=gates).run_until_idle()
for name in ("small", "large"):
    nodes = sorted({pod.node_name for pod in cluster.list(Pod) if pod.name.startswith(name)})
    print(f"{name}: {', '.join(nodes)}")
