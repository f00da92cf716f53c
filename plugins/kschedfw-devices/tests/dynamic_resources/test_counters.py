"""A pool's counters suffice for a device if the sums say so, however often they were asked before."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_devices.dynamic_resources.counters import PoolCounters
from kschedfw_devices.dynamic_resources.inventory import Pool, PublishedSlice
from kschedfw_devices.dynamic_resources.usage import PoolUsage

from kschedfw.api import ResourceSlice
from kschedfw.api.manifests import object_from_manifest
from kschedfw.testing.properties import examples

NAMES = ("a", "b")


def pool(there: dict[str, int], wanted: list[dict[str, int]]) -> Pool:
    """A pool with a set of counters, and a device for each of these consumptions."""

    def counters(amounts: dict[str, int]) -> dict[str, object]:
        return {name: {"value": str(amount)} for name, amount in amounts.items()}

    def published(name: str, **spec: object) -> PublishedSlice:
        common = {
            "driver": "d",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
            "allNodes": True,
        }
        slice_ = object_from_manifest(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {**common, **spec},
            }
        )
        assert isinstance(slice_, ResourceSlice)
        return PublishedSlice(slice_)

    consuming = [
        {"name": f"d{number}", "consumesCounters": [{"counterSet": "s", "counters": counters(amounts)}]}
        for number, amounts in enumerate(wanted)
    ]
    sets = published("sets", sharedCounters=[{"name": "s", "counters": counters(there)}])
    return Pool(("d", "p"), (sets, published("devices", devices=consuming)))


AMOUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3), min_size=1)
BELOW_ZERO_TOO = st.dictionaries(st.sampled_from(NAMES), st.integers(-2, 3), min_size=1)


@given(
    there=AMOUNTS,
    wanted=st.lists(AMOUNTS, min_size=1, max_size=5) | st.lists(BELOW_ZERO_TOO, min_size=1, max_size=5),
    data=st.data(),
)
@settings(max_examples=examples(200))
def test_counters_suffice_for_a_device_that_the_sum_leaves_enough_for(
    there: dict[str, int], wanted: list[dict[str, int]], data: st.DataObject
) -> None:
    made = pool(there, wanted)
    devices = [published.device for published in made.slices[1].devices]
    numbers = st.integers(0, len(devices) - 1)
    allocated = data.draw(st.frozensets(numbers, max_size=2))
    counters = PoolCounters(made, PoolUsage(frozenset(f"d{number}" for number in allocated)))
    base = sum_of(wanted, sorted(allocated))
    overdrawn = any(amount > there[name] for name, amount in base.items() if name in there)
    held: list[int] = []
    steps: list[tuple[int, bool]] = data.draw(st.lists(st.tuples(numbers, st.booleans()), max_size=8))
    for number, gives_back in steps:
        taken = sum_of(wanted, [*sorted(allocated), *held])
        suffices = not overdrawn and all(
            name in there and taken[name] + amount <= there[name] for name, amount in wanted[number].items()
        )
        assert counters.suffice_for(devices[number]) == suffices
        if held and gives_back:
            counters.give_back(devices[held[-1]])
            held.pop()
        elif counters.take(devices[number]):
            held.append(number)


def sum_of(wanted: list[dict[str, int]], numbers: list[int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for number in numbers:
        for name, amount in wanted[number].items():
            total[name] += amount
    return total


def test_device_that_gives_to_a_counter_makes_room_for_another() -> None:
    made = pool({"a": 1}, [{"a": 2}, {"a": -1}])
    greedy, giver = (published.device for published in made.slices[1].devices)
    counters = PoolCounters(made, PoolUsage())
    assert not counters.suffice_for(greedy)
    assert counters.take(giver)
    assert counters.suffice_for(greedy)
