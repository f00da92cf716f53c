"""Why a pod fits nowhere, in kube-scheduler's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import FitError, KschedfwError, NoNodesAvailableError, Status, make_pod
from kschedfw.framework.diagnosis import Diagnosis, NodeToStatus

POD = make_pod("web").build()


def refused(**reasons: tuple[str, ...]) -> Diagnosis:
    diagnosis = Diagnosis()
    for node, texts in reasons.items():
        diagnosis.node_to_status.set(node, Status.unschedulable(*texts))
    return diagnosis


class TestFitErrorText:
    def test_reasons_are_counted_over_nodes_and_sorted_as_text(self) -> None:
        diagnosis = refused(
            a=("Insufficient cpu", "Insufficient memory"),
            b=("Insufficient cpu",),
            c=("node(s) had untolerated taint(s)",),
        )
        assert str(FitError(POD, 3, diagnosis)) == (
            "0/3 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
        )

    def test_counts_are_sorted_as_text_too(self) -> None:
        diagnosis = Diagnosis()
        for index in range(12):
            reason = "wrong rack" if index < 10 else "too hot"
            diagnosis.node_to_status.set(f"n{index}", Status.unschedulable(reason))
        assert str(FitError(POD, 12, diagnosis)) == "0/12 nodes are available: 10 wrong rack, 2 too hot."

    def test_nodes_without_a_status_of_their_own_share_one(self) -> None:
        diagnosis = refused(a=("Insufficient cpu",))
        diagnosis.node_to_status.absent = Status.unresolvable(
            "node(s) didn't satisfy plugin(s) [NodeAffinity]"
        )
        assert str(FitError(POD, 5, diagnosis)) == (
            "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) didn't satisfy plugin(s) [NodeAffinity]."
        )

    def test_without_any_reason_only_the_count_is_left(self) -> None:
        assert str(FitError(POD, 2, Diagnosis())) == "0/2 nodes are available:"

    def test_a_pre_filter_message_stands_for_all_nodes(self) -> None:
        diagnosis = refused(a=("never shown",))
        diagnosis.node_to_status.absent = Status.unschedulable("never shown either")
        diagnosis.pre_filter_message = "node(s) didn't satisfy plugin NodeAffinity"
        assert str(FitError(POD, 4, diagnosis)) == (
            "0/4 nodes are available: node(s) didn't satisfy plugin NodeAffinity."
        )

    @pytest.mark.parametrize("pre_filter_message", ["", "no claim"])
    def test_a_post_filter_message_comes_last(self, pre_filter_message: str) -> None:
        diagnosis = refused(a=("too hot",))
        diagnosis.pre_filter_message = pre_filter_message
        diagnosis.post_filter_message = "preemption: 0/1 nodes are available: 1 No preemption victims found."
        middle = pre_filter_message or "1 too hot"
        assert str(FitError(POD, 1, diagnosis)) == (
            f"0/1 nodes are available: {middle}. "
            "preemption: 0/1 nodes are available: 1 No preemption victims found."
        )

    @given(st.lists(st.lists(st.sampled_from("abc"), max_size=3), max_size=6), st.integers(0, 4))
    def test_the_counts_add_up(self, reasons: list[list[str]], absent: int) -> None:
        diagnosis = Diagnosis()
        for index, texts in enumerate(reasons):
            diagnosis.node_to_status.set(f"n{index}", Status.unschedulable(*texts))
        diagnosis.node_to_status.absent = Status.unresolvable("a")
        counts = diagnosis.reasons(len(reasons) + absent)
        assert sum(counts.values()) == sum(map(len, reasons)) + absent


def test_a_fit_error_carries_what_it_was_made_of() -> None:
    diagnosis = Diagnosis()
    error = FitError(POD, 7, diagnosis)
    assert (error.pod, error.number_of_nodes, error.diagnosis) == (POD, 7, diagnosis)
    assert isinstance(error, KschedfwError)


def test_no_nodes_at_all_has_its_own_error() -> None:
    assert str(NoNodesAvailableError()) == "no nodes available to schedule pods"


class TestNodeToStatus:
    def test_an_unknown_node_is_unresolvable_without_reasons(self) -> None:
        assert NodeToStatus().get("n") == Status.unresolvable()

    def test_only_nodes_with_their_own_status_are_listed(self) -> None:
        statuses = NodeToStatus()
        statuses.set("a", Status.unschedulable("too hot"))
        assert list(statuses) == [("a", Status.unschedulable("too hot"))]
        assert len(statuses) == 1
        assert statuses.get("a") == Status.unschedulable("too hot")


class TestPluginsBehindRefusals:
    def test_every_refusal_is_noted_and_what_waits_for_the_outside_once_more(self) -> None:
        diagnosis = Diagnosis()
        diagnosis.add_plugin_status(Status.unschedulable("x").with_plugin("A"))
        diagnosis.add_plugin_status(Status.unresolvable("x").with_plugin("B"))
        diagnosis.add_plugin_status(Status.pending("x").with_plugin("C"))
        assert diagnosis.unschedulable_plugins == {"A", "B", "C"}
        assert diagnosis.pending_plugins == {"C"}

    @pytest.mark.parametrize(
        "status",
        [
            Status.unschedulable("nobody's"),
            Status.success().with_plugin("A"),
            Status.from_error("x").with_plugin("A"),
        ],
    )
    def test_only_refusals_of_a_plugin_are_noted(self, status: Status) -> None:
        diagnosis = Diagnosis()
        diagnosis.add_plugin_status(status)
        assert diagnosis.unschedulable_plugins == diagnosis.pending_plugins == set()
