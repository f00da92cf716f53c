"""How NodeResourcesFit and PodGroupPodsCount rate the placements of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import CycleState, Node, PlacedGroup, Pod, QueuedGroup, make_node, make_pod
from kschedfw.framework.groups import MEMBER_STATES, GroupPlacement, MemberStates
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.plugins._resources import ResourceSpec
from kschedfw.plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    ScoringStrategy,
    ScoringStrategyType,
)
from kschedfw.plugins.pod_group_pods_count import PodGroupPodsCount
from kschedfw.testing import FrameworkHarness
from tests.plugins.resource_clusters import GPU, RESOURCES, ResourceCluster, resource_clusters

FIT: Any = NodeResourcesFit


def fit_of(
    nodes: Sequence[Node], bound: Iterable[Pod], resources: Sequence[ResourceSpec]
) -> FrameworkHarness:
    strategy = ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED, tuple(resources))
    return FrameworkHarness(
        FIT,
        nodes=nodes,
        pods=bound,
        args={"NodeResourcesFit": NodeResourcesFitArgs(scoring_strategy=strategy)},
    )


def rating(harness: FrameworkHarness, members: Sequence[Pod], placed: Mapping[str, str] | None = None) -> int:
    """Return NodeResourcesFit's score of all nodes for the group; by default all members get the first node."""
    where = {pod.uid: "node-0" for pod in members} if placed is None else placed
    placement = GroupPlacement("", NodeSelection.whole(harness.snapshot.table))
    group = QueuedGroup("default/g", None, tuple(members))
    scores, status = harness.framework.run_placement_score_plugins(
        CycleState(), group, [PlacedGroup(placement, where)]
    )
    assert status.is_success, status
    return scores[0].total


class TestNodeResourcesFit:
    def member(self, name: str, **gpus: int) -> Pod:
        builder = make_pod(name).requests(cpu="500m", memory="512Mi")
        return builder.limits({GPU: gpus["gpu"]}).build() if gpus else builder.build()

    def nodes(self) -> list[Node]:
        capacity: dict[str, str | int] = {"cpu": 4, "memory": "8Gi", GPU: 4}
        return [make_node(name).capacity(capacity).build() for name in ("node-0", "node-1")]

    SCORED = (ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU))

    def test_an_extended_resource_that_no_member_requests_does_not_count(self) -> None:
        busy = make_pod("busy").requests(cpu="500m", memory="1Gi").limits({GPU: 4}).node("node-0").build()
        harness = fit_of(self.nodes(), [busy], self.SCORED)
        # CPU 1.5 of 8, memory 2 of 16 GiB: 18 and 12.
        assert rating(harness, [self.member("a"), self.member("b")]) == 15

    def test_it_counts_when_one_member_requests_it(self) -> None:
        harness = fit_of(self.nodes(), [], self.SCORED)
        # CPU 1 of 8, memory 1 of 16 GiB, GPUs 2 of 8: 12, 6 and 25.
        assert rating(harness, [self.member("a"), self.member("b", gpu=2)]) == 14

    def test_a_member_that_has_no_node_on_the_placement_does_not_count(self) -> None:
        harness = fit_of(self.nodes(), [], self.SCORED)
        a, b = self.member("a"), self.member("b", gpu=2)
        # CPU 0.5 of 8, memory 0.5 of 16 GiB: 6 and 3.
        assert rating(harness, [a, b], {a.uid: "node-1"}) == 4

    @pytest.mark.slow
    @given(
        resource_clusters(),
        st.lists(
            st.builds(ResourceSpec, st.sampled_from(RESOURCES), st.integers(1, 5)),
            unique_by=lambda spec: spec.name,
            min_size=1,
        ),
    )
    def test_one_member_on_one_node_is_rated_as_the_pod_on_the_node(
        self, drawn: ResourceCluster, specs: list[ResourceSpec]
    ) -> None:
        node = drawn.nodes[0]
        bound = [pod for pod in drawn.bound if pod.node_name == node.name]
        harness = fit_of([node], bound, specs)
        (pod,) = drawn.pending
        assert rating(harness, [pod], {pod.uid: node.name}) == harness.score(pod)[node.name]


class TestPodGroupPodsCount:
    def scores(self, counts: Sequence[int], scheduled: int = 0) -> tuple[list[int], str]:
        harness = FrameworkHarness(PodGroupPodsCount)
        members = [make_pod(f"m{index}").build() for index in range(max(counts, default=0))]
        nodes = NodeSelection.whole(harness.snapshot.table)
        state = CycleState()
        state.write(MEMBER_STATES, MemberStates({}, set(), scheduled))
        placed = [
            PlacedGroup(GroupPlacement(str(index), nodes), {pod.uid: "n" for pod in members[:count]})
            for index, count in enumerate(counts)
        ]
        group = QueuedGroup("default/g", None, tuple(members))
        found, status = harness.framework.run_placement_score_plugins(state, group, placed)
        return [each.total for each in found], status.message

    def test_the_most_members_are_100_and_others_in_proportion(self) -> None:
        assert self.scores([1, 3, 0]) == ([33, 100, 0], "")

    def test_members_that_are_scheduled_already_count_everywhere(self) -> None:
        assert self.scores([1, 3, 0], scheduled=1) == ([50, 100, 25], "")

    def test_that_no_member_is_anywhere_is_an_error(self) -> None:
        scores, message = self.scores([0, 0])
        assert scores == []
        assert message.endswith("no pods from pod group are assigned to any of the candidate placements")
