"""CostAware keeps the contract that every plugin must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from kschedfw_costaware import MAX_HOURLY_PRICE, CostAware, CostAwareArgs, InstancePrice

from kschedfw import Node, Pod
from kschedfw.api.frozendict import FrozenDict
from kschedfw.testing import PluginContract

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def with_limit(pod: Pod, limit: str) -> Pod:
    return pod.with_metadata(attrs.evolve(pod.metadata, annotations=FrozenDict({MAX_HOURLY_PRICE: limit})))


def of_type(node: Node, instance_type: str) -> Node:
    labels = FrozenDict({**node.labels, "node.kubernetes.io/instance-type": instance_type})
    return attrs.evolve(node, metadata=attrs.evolve(node.metadata, labels=labels))


class TestCostAware(PluginContract):
    plugin = CostAware
    args = CostAwareArgs(
        prices=(InstancePrice("small", "0.1"), InstancePrice("large", "1.7"), InstancePrice("", "0.3"))
    )
    max_examples = 10

    def pods(self) -> SearchStrategy[Pod]:
        from hypothesis import strategies as st

        limits = st.sampled_from(["0", "0.01", "0.5", "100", "cheap"])
        return super().pods() | st.builds(with_limit, super().pods(), limits)

    def nodes(self) -> SearchStrategy[Node]:
        from hypothesis import strategies as st

        types = st.sampled_from(["small", "large", "unknown", ""])
        return super().nodes() | st.builds(of_type, super().nodes(), types)
