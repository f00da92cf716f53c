"""DeviceTaintRules: which devices they taint, and whom their changes wake (KEP-5055).

Sources: kubernetes/dynamic-resource-allocation resourceslice/tracker @3d036712, and the cases of its tests.
"""

from __future__ import annotations

import attrs
import pytest
from device_world import DRIVER, World, claim, devices, gpu_class, made, node, pod

from kschedfw.api import DeviceTaintRule, Named, ResourceSlice, with_taint_rules
from kschedfw.framework.gates import FeatureGates

TAINT = {"key": "broken", "effect": "NoSchedule"}
EVERYTHING = "everything"


def rule(name: str = "rule", effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    """A rule with this selector; without one if none is given, and with the empty one for `everything`."""
    spec: dict[str, object] = {"taint": {**TAINT, "effect": effect}}
    if selector:
        spec["deviceSelector"] = {key: value for key, value in selector.items() if key != EVERYTHING}
    found = made("DeviceTaintRule", name, spec=spec)
    assert isinstance(found, DeviceTaintRule)
    return found


def slice_(*names: str, **more: object) -> ResourceSlice:
    found = devices("a", *names, more=more)
    assert isinstance(found, ResourceSlice)
    return found


def gates(version: str) -> FeatureGates:
    return FeatureGates(version=version)


class TestWhichDevicesAreTainted:
    @pytest.mark.parametrize(
        ("selector", "tainted"),
        [
            ({}, ["g0", "g1"]),
            ({EVERYTHING: ""}, ["g0", "g1"]),
            ({"driver": DRIVER}, ["g0", "g1"]),
            ({"driver": "other.example.com"}, []),
            ({"pool": "a"}, ["g0", "g1"]),
            ({"pool": "b"}, []),
            ({"device": "g1"}, ["g1"]),
            ({"driver": DRIVER, "pool": "a", "device": "g0"}, ["g0"]),
            ({"driver": DRIVER, "pool": "b", "device": "g0"}, []),
        ],
        ids=str,
    )
    def test_all_parts_of_a_selector_have_to_match_and_without_one_every_device_does(
        self, selector: dict[str, str], tainted: list[str]
    ) -> None:
        found = with_taint_rules(slice_("g0", "g1"), [rule(**selector)])
        assert [each.name for each in found.spec.devices if each.taints] == tainted

    def test_taints_of_rules_come_after_the_drivers_own(self) -> None:
        own = {"key": "own", "effect": "NoExecute"}
        found = with_taint_rules(slice_("g0", taints=[own]), [rule("one"), rule("two")])
        assert [each.key for each in found.spec.devices[0].taints] == ["own", "broken", "broken"]

    def test_a_slice_that_no_rule_selects_is_the_same_object(self) -> None:
        untouched = slice_("g0")
        assert with_taint_rules(untouched, [rule(pool="b")]) is untouched


def placed(version: str, *objects: Named) -> str:
    """The node of a pod with a claim for a GPU, of which nodes a and b have one each."""
    scene = (node("a"), node("b"), gpu_class(), devices("a", "g0"), devices("b", "g0"), claim("c"))
    world = World(*scene, *objects, pod("p", "c"), gates=gates(version))
    world.run()
    return world.node_of("p")


class TestAllocation:
    @pytest.mark.parametrize(
        ("rules", "before", "after"),
        [
            ([rule(pool="a")], "a", "b"),
            ([rule(driver=DRIVER)], "a", ""),
            ([rule(pool="a", effect="NoExecute")], "a", "b"),
            ([rule(pool="a", effect="None")], "a", "a"),
        ],
        ids=["one pool", "all devices", "NoExecute keeps pods away too", "None only informs"],
    )
    def test_a_device_that_a_rule_taints_is_not_allocated_since_v1_37(
        self, rules: list[DeviceTaintRule], before: str, after: str
    ) -> None:
        # The other node has a pod, so that scores prefer a.
        other = attrs.evolve(pod("q"), spec=attrs.evolve(pod("q").spec, node_name="b"))
        assert (placed("1.36", *rules, other), placed("1.37", *rules, other)) == (before, after)

    def test_a_request_may_tolerate_the_taint(self) -> None:
        tolerant = {"deviceClassName": "gpu", "tolerations": [{"key": "broken", "operator": "Exists"}]}
        spec = {"devices": {"requests": [{"name": "r", "exactly": tolerant}]}}
        asks = made("ResourceClaim", "t", spec=spec)
        world = World(
            node("a"), gpu_class(), devices("a", "g0"), rule(), asks, pod("p", "t"), gates=gates("1.37")
        )
        world.run()
        assert world.node_of("p") == "a"

    def test_the_gate_can_be_set_in_v1_36(self) -> None:
        scene = (node("a"), gpu_class(), devices("a", "g0"), claim("c"), rule(), pod("p", "c"))
        world = World(*scene, gates=FeatureGates({"DRADeviceTaintRules": True}))
        world.run()
        assert world.told("p").startswith("0/1 nodes are available: 1 cannot allocate all claims.")

    def test_a_claim_that_has_a_tainted_device_already_is_shared_all_the_same(self) -> None:
        scene = (node("a"), gpu_class(), devices("a", "g0"), claim("c"), pod("p", "c"))
        world = World(*scene, gates=gates("1.37"))
        world.run()
        world.cluster.add(rule())
        world.cluster.add(pod("q", "c"))
        world.run()
        assert (world.node_of("p"), world.node_of("q")) == ("a", "a")


class TestWaking:
    def refused(self, *more: Named) -> World:
        scene = (node("a"), gpu_class(), devices("a", "g0"), claim("c"), *more, pod("p", "c"))
        world = World(*scene, gates=gates("1.37"))
        world.run()
        assert world.node_of("p") == ""
        return world

    def test_a_refused_pod_is_woken_when_the_rule_goes(self) -> None:
        world = self.refused(rule())
        world.cluster.delete(rule())
        world.run()
        assert world.node_of("p") == "a"

    def test_a_refused_pod_is_woken_when_the_rule_no_longer_selects_the_device(self) -> None:
        world = self.refused(rule())
        world.cluster.update(rule(pool="b"))
        world.run()
        assert world.node_of("p") == "a"

    def test_a_rule_that_taints_no_device_wakes_nobody(self) -> None:
        world = self.refused(rule())
        before = world.scheduler.queue.counts()
        world.cluster.add(rule("other", pool="b"))
        assert world.scheduler.queue.counts() == before
        world.cluster.delete(rule())
        assert world.scheduler.queue.counts() != before
