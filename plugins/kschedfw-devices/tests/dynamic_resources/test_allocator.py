"""The search for devices: the solution is that of a search which tries everything, and is found without trying it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from device_world import DRIVER, made
from dynamic_resources.exhaustive import Aborted, Exhaustive
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_devices.cel import Budget, OutOfStepsError
from kschedfw_devices.dynamic_resources import candidates
from kschedfw_devices.dynamic_resources.allocator import AllocationError, DeviceSearch
from kschedfw_devices.dynamic_resources.inventory import Inventory, PublishedSlice, ReachablePools
from kschedfw_devices.dynamic_resources.requests import RequestBook, WantedClaim
from kschedfw_devices.dynamic_resources.usage import PoolUsage, Usage

from kschedfw.api import EMPTY, DeviceClass, Node, ResourceClaim, ResourceSlice

Json = dict[str, Any]


def slices_of(*pools: Sequence[Json], counters: Sequence[Json] = ()) -> list[PublishedSlice]:
    """One pool for each list of devices; counters are in a slice of their own in each pool."""
    found = []
    for number, devices in enumerate(pools):
        count = 1 + bool(counters)
        pool = {"name": f"p{number}", "generation": 1, "resourceSliceCount": count}
        spec: Json = {"driver": DRIVER, "pool": pool, "nodeName": "n"}
        found.append(made("ResourceSlice", f"devices-{number}", spec={**spec, "devices": devices}))
        if counters:
            found.append(
                made("ResourceSlice", f"counters-{number}", spec={**spec, "sharedCounters": counters})
            )
    return [PublishedSlice(each) for each in found if isinstance(each, ResourceSlice)]


def reach_of(*pools: Sequence[Json], counters: Sequence[Json] = ()) -> ReachablePools:
    node = made("Node", "n")
    assert isinstance(node, Node)
    return Inventory(slices_of(*pools, counters=counters)).on(node)


def device(name: str, **rest: Any) -> Json:
    return {"name": name, **rest}


def valued(name: str, value: int, **rest: Any) -> Json:
    return device(name, attributes={"a": {"int": value}}, **rest)


def exactly(name: str, count: int = 1, **rest: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count, **rest}}


def wanted(*claims: Json) -> list[WantedClaim]:
    gpu = made("DeviceClass", "gpu", spec={})
    assert isinstance(gpu, DeviceClass)
    book = RequestBook({"gpu": gpu}.get)
    found = [
        made("ResourceClaim", f"c{number}", spec={"devices": devices})
        for number, devices in enumerate(claims)
    ]
    return [book.wanted(each) for each in found if isinstance(each, ResourceClaim)]


def outcome(search: DeviceSearch | Exhaustive) -> object:
    """The devices, or None, or what the error is about."""
    try:
        found = search.run()
    except (AllocationError, Aborted) as error:
        return next((each for each in ABORTS if each in str(error)), error)
    if isinstance(search, DeviceSearch) and search._pruning.proves_too_few:
        assert found is None
    return (
        None
        if found is None
        else [
            [each if isinstance(each, tuple) else (each.option.full_name, each.device.id) for each in claim]
            for claim in found
        ]
    )


ABORTS = ("exceeds the claim limit", "cannot add device", "no such key")
MATCH = {"matchAttribute": f"{DRIVER}/a"}
DISTINCT = {"distinctAttribute": f"{DRIVER}/a"}
NOTHING = Usage()


def names(*claims: Json, reach: ReachablePools, usage: Usage = NOTHING) -> list[list[str]] | None:
    found = DeviceSearch(wanted(*claims), reach, usage, Budget()).run()
    return None if found is None else [[each.device.id[2] for each in claim] for claim in found]


def of_value(value: int) -> list[Json]:
    return [{"cel": {"expression": f'device.attributes["{DRIVER}"].a == {value}'}}]


class TestAdminAccess:
    def test_requests_of_one_claim_get_different_devices(self) -> None:
        claim = {"requests": [exactly(name, adminAccess=True) for name in ("r", "s")]}
        assert names(claim, reach=reach_of([device("d0"), device("d1")])) == [["d0", "d1"]]
        assert names(claim, reach=reach_of([device("d0")])) is None

    def test_a_request_for_all_does_not_get_what_its_claim_has(self) -> None:
        claim = {"requests": [exactly("r", adminAccess=True), all_of("s", adminAccess=True)]}
        assert names(claim, reach=reach_of([device("d0")])) is None

    def test_another_claim_and_an_allocated_device_are_no_hindrance(self) -> None:
        claim = {"requests": [exactly("r", adminAccess=True)]}
        usage = Usage({(DRIVER, "p0"): PoolUsage(frozenset({"d0"}))})
        assert names(claim, claim, reach=reach_of([device("d0")]), usage=usage) == [["d0"], ["d0"]]

    def test_another_request_does_not_get_the_device(self) -> None:
        claims = [{"requests": [exactly("r", adminAccess=True)]}, {"requests": [exactly("r")]}]
        assert names(*claims, reach=reach_of([device("d0")])) is None


def all_of(name: str, **rest: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "All", **rest}}


SHARED: Json = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4Gi"}}}


class TestAll:
    def test_devices_without_the_capacity_are_not_among_all(self) -> None:
        claim = {"requests": [all_of("r", capacity={"requests": {"memory": "1Gi"}})]}
        assert names(claim, reach=reach_of([device("d0"), device("d1", **SHARED)])) == [["d1"]]

    def test_a_constraint_is_broken_before_a_device_is_found_used_up(self) -> None:
        # The first request uses d1 up, which was one of all devices before.
        claim = {
            "requests": [exactly("r", selectors=of_value(2)), all_of("s")],
            "constraints": [{**MATCH, "requests": ["s"]}],
        }
        shared = [valued("d0", 1), valued("d1", 2, **SHARED)]
        with pytest.raises(AllocationError, match=r"cannot add device gpu.example.com/p0/d1 because"):
            names(claim, reach=reach_of(shared))

    def test_a_device_in_use_before_the_one_that_breaks_the_constraint_refuses_the_node_alone(self) -> None:
        claim = {"requests": [all_of("r")], "constraints": [MATCH]}
        usage = Usage({(DRIVER, "p0"): PoolUsage(frozenset({"d1"}))})
        assert names(claim, reach=reach_of([valued("d0", 1), valued("d1", 2)]), usage=usage) is None
        with pytest.raises(AllocationError, match="cannot add device"):
            names(claim, reach=reach_of([valued("d0", 1), valued("d2", 2), valued("d1", 2)]), usage=usage)


def test_a_device_that_one_constraint_refuses_is_forgotten_by_the_others() -> None:
    # d0 satisfies the first constraint and not the second. If the first kept its value, d1 and d2 would be refused.
    both = [device("d0", attributes={"a": {"int": 1}})]
    both += [device(name, attributes={"a": {"int": 2}, "b": {"int": 3}}) for name in ("d1", "d2")]
    claim = {
        "requests": [exactly("r", 2)],
        "constraints": [MATCH, {"matchAttribute": f"{DRIVER}/b"}],
    }
    assert names(claim, reach=reach_of(both)) == [["d1", "d2"]]


def test_one_request_gets_devices_in_increasing_order_and_none_twice() -> None:
    shared = {"allowMultipleAllocations": True}
    claim = {"requests": [exactly("r", 2)]}
    assert names(claim, reach=reach_of([device("d0", **shared), device("d1", **shared)])) == [["d0", "d1"]]
    assert names(claim, reach=reach_of([device("d0", **shared)])) is None


COUNTERS = [{"name": "card", "counters": {"slots": {"value": "2"}}}]


def part(name: str, **rest: Any) -> Json:
    consumed = [{"counterSet": "card", "counters": {"slots": {"value": "1"}}}]
    return device(name, consumesCounters=consumed, **rest)


class TestWhatIsNotGivenBack:
    def test_counters_of_tainted_devices(self) -> None:
        taint = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
        two_tainted = reach_of([part("d0", **taint), part("d1", **taint), part("d2")], counters=COUNTERS)
        assert names({"requests": [exactly("r")]}, reach=two_tainted) is None
        one_tainted = reach_of([part("d0", **taint), part("d1")], counters=COUNTERS)
        assert names({"requests": [exactly("r")]}, reach=one_tainted) == [["d1"]]

    def test_a_second_share_of_a_device_takes_no_counters(self) -> None:
        shared = part("d0", allowMultipleAllocations=True)
        claim = {"requests": [exactly(name) for name in "rst"]}
        assert names(claim, reach=reach_of([shared], counters=COUNTERS)) == [["d0", "d0", "d0"]]


# --- Small searches, against one that tries everything

VALUES = st.sampled_from([None, 1, 2])
KINDS = st.sampled_from(["plain", "plain", "plain", "tainted", "shared", "part", "shared part"])
SELECTORS = {
    "": "true",
    "has": f'"{DRIVER}" in device.attributes',
    "one": f'device.attributes["{DRIVER}"].?a.orValue(0) != 2',
    "fails": f'device.attributes["{DRIVER}"].a < 3',
}


@st.composite
def devices(draw: st.DrawFn) -> list[Json]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        kind, value = draw(KINDS), draw(VALUES)
        rest: Json = {} if value is None else {"attributes": {"a": {"int": value}}}
        if kind == "tainted":
            rest["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        if "shared" in kind:
            rest |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "2"}}}
        found.append(part(f"d{number}", **rest) if "part" in kind else device(f"d{number}", **rest))
    return found


@st.composite
def asked(draw: st.DrawFn) -> Json:
    """What a request, or an alternative, asks for."""
    found: Json = {"deviceClassName": "gpu"}
    chosen = draw(st.sampled_from(["", "", "", *SELECTORS]))
    if chosen:
        found["selectors"] = [{"cel": {"expression": SELECTORS[chosen]}}]
    if draw(st.integers(0, 5)) == 0:
        found["allocationMode"] = "All"
    else:
        found["count"] = draw(st.sampled_from([1, 1, 1, 2, 31]))
    if draw(st.integers(0, 5)) == 0:
        found["tolerations"] = [{"operator": "Exists"}]
    if draw(st.integers(0, 5)) == 0:
        found["capacity"] = {"requests": {"memory": "1"}}
    return found


@st.composite
def claims(draw: st.DrawFn) -> Json:
    requests: list[Json] = []
    for name in "rst"[: draw(st.integers(1, 3))]:
        if draw(st.integers(0, 3)):
            admin = {"adminAccess": True} if draw(st.integers(0, 5)) == 0 else {}
            requests.append({"name": name, "exactly": {**draw(asked()), **admin}})
        else:
            alternatives = [{"name": sub, **draw(asked())} for sub in "xy"[: draw(st.integers(1, 2))]]
            requests.append({"name": name, "firstAvailable": alternatives})
    own: list[Json] = [MATCH, DISTINCT, {**MATCH, "requests": ["r"]}]
    constraints = draw(st.lists(st.sampled_from(own), max_size=2))
    return {"requests": requests, "constraints": constraints}


@given(
    pools=st.lists(devices(), min_size=1, max_size=2),
    asking=st.lists(claims(), min_size=1, max_size=2),
    taken=st.frozensets(st.sampled_from(["d0", "d1"]), max_size=1),
)
def test_the_search_ends_as_one_that_tries_everything(
    pools: list[list[Json]], asking: list[Json], taken: frozenset[str]
) -> None:
    reach = reach_of(*pools, counters=COUNTERS)
    usage = Usage({(DRIVER, "p0"): PoolUsage(taken)})
    everything = Exhaustive(wanted(*asking), reach, usage)
    search = DeviceSearch(wanted(*asking), reach, usage, Budget())
    assert outcome(search) == outcome(everything)


@given(
    pools=st.lists(devices(), min_size=1, max_size=6),
    asking=st.lists(claims(), min_size=1, max_size=2),
    taken=st.frozensets(st.sampled_from(["d0", "d1"])),
    used=st.frozensets(st.integers(0, 5)),
)
def test_pools_that_are_passed_over_as_wholes_cost_the_same_steps_and_change_nothing(
    pools: list[list[Json]], asking: list[Json], taken: frozenset[str], used: frozenset[int]
) -> None:
    usage = Usage({(DRIVER, f"p{number}"): PoolUsage(taken) for number in used})
    found: list[object] = []
    for fewest in (len(pools) + 1, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(candidates, "_FEWEST_POOLS", fewest)
            budget = Budget(20_000)
            reach = reach_of(*pools, counters=COUNTERS)
            try:
                result = outcome(DeviceSearch(wanted(*asking), reach, usage, budget))
            except OutOfStepsError:
                found.append("out of steps")
            else:
                found.append((result, budget.left))
    assert str(found[0]) == str(found[1])


def test_what_is_known_of_pools_follows_their_usage() -> None:
    reach = reach_of(*[[part("a"), part("b"), part("c")] for _ in range(3)], counters=COUNTERS)
    found = candidates.candidates_of(reach, ((), ()), EMPTY, Budget())
    assert found.states(NOTHING).is_spent.tolist() == [False, False, False]
    taken = Usage({(DRIVER, "p1"): PoolUsage(frozenset({"a", "b"}))})
    # Its counters are used up, so that the third device is of no use.
    assert found.states(taken).is_spent.tolist() == [False, True, False]
    assert found.states(Usage()).is_spent.tolist() == [False, False, False]


# --- Long searches, in steps


def hostile(count: int, requests: Sequence[Json], constraints: Sequence[Json] = ()) -> DeviceSearch:
    reach = reach_of([valued(f"d{number}", number % 4) for number in range(count)])
    claim = {"requests": list(requests), "constraints": list(constraints)}
    return DeviceSearch(wanted(claim), reach, NOTHING, Budget(20_000))


@pytest.mark.parametrize(
    ("count", "requests", "constraints"),
    [
        (31, [exactly(f"r{number}") for number in range(32)], []),
        (31, [exactly("r", 16), exactly("s", 16)], []),
        (32, [exactly(f"r{number}") for number in range(9)], [MATCH]),
        (40, [exactly("r", 4), *(exactly(f"s{number}") for number in range(20))], [MATCH]),
    ],
)
def test_a_claim_for_more_devices_than_there_are_is_refused_in_few_steps(
    count: int, requests: Sequence[Json], constraints: Sequence[Json]
) -> None:
    search = hostile(count, requests, constraints)
    assert search.run() is None
    assert search._budget.left > 0


def test_different_devices_are_counted() -> None:
    # No two devices are alike, and only the last two requests are too many for the last device.
    requests = [
        exactly(
            f"r{number}",
            selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].a >= {min(number, 19)}'}}],
        )
        for number in range(21)
    ]
    reach = reach_of([valued(f"d{number}", number) for number in range(20)])
    budget = Budget(20_000)
    assert DeviceSearch(wanted({"requests": requests}), reach, NOTHING, budget).run() is None
    assert budget.left > 0


def test_a_search_that_cannot_be_cut_short_ends_when_its_steps_are_spent() -> None:
    search = hostile(24, [exactly(f"r{number}") for number in range(12)], [DISTINCT])
    with pytest.raises(OutOfStepsError):
        search.run()
