"""CapacityScheduling passes the tests that every plugin must pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from kschedfw_capacity import CapacityScheduling
from tests.scenes import NAMESPACES, quota

from kschedfw import Pod
from kschedfw.testing import PluginContract

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def in_namespace(pod: Pod, namespace: str) -> Pod:
    return pod.with_metadata(attrs.evolve(pod.metadata, namespace=namespace))


class TestCapacityScheduling(PluginContract):
    plugin = CapacityScheduling
    other_plugins = ("NodeResourcesFit",)
    max_examples = 5
    objects = (quota("a", {"cpu": 5, "memory": "1Ti"}), quota("b", {"cpu": 50, "memory": "1Ti"}, {"cpu": 20}))

    def pods(self) -> SearchStrategy[Pod]:
        from hypothesis import strategies as st

        return st.builds(in_namespace, super().pods(), st.sampled_from(NAMESPACES))
