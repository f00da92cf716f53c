"""Sums of resources."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.resource import Resource

SMALL = st.integers(0, 1 << 40)
AMOUNTS = st.builds(
    Resource,
    milli_cpu=SMALL,
    memory=SMALL,
    ephemeral_storage=SMALL,
    scalar_resources=st.dictionaries(st.sampled_from(["nvidia.com/gpu", "hugepages-2Mi"]), SMALL).map(
        FrozenDict
    ),
    allowed_pod_number=st.integers(0, 200),
)


def test_its_items_are_what_a_pod_can_request() -> None:
    resource = Resource(4000, 1 << 30, 7, 110, FrozenDict({"nvidia.com/gpu": 8}))
    assert list(resource.items()) == [
        ("cpu", 4000),
        ("memory", 1 << 30),
        ("ephemeral-storage", 7),
        ("nvidia.com/gpu", 8),
    ]
    assert all(resource.get(name) == amount for name, amount in resource.items())


def test_amounts_are_found_by_their_api_names() -> None:
    resource = Resource(1, 2, 3, 4, FrozenDict({"nvidia.com/gpu": 5}))
    names = ["cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "example.com/unheard-of"]
    assert [resource.get(name) for name in names] == [1, 2, 3, 4, 5, 0]


@given(st.lists(AMOUNTS))
def test_a_sum_is_of_everything_but_the_pod_count(summands: list[Resource]) -> None:
    resource = Resource()
    for amounts in summands:
        resource = resource.plus(amounts)
    assert resource.milli_cpu == sum(each.milli_cpu for each in summands)
    assert resource.memory == sum(each.memory for each in summands)
    assert resource.ephemeral_storage == sum(each.ephemeral_storage for each in summands)
    assert resource.allowed_pod_number == 0
    for name in ("nvidia.com/gpu", "hugepages-2Mi"):
        assert resource.get(name) == sum(each.scalar_resources.get(name, 0) for each in summands)


@given(st.lists(st.integers(0, (1 << 63) - 1), max_size=5))
def test_sums_beyond_int64_wrap_around_and_come_back(amounts: list[int]) -> None:
    resource = Resource()
    for amount in amounts:
        resource = resource.plus(Resource(amount, amount, amount, 0, FrozenDict({"nvidia.com/gpu": amount})))
    wrapped = int.from_bytes((sum(amounts) % (1 << 64)).to_bytes(8), signed=True)
    assert {resource.milli_cpu, resource.memory, resource.ephemeral_storage} == {wrapped}
    assert resource.get("nvidia.com/gpu") == (wrapped if amounts else 0)
    for amount in amounts:
        resource = resource.minus(Resource(amount, amount, amount, 0, FrozenDict({"nvidia.com/gpu": amount})))
    assert (resource.milli_cpu, resource.memory, resource.get("nvidia.com/gpu")) == (0, 0, 0)


@given(AMOUNTS, AMOUNTS)
def test_minus_undoes_plus_and_leaves_zero_scalars_behind(first: Resource, second: Resource) -> None:
    after = first.plus(second).minus(second)
    assert after.scalar_resources == dict.fromkeys(second.scalar_resources, 0) | first.scalar_resources
    assert attrs.evolve(after, scalar_resources=first.scalar_resources) == first


@given(AMOUNTS, AMOUNTS)
def test_more_may_be_taken_than_there_is(first: Resource, second: Resource) -> None:
    resource = first.minus(second)
    assert resource.milli_cpu == first.milli_cpu - second.milli_cpu
    for name in second.scalar_resources:
        assert resource.get(name) == first.scalar_resources.get(name, 0) - second.scalar_resources[name]


def test_resource_is_immutable() -> None:
    resource = Resource(4000, scalar_resources=FrozenDict({"nvidia.com/gpu": 8}))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        resource.milli_cpu = 0  # type: ignore[misc]  # what a plugin may try
    with pytest.raises(TypeError, match="immutable"):
        resource.scalar_resources["nvidia.com/gpu"] = 0  # type: ignore[index, assignment]
