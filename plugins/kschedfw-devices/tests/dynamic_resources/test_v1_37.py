"""Rules about devices that v1.37 changed, with the answers of v1.36 and v1.37.

Sources: kubernetes/dynamic-resource-allocation structured/internal/incubating and cel @3d036712, and its tests' cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from device_world import DRIVER, World, claim, devices, gpu_class, made, node, pod

from kschedfw.api import Named, ResourceClaim
from kschedfw.framework.gates import FeatureGates

Configurations = Sequence[tuple[str, tuple[str, ...]]]
"""The source of each configuration of an allocation, and the requests that it names."""


def world(version: str, *objects: Named) -> World:
    found = World(*objects, gates=FeatureGates(version=version))
    found.run()
    return found


class TestDeviceSelectorErrors:
    ADVICE = (
        "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for "
        "optional fields"
    )

    @pytest.mark.parametrize(
        ("version", "error"),
        [
            ("1.36", "selector #0: CEL runtime error: no such key: none"),
            ("1.37", f"selector #0 on device {DRIVER}/a/g0: CEL runtime error: no such key: none. {ADVICE}"),
        ],
    )
    @pytest.mark.parametrize("of_class", [True, False])
    def test_it_names_the_device_and_gives_advice(self, version: str, error: str, of_class: bool) -> None:
        missing = f'device.attributes["{DRIVER}"].none == "x"'
        asks = made("ResourceClaim", "c", spec=asking(request("r", *([] if of_class else [missing]))))
        scene = (node("a"), devices("a", "g0"), gpu_class(*([missing] if of_class else [])), asks)
        owner = "class gpu" if of_class else "claim default/c"
        assert f"{owner}: {error}" in world(version, *scene, pod("p", "c")).told("p")

    @pytest.mark.parametrize(("version", "which"), [("1.36", ""), ("1.37", f" on device {DRIVER}/a/g0")])
    def test_advice_is_for_keys_that_are_missing(self, version: str, which: str) -> None:
        scene = (node("a"), devices("a", "g0"), gpu_class("1 / 0 == 1"), claim("c"))
        told = world(version, *scene, pod("p", "c")).told("p")
        assert f"selector #0{which}: CEL runtime error: division by zero" in told
        assert "consider" not in told


def request(name: str, *selectors: str, **more: object) -> dict[str, object]:
    written = [{"cel": {"expression": each}} for each in selectors]
    return {"name": name, "exactly": {"deviceClassName": "gpu", "selectors": written, **more}}


def alternatives(name: str, *parts: str) -> dict[str, object]:
    return {"name": name, "firstAvailable": [{"name": part, "deviceClassName": "gpu"} for part in parts]}


def configuration(*requests: str) -> dict[str, object]:
    opaque = {"driver": DRIVER, "parameters": {"kind": "x"}}
    return {"opaque": opaque, **({"requests": list(requests)} if requests else {})}


def asking(*requests: Mapping[str, object], config: Sequence[Mapping[str, object]] = ()) -> dict[str, Any]:
    return {"devices": {"requests": list(requests), "config": list(config)}}


class TestDeviceConfigurations:
    @pytest.mark.parametrize(
        ("names", "before", "after"),
        [
            ((), [()], [()]),
            (("r",), [("r",)], [("r",)]),
            (("r", "s"), [("r", "s")] * 2, [("r", "s")]),
            (("r", "s", "t"), [("r", "s", "t")] * 3, [()]),
            (("r", "s", "t/y"), [("r", "s", "t/y")] * 2, [("r", "s", "t/y")]),
            (("r", "s", "t/x"), [("r", "s", "t/x")] * 3, [()]),
            (("t/y",), [], []),
        ],
        ids=str,
    )
    def test_a_claims_is_there_once_and_names_no_requests_if_it_is_for_all(
        self, names: tuple[str, ...], before: list[tuple[str, ...]], after: list[tuple[str, ...]]
    ) -> None:
        requests = (request("r"), request("s"), alternatives("t", "x", "y"))
        asks = asking(*requests, config=[configuration(*names)])
        for version, expected in (("1.36", before), ("1.37", after)):
            assert self.given(version, asks, gpu_class()) == [("FromClaim", each) for each in expected]

    @pytest.mark.parametrize(
        ("version", "named"), [("1.36", ("r", "s")), ("1.37", ())], ids=["v1.36", "v1.37"]
    )
    def test_so_does_a_class_of_all_requests(self, version: str, named: tuple[str, ...]) -> None:
        given = self.given(version, asking(request("r"), request("s")), gpu_class(config=[configuration()]))
        assert given == [("FromClass", named)]

    @pytest.mark.parametrize("version", ["1.36", "1.37"])
    def test_a_class_of_some_requests_names_them(self, version: str) -> None:
        other = made("DeviceClass", "other", spec={})
        asks = asking(request("r"), request("s", deviceClassName="other"))
        given = self.given(version, asks, gpu_class(config=[configuration()]), other)
        assert given == [("FromClass", ("r",))]

    def given(self, version: str, asks: Mapping[str, object], *more: Named) -> Configurations:
        scene = (node("a"), devices("a", "g0", "g1", "g2"), made("ResourceClaim", "c", spec=asks))
        found = world(version, *scene, *more, pod("p", "c")).cluster.get(ResourceClaim, "default/c")
        assert found is not None
        assert found.status.allocation is not None
        return [(each.source, each.requests) for each in found.status.allocation.devices.config]


class TestSharedCountersByNode:
    """A claim for all devices of a node can't be allocated while a pool is incomplete or invalid."""

    @pytest.mark.parametrize(("version", "where"), [("1.36", ""), ("1.37", "a")])
    @pytest.mark.parametrize("slices", [("one",), ("one", "two")], ids=["incomplete", "sets of one name"])
    def test_a_broken_pool_is_not_in_the_way_of_nodes_that_it_does_not_name(
        self, version: str, where: str, slices: Sequence[str]
    ) -> None:
        broken = [counters(name, "gone", nodes={"nodeName": "gone"}) for name in slices]
        assert self.place(version, *broken) == where

    @pytest.mark.parametrize("version", ["1.36", "1.37"])
    def test_a_broken_pool_for_all_nodes_is_in_the_way_of_all(self, version: str) -> None:
        assert self.place(version, counters("one", "everywhere", nodes={"allNodes": True})) == ""

    @pytest.mark.parametrize("version", ["1.36", "1.37"])
    @pytest.mark.parametrize(("amount", "where"), [("40Gi", "a"), ("41Gi", "")])
    def test_counters_count_whichever_nodes_their_slice_names(
        self, version: str, amount: str, where: str
    ) -> None:
        consumed = {"counterSet": "card0", "counters": {"memory": {"value": amount}}}
        spec = {
            "driver": DRIVER,
            "nodeName": "a",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
            "devices": [{"name": "g0", "consumesCounters": [consumed]}],
        }
        counted = (
            made("ResourceSlice", "counted", spec=spec),
            counters("counters", "p", nodes={"nodeName": "b"}),
        )
        scene = (node("a"), node("b"), gpu_class(), claim("c"))
        assert world(version, *scene, *counted, pod("p", "c")).node_of("p") == where

    def place(self, version: str, *slices: Named) -> str:
        asks = made("ResourceClaim", "c", spec=asking(request("r", allocationMode="All")))
        scene = (node("a"), node("b"), gpu_class(), devices("a", "g0"), asks)
        return world(version, *scene, *slices, pod("p", "c")).node_of("p")


def counters(name: str, pool: str, *, nodes: Mapping[str, object]) -> Named:
    """A slice with a set of counters, of a pool with two slices."""
    spec = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 2},
        "sharedCounters": [{"name": "card0", "counters": {"memory": {"value": "40Gi"}}}],
        **nodes,
    }
    return made("ResourceSlice", name, spec=spec)
