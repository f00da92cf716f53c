"""Transactions on one truth: what conflicts, and what becomes of the rest."""

from __future__ import annotations

import pytest
from kschedfw_lab.cell.shared_state import (
    Claim,
    ClaimTransaction,
    CommitMode,
    CommitOutcome,
    Detection,
    SharedState,
)

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.cluster import EventType, WatchEvent


class FullNodes:
    """A FitCheck that knows the full nodes, and what is reserved."""

    def __init__(self, *names: str) -> None:
        self.full = set(names)
        self.reserved: list[tuple[str, str]] = []

    def reserve(self, pod: Pod, node_name: str) -> str:
        if node_name in self.full:
            return f"{node_name} is full"
        self.reserved.append((pod.name, node_name))
        return ""

    def release(self, pod: Pod, node_name: str) -> None:
        self.reserved.remove((pod.name, node_name))


class Stage:
    def __init__(self, *full: str, checks: bool = True) -> None:
        self.truth = InMemoryCluster([make_node(name).build() for name in ("a", "b")])
        self.pods = [self.truth.add(make_pod(f"p{number}").build()) for number in range(3)]
        self.fit = FullNodes(*full)
        self.state = SharedState(self.truth, self.fit, checks=checks)

    def claim(self, number: int, node_name: str) -> Claim:
        return Claim(self.pods[number], node_name, self.state.sequence(node_name))

    def commit(
        self,
        *claims: Claim,
        detection: Detection = Detection.FINE,
        mode: CommitMode = CommitMode.INCREMENTAL,
    ) -> CommitOutcome:
        return self.state.commit(ClaimTransaction(claims, detection, mode))

    @property
    def bound(self) -> dict[str, str]:
        return {pod.name: pod.node_name for pod in self.truth.list(Pod) if pod.node_name}


class TestSequenceNumbers:
    def test_grow_with_each_change_of_what_is_on_a_node(self) -> None:
        stage = Stage()
        before = stage.state.sequence("a"), stage.state.sequence("b")
        stage.commit(stage.claim(0, "a"), stage.claim(1, "a"))
        assert (stage.state.sequence("a"), stage.state.sequence("b")) == (before[0] + 2, before[1])
        stage.truth.delete(stage.truth.list(Pod)[0])
        assert stage.state.sequence("a") == before[0] + 3

    def test_grow_whoever_makes_the_change(self) -> None:
        stage = Stage()
        before = stage.state.sequence("a")
        stage.truth.bind(stage.pods[0], "a")
        assert stage.state.sequence("a") == before + 1

    def test_grow_with_changes_of_the_node(self) -> None:
        stage = Stage()
        before = stage.state.sequence("a")
        stage.truth.update(make_node("a").labels(disk="ssd").build())
        assert stage.state.sequence("a") == before + 1

    def test_stay_where_a_pod_only_reports(self) -> None:
        stage = Stage()
        stage.truth.bind(stage.pods[0], "a")
        before = stage.state.sequence("a")
        stage.truth.patch_pod_status(stage.pods[0], nominated_node_name="b")
        assert stage.state.sequence("a") == before

    def test_of_an_unknown_node(self) -> None:
        assert Stage().state.sequence("c") == 0


class TestDetection:
    def test_fine_takes_what_still_fits_although_the_node_has_moved(self) -> None:
        stage = Stage()
        late = stage.claim(1, "a")
        stage.commit(stage.claim(0, "a"))
        assert stage.commit(late) == CommitOutcome((late,))
        assert stage.bound == {"p0": "a", "p1": "a"}

    def test_fine_refuses_what_no_longer_fits(self) -> None:
        stage = Stage("a")
        outcome = stage.commit(stage.claim(0, "a"), stage.claim(1, "b"))
        assert [(each.claim.pod.name, each.reason) for each in outcome.conflicts] == [("p0", "a is full")]
        assert stage.bound == {"p1": "b"}

    def test_coarse_refuses_whatever_has_moved(self) -> None:
        stage = Stage()
        late = stage.claim(1, "a")
        stage.commit(stage.claim(0, "a"))
        outcome = stage.commit(late, detection=Detection.COARSE)
        present, was = stage.state.sequence("a"), late.sequence
        reason = f"node a has moved from sequence number {was} to {present}"
        assert [each.reason for each in outcome.conflicts] == [reason]
        assert stage.bound == {"p0": "a"}

    def test_claims_of_one_transaction_do_not_move_a_node_for_each_other(self) -> None:
        stage = Stage()
        outcome = stage.commit(stage.claim(0, "a"), stage.claim(1, "a"), detection=Detection.COARSE)
        assert len(outcome.accepted) == 2

    def test_fine_needs_somebody_to_ask(self) -> None:
        stage = Stage()
        with pytest.raises(ValueError, match="FINE needs a FitCheck"):
            SharedState(stage.truth).commit(ClaimTransaction((stage.claim(0, "a"),)))

    @pytest.mark.parametrize("detection", Detection)
    def test_a_pod_is_bound_once(self, detection: Detection) -> None:
        stage = Stage()
        stage.commit(stage.claim(0, "a"))
        outcome = stage.commit(stage.claim(0, "b"), detection=detection)
        assert outcome.conflicts[0].reason.endswith("already assigned to node 'a'")
        assert stage.state.sequence("b") == 1

    def test_a_pod_is_bound_once_in_a_transaction(self) -> None:
        stage = Stage()
        outcome = stage.commit(stage.claim(0, "a"), stage.claim(0, "b"))
        assert [each.reason for each in outcome.conflicts] == ["it is in this transaction twice"]
        assert stage.bound == {"p0": "a"}

    def test_a_pod_that_is_gone(self) -> None:
        stage = Stage()
        claim = stage.claim(0, "a")
        stage.truth.delete(stage.pods[0])
        assert "doesn't exist" in stage.commit(claim).conflicts[0].reason

    def test_without_checks_everything_is_taken(self) -> None:
        stage = Stage("a", checks=False)
        late = stage.claim(0, "a")
        stage.commit(stage.claim(1, "a"), detection=Detection.COARSE)
        assert stage.commit(late, detection=Detection.COARSE).accepted == (late,)


class TestMode:
    def test_all_or_nothing_leaves_nothing_behind(self) -> None:
        stage = Stage("b")
        outcome = stage.commit(
            stage.claim(0, "a"), stage.claim(1, "b"), stage.claim(2, "a"), mode=CommitMode.ALL_OR_NOTHING
        )
        assert (outcome.accepted, len(outcome.conflicts)) == ((), 1)
        assert (stage.bound, stage.fit.reserved) == ({}, [])

    def test_all_or_nothing_binds_all_at_once(self) -> None:
        stage = Stage()
        seen: list[int] = []

        def count(event: WatchEvent) -> None:
            if event.type is EventType.MODIFIED:
                seen.append(len(stage.bound))

        stage.truth.watch(count)
        stage.commit(stage.claim(0, "a"), stage.claim(1, "b"), mode=CommitMode.ALL_OR_NOTHING)
        assert seen == [2, 2]
