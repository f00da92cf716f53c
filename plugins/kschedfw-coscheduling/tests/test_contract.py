"""Coscheduling keeps the contract that every plugin must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from kschedfw_coscheduling import POD_GROUP_LABEL, Coscheduling, PodGroup, PodGroupSpec

from kschedfw import FrozenDict, ObjectMeta, Pod, Quantity
from kschedfw.testing import PluginContract

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def in_gang(pod: Pod, name: str) -> Pod:
    labels = FrozenDict({**pod.labels, POD_GROUP_LABEL: name})
    return pod.with_metadata(attrs.evolve(pod.metadata, namespace="default", labels=labels))


def group(name: str, min_member: int, **needs: str) -> PodGroup:
    amounts = FrozenDict({resource: Quantity.parse(amount) for resource, amount in needs.items()})
    return PodGroup(ObjectMeta(name=name, namespace="default"), PodGroupSpec(min_member, amounts))


class TestCoscheduling(PluginContract):
    plugin = Coscheduling
    objects = (group("one", 1), group("two", 2), group("many", 9), group("rich", 1, cpu="3"))
    max_examples = 5

    def pods(self) -> SearchStrategy[Pod]:
        from hypothesis import strategies as st

        names = st.sampled_from(["one", "two", "many", "rich", "missing"])
        return super().pods() | st.builds(in_gang, super().pods(), names)
