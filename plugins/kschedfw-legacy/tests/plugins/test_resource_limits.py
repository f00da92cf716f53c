"""NodeResourceLimits: 1 for nodes that could hold the pod's limits."""

from __future__ import annotations

import pytest
from kschedfw_legacy.plugins.resource_limits import NodeResourceLimits, ResourceLimits

from kschedfw import make_node, make_pod
from kschedfw.api.builders import NodeBuilder
from kschedfw.api.objects import pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.testing import FrameworkHarness

CPU = make_pod().limits(cpu="3").build()
MEMORY = make_pod().limits(memory="4Ki").build()
BOTH = make_pod().limits(cpu="1", memory="2Ki").container("side").limits(cpu="2", memory="3Ki").build()
NONE = make_pod().build()

EMPTY = make_node("empty")
SMALL = make_node("small").capacity(cpu="2", memory="3Ki")
LARGE = make_node("large").capacity(cpu="4", memory="10Ki")
MUCH_MEMORY = make_node("much-memory").capacity(cpu="1", memory="10Ki")


@pytest.mark.parametrize(
    ("pod", "node", "score"),
    [
        (NONE, LARGE, 0),
        (CPU, LARGE, 1),
        (CPU, SMALL, 0),
        (CPU, EMPTY, 0),
        (MEMORY, LARGE, 1),
        (MEMORY, SMALL, 0),
        (BOTH, LARGE, 1),
        (BOTH, MUCH_MEMORY, 1),
        (BOTH, SMALL, 0),
    ],
)
def test_one_of_cpu_and_memory_is_enough(pod: Pod, node: NodeBuilder, score: int) -> None:
    harness = FrameworkHarness(NodeResourceLimits, nodes=[node.build()])
    assert list(harness.score(pod).values()) == [score]


def test_an_init_container_counts_where_its_limit_is_higher() -> None:
    def container(cpu: str) -> dict[str, object]:
        return {"name": f"c{cpu}", "image": "app:1", "resources": {"limits": {"cpu": cpu}}}

    spec = {"containers": [container("1")], "initContainers": [container("3")]}
    harness = FrameworkHarness(NodeResourceLimits, nodes=[SMALL.build(), LARGE.build()])
    pod = pod_from_manifest({"metadata": {"name": "pod"}, "spec": spec})
    assert harness.score(pod) == {"small": 0, "large": 1}


def test_it_goes_by_two_names() -> None:
    assert FrameworkHarness(ResourceLimits, nodes=[LARGE.build()]).score(CPU) == {"large": 1}
