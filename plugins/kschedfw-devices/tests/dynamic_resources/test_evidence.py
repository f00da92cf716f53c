"""What explanations say of the devices that a pod can't have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from device_world import DRIVER, allocation, claim, devices, gpu_class, made, node, pod

from kschedfw.api.meta import Named
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import Explanation, explain_pod


def asking(*selectors: str, constraints: Sequence[dict[str, Any]] = (), **exactly: object) -> Named:
    """A claim of the pod, for devices of the class."""
    written = [{"cel": {"expression": each}} for each in selectors]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": written, **exactly}}
    return made(
        "ResourceClaim", "c", spec={"devices": {"requests": [request], "constraints": list(constraints)}}
    )


def explained(*objects: Named, **limits: str) -> Explanation:
    wanting = pod("p", **limits) if limits else pod("p", "c")
    return explain_pod(InMemoryCluster([node("a"), *objects]), wanting)


def texts(*objects: Named, **limits: str) -> list[str]:
    found = explained(*objects, **limits).of("a").evidence["DynamicResources"]
    return [str(each) for each in found]


NOT_H100 = f'device.attributes["{DRIVER}"].model == "H100"'
A100 = {"attributes": {"model": {"string": "A100"}}}


def test_the_selector_of_the_request_and_how_many_devices_it_refuses() -> None:
    names = [f"g{number}" for number in range(100)]
    assert texts(gpu_class(), devices("a", *names, more=A100), asking(NOT_H100)) == [
        "c/r: 1 device of class gpu; 0 of 100 devices would do",
        f"c/r: selector #0 of the request: {NOT_H100}; false for 100 of 100 devices: g0, g1, g2 and 97 more",
    ]


def test_the_selector_of_the_class() -> None:
    both = gpu_class(f'device.driver == "{DRIVER}"', "false")
    explanation = explained(both, devices("a", "g0"), asking())
    summary, selector = explanation.of("a").evidence["DynamicResources"]
    assert str(selector) == "c/r: selector #1 of class gpu: false; false for 1 of 1 device: g0"
    assert selector.values == {
        "request": "c/r",
        "devices": 1,
        "of": 1,
        "wanted": "selector #1 of class gpu: false",
        "found": "false for",
        "examples": "g0",
        "listed": "g0",
        "selectorOf": "class",
        "selector": 1,
        "expression": "false",
    }
    assert summary.gap == 1.0


def test_long_selectors_are_cut_and_put_on_one_line() -> None:
    long = "false ||\n  " + " || ".join(["false"] * 100)
    (_, selector) = texts(gpu_class(), devices("a", "g0"), asking(long))
    assert "\n" not in selector
    assert len(selector) < 250


def test_who_has_the_device() -> None:
    other = claim("other", status=allocation("g0", "a"))
    assert texts(gpu_class(), devices("a", "g0", "g1"), asking(count=2), other) == [
        "c/r: 2 devices of class gpu; 1 of 2 devices would do",
        "c/r: a device that is free; already allocated: 1 of 2 devices: g0 to default/other",
    ]


def test_taints() -> None:
    tainted = {"taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]}
    assert texts(gpu_class(), devices("a", "g0", more=tainted), asking())[1:] == [
        "c/r: no taint broken=yes:NoSchedule; tainted so: 1 of 1 device: g0"
    ]


def test_counters_and_how_much_is_left_of_them() -> None:
    spec = {
        "driver": DRIVER,
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 2},
    }
    memory = {"counterSet": "card", "counters": {"memory": {"value": "30Gi"}}}
    objects = [
        made(
            "ResourceSlice",
            "counters",
            spec={**spec, "sharedCounters": [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]},
        ),
        made(
            "ResourceSlice",
            "devices",
            spec={**spec, "devices": [{"name": name, "consumesCounters": [memory]} for name in ("g0", "g1")]},
        ),
    ]
    other = claim("other", status=allocation("g0", "a"))
    assert (
        "c/r: counters of card that are free; too little left for 1 of 2 devices: g1 (memory 30Gi needed, 10Gi left)"
        in texts(gpu_class(), *objects, asking(), other)
    )


def test_values_that_a_constraint_finds() -> None:
    spec = {
        "driver": DRIVER,
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"g{n}", "attributes": {"numa": {"int": n}}} for n in range(2)],
    }
    constraint = {"requests": ["r"], "matchAttribute": f"{DRIVER}/numa"}
    explanation = explained(
        gpu_class(), made("ResourceSlice", "s", spec=spec), asking(count=2, constraints=[constraint])
    )
    assert [str(each) for each in explanation.of("a").evidence["DynamicResources"]] == [
        "all devices at the same time; only some of them fit together",
        "c/r: 2 devices of class gpu; 2 of 2 devices would do",
        f"c: matchAttribute {DRIVER}/numa of r; among the devices that would do: 1 × 0, 1 × 1",
    ]
    assert [each.node for each in explanation.closest()] == ["a"]


def test_a_claim_that_is_allocated_elsewhere() -> None:
    there = claim("c", status=allocation("g0", "b"))
    assert texts(gpu_class(), devices("a", "g0"), there) == [
        "claim c, which is allocated; its devices can't be used on this node"
    ]


def test_a_node_without_devices_and_an_extended_resource() -> None:
    gpu = gpu_class(extendedResourceName="example.com/gpu")
    assert texts(gpu, **{"example.com/gpu": "2"}) == [
        "example.com/gpu of container c: 2 devices of class gpu; the node has no device"
    ]


def test_no_node_has_more_than_forty_pieces() -> None:
    requests = [
        {
            "name": f"r{number}",
            "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "false"}}]},
        }
        for number in range(32)
    ]
    many = made("ResourceClaim", "c", spec={"devices": {"requests": requests}})
    found = texts(gpu_class(), devices("a", "g0"), many)
    assert len(found) == 41
    assert found[-1] == "what else the pod asks for; 24 more reasons"
