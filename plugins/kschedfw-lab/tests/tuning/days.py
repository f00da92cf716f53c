"""Small days for searches: pods that fit only if small ones are packed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

FIT = "profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type"

SEARCH: Mapping[str, object] = {
    "strategy": {"path": FIT, "values": ["LeastAllocated", "MostAllocated"]},
    "plugins.NodeResourcesBalancedAllocation": [False, 1, 4],
}


def write_day(folder: Path, day: int) -> dict[str, str]:
    """A day of small pods, and then large ones that want a whole node; as a value of the factor `cluster`."""
    random = Random(day)
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i}"},
            "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
        }
        for i in range(4)
    ]
    wanted = [random.choice([1, 2]) for _ in range(random.choice([3, 4]))] + [4, 4]
    for number, cpu in enumerate(wanted):
        container = {
            "name": "main",
            "image": "main",
            "resources": {"requests": {"cpu": str(cpu), "memory": "1Gi"}},
        }
        items.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"pod-{number}"},
                "spec": {"containers": [container]},
            }
        )
    path = folder / f"day-{day}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return {"name": str(day), "manifests": path.name}
