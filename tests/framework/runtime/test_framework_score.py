"""pre_score, score, normalize_score, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import Code, CycleState, EnabledPlugin, NodeInfo, Profile, Status
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.outcome import NodeScores
from tests.framework.support import (
    PluginClass,
    answering,
    make_framework,
    nodes,
    plugin,
    pod,
    traceback_names,
)

POD = pod()
NAMES = ["n0", "n1", "n2"]


def by_name(scores: Sequence[int]) -> Callable[[NodeInfo], int]:
    """Rates node n<i> by scores[i]."""
    return lambda node_info: scores[int(node_info.name[1:])]


def run(
    *plugins: PluginClass, profile: Profile | None = None, count: int = 3
) -> tuple[NodeScores | None, Status]:
    framework = make_framework(
        *plugins, profile=profile, nodes=nodes(*(f"n{index}" for index in range(count)))
    )
    state, infos = CycleState(), framework.handle.snapshot.node_infos
    status = framework.run_pre_score_plugins(state, POD, infos)
    assert status.is_success
    return framework.run_score_plugins(state, POD, infos)


def scored(*plugins: PluginClass, profile: Profile | None = None) -> NodeScores:
    scores, status = run(*plugins, profile=profile)
    assert status.is_success, status.message
    assert scores is not None
    return scores


def failed(*plugins: PluginClass) -> str:
    scores, status = run(*plugins)
    assert scores is None
    assert status.code is Code.ERROR
    assert status.plugin == plugins[-1].name
    return status.message


class TestPreScore:
    def run(self, *plugins: PluginClass) -> tuple[Status, CycleState]:
        framework = make_framework(*plugins, nodes=nodes(*NAMES))
        state = CycleState()
        return framework.run_pre_score_plugins(state, POD, framework.handle.snapshot.node_infos), state

    def test_it_sees_the_nodes_that_will_be_scored(self) -> None:
        seen: list[str] = []

        def look(nodes: Sequence[NodeInfo]) -> None:
            seen.extend(info.name for info in nodes)

        self.run(plugin("A", pre_score=look))
        assert seen == NAMES

    def test_a_plugin_that_skips_does_not_score(self) -> None:
        skipping = plugin(
            "A", pre_score=answering(Status.skip()), score=answering(AssertionError("was asked"))
        )
        scores = scored(skipping, plugin("B", score=answering(7)))
        assert list(scores.by_plugin) == ["B"]
        assert scores.totals.tolist() == [7, 7, 7]

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.unschedulable("no"), "no"),
            (Status.unschedulable(), "Unschedulable, but pre_score may answer only Success, Error or Skip"),
            (Status.from_error("no disk"), "no disk"),
            (ValueError("no disk"), "ValueError: no disk"),
            (7, "pre_score must return None or a Status, not 7"),
        ],
    )
    def test_anything_else_is_an_error_and_ends_it(self, answer: object, text: str) -> None:
        status, state = self.run(
            plugin("A", pre_score=answering(Status.skip())),
            plugin("B", pre_score=answering(answer)),
            plugin("C", pre_score=answering(AssertionError("is not asked any more"))),
        )
        assert status.code is Code.ERROR
        assert status.plugin == "B"
        assert status.message == f'running PreScore plugin "B": {text}'
        assert state.skip_score_plugins == {"A"}


class TestTotals:
    def test_each_plugins_normalised_scores_times_its_weight_are_added_up(self) -> None:
        scores = scored(
            plugin("A", score=by_name([1, 2, 3])),
            plugin("B", score=by_name([10, 0, 100])),
            profile=Profile([EnabledPlugin("A", 3), "B"]),
        )
        assert scores.node_names == tuple(NAMES)
        assert scores.totals.tolist() == [13, 6, 109]
        assert scores.by_plugin["A"].weight == 3
        assert scores.by_plugin["A"].weighted.tolist() == [3, 6, 9]
        assert scores.by_plugin["B"].weight == 1

    def test_without_plugins_all_are_zero(self) -> None:
        assert scored().totals.tolist() == [0, 0, 0]

    def test_both_ends_of_the_range_are_allowed(self) -> None:
        assert scored(plugin("A", score=by_name([0, 50, 100]))).totals.tolist() == [0, 50, 100]

    def test_no_nodes_have_no_scores(self) -> None:
        scores, status = run(plugin("A", score=answering(1)), count=0)
        assert status.is_success
        assert scores is not None
        assert scores.totals.tolist() == []

    @given(
        st.lists(
            st.tuples(st.lists(st.integers(0, 100), min_size=3, max_size=3), st.integers(1, 100)), max_size=4
        )
    )
    def test_that_is_a_weighted_sum(self, plugins: list[tuple[list[int], int]]) -> None:
        classes = [plugin(f"P{index}", score=by_name(scores)) for index, (scores, _) in enumerate(plugins)]
        profile = Profile([EnabledPlugin(f"P{index}", weight) for index, (_, weight) in enumerate(plugins)])
        expected = [sum(scores[node] * weight for scores, weight in plugins) for node in range(3)]
        assert scored(*classes, profile=profile).totals.tolist() == expected


class TestNormalize:
    def test_it_may_change_the_scores_in_place(self) -> None:
        def halve(scores: IntArray) -> None:
            scores //= 2

        own = scored(plugin("A", score=by_name([10, 200, 21]), normalize_score=halve)).by_plugin["A"]
        assert own.raw.tolist() == [10, 200, 21]
        assert own.normalized.tolist() == [5, 100, 10]

    @pytest.mark.parametrize("kind", [np.array, list, tuple])
    def test_or_return_new_ones(self, kind: Callable[[list[int]], Any]) -> None:
        rack = plugin("A", score=by_name([1000, -7, 3]), normalize_score=lambda scores: kind([3, 2, 1]))
        own = scored(rack).by_plugin["A"]
        assert own.raw.tolist() == [1000, -7, 3]
        assert own.normalized.tolist() == [3, 2, 1]
        assert own.normalized.dtype == np.int64

    def test_or_say_success(self) -> None:
        rack = plugin("A", score=by_name([1, 2, 3]), normalize_score=answering(Status.success()))
        assert scored(rack).totals.tolist() == [1, 2, 3]

    def test_it_gets_one_score_per_node(self) -> None:
        seen: list[tuple[list[str], list[int]]] = []

        def look(nodes: Sequence[NodeInfo], scores: IntArray) -> None:
            assert scores.dtype == np.int64
            seen.append(([info.name for info in nodes], scores.tolist()))

        scored(plugin("A", score=by_name([7, 8, 9]), normalize_score=look))
        assert seen == [(NAMES, [7, 8, 9])]

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.from_error("no disk"), "no disk"),
            (Status.unschedulable("no"), "no"),
            (Status.skip(), "Skip, but normalize_score may answer only Success or Error"),
            (ValueError("no disk"), "ValueError: no disk"),
            ([1, 2], "scores must be int64 of shape (3,), not [1, 2]"),
            ([0.5, 1, 2], "scores must be int64 of shape (3,), not [0.5, 1, 2]"),
            (
                np.array([1, 2, 3], dtype=np.uint64),
                "scores must be int64 of shape (3,), not uint64 of shape (3,)",
            ),
            ([[1], [2, 3], []], "scores must be int64 of shape (3,), not [[1], [2, 3], []]"),
            ([1, 2, 1 << 70], f"normalize_score must fit int64, and {1 << 70} doesn't"),
        ],
    )
    def test_anything_else_is_an_error(self, answer: object, text: str) -> None:
        message = failed(plugin("A", score=answering(1), normalize_score=answering(answer)))
        assert message == f'running Normalize on Score plugins: plugin "A" failed with: {text}'


class TestRange:
    @pytest.mark.parametrize("score", [-1, 101, (1 << 63) - 1, -(1 << 63)])
    def test_scores_outside_0_to_100_are_an_error_in_kube_schedulers_words(self, score: int) -> None:
        assert failed(plugin("A", score=by_name([0, score, 0]))) == (
            f'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {score}, '
            "it should in the range of [0, 100] after normalizing"
        )

    def test_only_normalised_scores_must_be_in_it(self) -> None:
        rack = plugin("A", score=by_name([-1000, 0, 1000]), normalize_score=answering([0, 50, 100]))
        assert scored(rack).totals.tolist() == [0, 50, 100]


class TestScore:
    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.from_error("no disk"), "no disk"),
            (Status.unschedulable("no"), "no"),
            (Status.success(), "score must return an int, not a Status of the code Success"),
            (Status.unschedulable(), "score must return an int, not a Status of the code Unschedulable"),
            (ValueError("no disk"), "ValueError: no disk"),
            (None, "score must return an int, not None"),
            (1.0, "score must return an int, not 1.0"),
            (True, "score must return an int, not True"),
            (1 << 63, f"score must fit int64, and {1 << 63} doesn't"),
            (-(1 << 63) - 1, f"score must fit int64, and {-(1 << 63) - 1} doesn't"),
            (np.uint64((1 << 64) - 1), f"score must fit int64, and {(1 << 64) - 1} doesn't"),
        ],
    )
    def test_anything_but_an_int64_is_an_error(self, answer: object, text: str) -> None:
        message = failed(plugin("Fine", score=answering(1)), plugin("A", score=answering(answer)))
        assert message == f'running Score plugins: plugin "A" failed with: {text}'

    def test_numpys_integers_will_do(self) -> None:
        assert scored(plugin("A", score=answering(np.int32(7)))).totals.tolist() == [7, 7, 7]

    def test_an_exception_keeps_its_traceback(self) -> None:
        def break_down() -> int:
            raise ValueError("no disk")

        _, status = run(plugin("A", score=break_down))
        assert traceback_names(status)[-1] == "break_down"

    @pytest.mark.parametrize("parallelism", [1, 2, 16])
    def test_of_several_failures_the_first_nodes_is_reported(self, parallelism: int) -> None:
        def fail(node_info: NodeInfo) -> int:
            if int(node_info.name[1:]) >= 3:
                raise ValueError(node_info.name)
            return 0

        framework = make_framework(
            plugin("A", score=fail),
            nodes=nodes(*(f"n{index}" for index in range(50))),
            parallelism=parallelism,
        )
        _, status = framework.run_score_plugins(CycleState(), POD, framework.handle.snapshot.node_infos)
        assert status.message == 'running Score plugins: plugin "A" failed with: ValueError: n3'
        framework.close()


class TestBatch:
    def test_none_leaves_it_to_the_scalar_form(self) -> None:
        rack = plugin("A", score=by_name([1, 2, 3]), score_batch=answering(None))
        assert scored(rack).totals.tolist() == [1, 2, 3]

    def test_scores_come_in_profile_order_whichever_form_they_are_of(self) -> None:
        scores = scored(
            plugin("A", score=answering(1)),
            plugin("B", score=answering(0), score_batch=answering([2, 2, 2])),
            plugin("C", score=answering(3)),
        )
        assert list(scores.by_plugin) == ["A", "B", "C"]
        assert scores.totals.tolist() == [6, 6, 6]

    def test_what_it_returned_is_not_changed_by_normalising(self) -> None:
        own = np.array([1, 2, 3])

        def double(scores: IntArray) -> None:
            scores *= 2

        rack = plugin("A", score=answering(0), score_batch=answering(own), normalize_score=double)
        assert scored(rack).totals.tolist() == [2, 4, 6]
        assert own.tolist() == [1, 2, 3]

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (ValueError("no disk"), "ValueError: no disk"),
            ([1, 2], "scores must be int64 of shape (3,), not [1, 2]"),
            ([[1], [2, 3], []], "scores must be int64 of shape (3,), not [[1], [2, 3], []]"),
            ([True, False, True], "scores must be int64 of shape (3,), not [True, False, True]"),
        ],
    )
    def test_a_failure_or_a_wrong_answer_is_an_error(self, answer: object, text: str) -> None:
        message = failed(plugin("A", score=answering(0), score_batch=answering(answer)))
        assert message == f'running Score plugins: plugin "A" failed with: {text}'
