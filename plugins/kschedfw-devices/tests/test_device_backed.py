"""Extended resources that device classes stand behind, as the plugins that look at resources see them."""

from __future__ import annotations

import pytest
from device_world import World, allocation, claim, devices, gpu_class, made, pod

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.events import QueueingHint
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.testing import FrameworkHarness

GPU = "example.com/gpu"
CLASS = gpu_class(extendedResourceName=GPU)
RESOURCES = [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 1}]
STRATEGIES: dict[str, dict[str, object]] = {
    "LeastAllocated": {},
    "MostAllocated": {},
    "RequestedToCapacityRatio": {
        "requestedToCapacityRatio": {
            "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
        }
    },
}


def node(name: str, **allocatable: str) -> Node:
    found = made("Node", name, status={"allocatable": {"cpu": "8", "pods": "9", **allocatable}})
    assert isinstance(found, Node)
    return found


def scores(plugin: str, args: object, *objects: Named) -> dict[str, int]:
    """The score of three nodes: with two devices of which none is taken, with four, and with a device plugin's two."""
    nodes = [node("two"), node("four"), node("plugin", **{GPU: "2"})]
    slices = [devices("two", "g0", "g1"), devices("four", "g0", "g1", "g2", "g3")]
    harness = FrameworkHarness(plugin, nodes=nodes, objects=[*slices, *objects], args={plugin: args})
    return harness.score(pod("p", cpu="4", **{GPU: "1"}))


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        # With the pod half of the CPU is used, and half of the devices, or a quarter.
        ([CLASS], {"two": 75, "four": 68, "plugin": 75}),
        # One of two is taken, so the pod takes a node that is used unevenly and leaves it as uneven.
        ([CLASS, claim("c", status=allocation("g0", "two"))], {"two": 75, "four": 68, "plugin": 75}),
        ([], {"two": 75, "four": 75, "plugin": 75}),
    ],
)
def test_balance_counts_devices_of_resources_that_the_arguments_name(
    objects: list[Named], expected: dict[str, int]
) -> None:
    assert scores("NodeResourcesBalancedAllocation", {"resources": RESOURCES}, *objects) == expected


def test_balance_ignores_devices_of_resources_that_the_arguments_do_not_name() -> None:
    given = scores("NodeResourcesBalancedAllocation", {"resources": RESOURCES[:1]}, CLASS)
    assert set(given.values()) == {75}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("LeastAllocated", {"two": 25, "four": 50, "plugin": 50}),
        ("MostAllocated", {"two": 75, "four": 50, "plugin": 50}),
        ("RequestedToCapacityRatio", {"two": 75, "four": 50, "plugin": 50}),
    ],
)
def test_every_scoring_strategy_counts_the_devices_that_are_taken(
    strategy: str, expected: dict[str, int]
) -> None:
    """CPU: half of it. Devices: both of two, as one is taken; two of four; one of a device plugin's two."""
    args = {"scoringStrategy": {"type": strategy, "resources": RESOURCES, **STRATEGIES[strategy]}}
    taken = [claim(name, status=allocation("g0", name)) for name in ("two", "four")]
    assert scores("NodeResourcesFit", args, CLASS, *taken) == expected


def test_a_score_that_depends_on_devices_is_not_remembered() -> None:
    """The second pod finds a device taken, although it asks for the same."""
    harness = FrameworkHarness(
        "NodeResourcesBalancedAllocation",
        nodes=[node("a")],
        objects=[CLASS, devices("a", "g0", "g1", "g2", "g3")],
        args={"NodeResourcesBalancedAllocation": {"resources": RESOURCES}},
    )
    new = pod("p", cpu="4", **{GPU: "1"})
    assert harness.framework.plugins["NodeResourcesBalancedAllocation"].sign(new) is None
    assert harness.score(new) == {"a": 68}
    harness.cluster.add(claim("c", status=allocation("g0", "a")))
    # before: 0 and 1/4, after: 1/2 and 2/4
    assert harness.score(new) == {"a": 81}


class TestHints:
    def hint(self, old: Named | None, new: Named | None, *objects: Named, gpu: str = GPU) -> QueueingHint:
        harness = FrameworkHarness("NodeResourcesFit", objects=objects)
        return harness.hint(pod("p", cpu="4", **{gpu: "1"}), old, new)

    @pytest.mark.parametrize(
        ("old", "new", "hint"),
        [
            (None, CLASS, QueueingHint.QUEUE),
            (None, gpu_class(), QueueingHint.SKIP),
            (None, gpu_class(extendedResourceName="example.com/other"), QueueingHint.SKIP),
            (gpu_class(), CLASS, QueueingHint.QUEUE),
            (CLASS, gpu_class("true", extendedResourceName=GPU), QueueingHint.SKIP),
            (CLASS, gpu_class(), QueueingHint.SKIP),
            (CLASS, None, QueueingHint.SKIP),
        ],
    )
    def test_a_class_matters_that_begins_to_stand_behind_a_resource_of_the_pod(
        self, old: Named | None, new: Named | None, hint: QueueingHint
    ) -> None:
        assert self.hint(old, new) is hint

    def test_a_new_class_matters_also_by_its_own_name(self) -> None:
        implicit = "deviceclass.resource.kubernetes.io/gpu"
        assert self.hint(None, gpu_class(), gpu=implicit) is QueueingHint.QUEUE
        assert self.hint(gpu_class(), CLASS, gpu=implicit) is QueueingHint.SKIP

    def test_nodes_matter_although_they_have_none_of_a_device_backed_resource(self) -> None:
        small, large = node("a", cpu="2"), node("a")
        assert self.hint(None, large) is QueueingHint.SKIP
        assert self.hint(None, large, CLASS) is QueueingHint.QUEUE
        assert self.hint(None, small, CLASS) is QueueingHint.SKIP
        assert self.hint(small, large, CLASS) is QueueingHint.QUEUE
        assert self.hint(large, small, CLASS) is QueueingHint.SKIP


def waiting(*objects: Named) -> World:
    world = World(*objects, pod("p", cpu="4", **{GPU: "1"}))
    world.run()
    assert world.node_of("p") == ""
    return world


def test_a_refused_pod_is_woken_when_a_device_class_appears() -> None:
    world = waiting(node("a"), devices("a", "g0"))
    assert "Insufficient example.com/gpu" in world.told("p")
    world.cluster.add(CLASS)
    world.run()
    assert world.node_of("p") == "a"


def test_a_refused_pod_is_woken_when_a_node_with_its_devices_grows() -> None:
    world = waiting(node("a", cpu="2"), devices("a", "g0"), CLASS)
    assert "Insufficient cpu" in world.told("p")
    world.cluster.update(node("a"))
    world.run()
    assert world.node_of("p") == "a"


def test_a_device_class_that_does_not_concern_a_refused_pod_leaves_it_alone() -> None:
    world = waiting(node("a"), devices("a", "g0"))
    world.cluster.add(gpu_class())
    (present,) = world.cluster.list(Pod)
    assert world.scheduler.queue.place(present.uid) is Place.UNSCHEDULABLE
