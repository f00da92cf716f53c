"""post_filter: plugins try to make room, one after the other."""

from __future__ import annotations

import pytest

from kschedfw import Code, CycleState, PostFilterResult, Status
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.results import NominatingMode
from tests.framework.support import PluginClass, answering, make_framework, plugin, pod

N1, N2 = PostFilterResult.nominate("n1"), PostFilterResult.nominate("n2")


def post_filter(*plugins: PluginClass) -> tuple[PostFilterResult | None, Status]:
    return make_framework(*plugins).run_post_filter_plugins(CycleState(), pod(), NodeToStatus())


def says(name: str, result: PostFilterResult | None, status: Status | None) -> PluginClass:
    return plugin(name, post_filter=answering((result, status)))


NOT_ASKED = plugin("Last", post_filter=answering(AssertionError("is not asked any more")))


def test_without_plugins_nothing_is_found() -> None:
    assert post_filter() == (None, Status.unschedulable())
    assert not make_framework().has_post_filter_plugins
    assert make_framework(NOT_ASKED).has_post_filter_plugins


@pytest.mark.parametrize("success", [None, Status.success()])
def test_the_first_success_is_final(success: Status | None) -> None:
    result, status = post_filter(
        says("A", N2, Status.unschedulable("not here")), says("B", N1, success), NOT_ASKED
    )
    assert result == N1
    assert status.is_success


def test_unresolvable_is_final_too() -> None:
    answer = post_filter(says("A", N1, Status.unresolvable("never")), NOT_ASKED)
    assert answer == (N1, Status.unresolvable("never").with_plugin("A"))


def test_unschedulable_passes_on_and_the_reasons_of_all_are_joined_under_the_first_name() -> None:
    result, status = post_filter(
        says("A", None, Status.unschedulable("a1", "a2")), says("B", None, Status.pending("b"))
    )
    assert result is None
    assert status == Status.unschedulable("a1", "a2", "b").with_plugin("A")


def test_the_last_result_that_changes_something_is_kept() -> None:
    no = Status.unschedulable("no")
    result, _ = post_filter(
        says("A", N1, no), says("B", N2, no), says("C", PostFilterResult(), no), says("D", None, no)
    )
    assert result == N2


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((N1, Status.from_error("no disk")), "no disk"),
        (
            (N1, Status.skip()),
            "Skip, but post_filter may answer only Success, Error, Unschedulable or UnschedulableAndUnresolvable",
        ),
        (
            (None, "no"),
            "post_filter must return a pair of a PostFilterResult or None and a Status or None, not (None, 'no')",
        ),
        (ValueError("no disk"), "ValueError: no disk"),
    ],
)
def test_anything_else_is_an_error_and_final(answer: object, text: str) -> None:
    result, status = post_filter(plugin("A", post_filter=answering(answer)), NOT_ASKED)
    assert result is None
    assert status.code is Code.ERROR
    assert status.plugin == "A"
    assert status.message == text


@pytest.mark.parametrize("answer", [None, Status.unschedulable("no"), N1, (N1,), ("n1", None)])
def test_an_answer_that_is_no_pair_is_an_error_that_says_so(answer: object) -> None:
    result, status = post_filter(plugin("A", post_filter=answering(answer)), NOT_ASKED)
    assert result is None
    assert status.code is Code.ERROR
    assert status.plugin == "A"
    assert status.message == (
        f"post_filter must return a pair of a PostFilterResult or None and a Status or None, not {answer!r}"
    )


def test_a_result_nominates_a_node_clears_the_nomination_or_leaves_it() -> None:
    assert PostFilterResult.nominate("n1") == PostFilterResult("n1", NominatingMode.OVERRIDE)
    assert PostFilterResult().mode is NominatingMode.NOOP


def test_it_is_told_why_each_node_was_refused() -> None:
    seen: list[NodeToStatus] = []

    def look(node_to_status: NodeToStatus) -> tuple[None, None]:
        seen.append(node_to_status)
        return None, None

    statuses = NodeToStatus()
    make_framework(plugin("A", post_filter=look)).run_post_filter_plugins(CycleState(), pod(), statuses)
    assert seen == [statuses]
