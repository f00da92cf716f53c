"""What is remembered of pods of one kind, how much of it, and what the report says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kschedfw import (
    CycleState,
    Evaluation,
    NodeSelection,
    PodInfo,
    Reads,
    Snapshot,
    Status,
    make_node,
    make_pod,
)
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.answers import memo as memo_module
from kschedfw.framework.runtime.answers.columns import UNKNOWN_CODE, Column
from kschedfw.framework.runtime.answers.memo import Memo
from kschedfw.framework.runtime.answers.plugins import PluginMemo
from kschedfw.framework.runtime.answers.pod_class import BYTES_PER_CLASS, POD_CLASS
from kschedfw.testing import FakeClock
from tests.framework.support import PluginClass, answering, make_framework, nodes, plugin, pod


def signing(name: str = "A", **members: object) -> PluginClass:
    """A plugin that lets every pod pass, and signs by the label `kind`."""
    made = plugin(name, **{"filter": answering(None), **members})
    made.reads = Reads.NODE
    made.sign = lambda self, pod: pod.labels.get("kind")  # type: ignore[misc, method-assign]
    return made


def snapshot_of(count: int) -> Snapshot:
    return Snapshot.of(nodes(*(f"n{number}" for number in range(count))))


class TestColumns:
    def column(self, snapshot: Snapshot, reads: Reads) -> Column:
        column = Column(snapshot.table, reads, np.int32, UNKNOWN_CODE)
        column.values[:] = range(len(snapshot))
        return column

    @pytest.mark.parametrize(
        ("reads", "after_pods", "after_node"),
        [
            (Reads.NODE, [0, 1, 2], [0, -1, 2]),
            (Reads.PODS, [0, -1, 2], [0, -1, 2]),
            (Reads.CLUSTER, [-1, -1, -1], [-1, -1, -1]),
        ],
    )
    def test_what_a_plugin_reads_decides_which_answers_are_forgotten(
        self, reads: Reads, after_pods: list[int], after_node: list[int]
    ) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, reads)
        column.follow(snapshot.table)
        assert column.values.tolist() == [0, 1, 2]
        crowded = snapshot.get("n1").clone()
        crowded.add_pod(PodInfo.of(make_pod("p").build()))
        snapshot.update([crowded])
        column.follow(snapshot.table)
        assert column.values.tolist() == after_pods
        column.values[:] = [0, 1, 2]
        relabelled = crowded.clone()
        relabelled.set_node(make_node("n1").labels(new="label").build())
        snapshot.update([relabelled])
        column.follow(snapshot.table)
        assert column.values.tolist() == after_node

    def test_answers_follow_their_nodes_to_other_rows(self) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, Reads.NODE)
        first, second, third = snapshot.node_infos
        snapshot.replace([third, NodeInfo.of(make_node("new").build()), first, second])
        column.follow(snapshot.table)
        assert column.values.tolist() == [2, -1, 0, 1]

    def test_one_that_has_changed_and_moved_is_forgotten(self) -> None:
        snapshot = snapshot_of(2)
        column = self.column(snapshot, Reads.PODS)
        first, second = snapshot.node_infos
        snapshot.update([NodeInfo.of(first.node, [make_pod("p").build()])])
        snapshot.replace([second, snapshot.get("n0")])
        column.follow(snapshot.table)
        assert column.values.tolist() == [1, -1]

    def test_answers_survive_a_few_moves_that_nobody_asked_after(self) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, Reads.NODE)
        first, second, third = snapshot.node_infos
        snapshot.replace([third, first, second])
        snapshot.replace([third, second])
        snapshot.replace([third, second, NodeInfo.of(first.node)])
        column.follow(snapshot.table)
        assert column.values.tolist() == [2, 1, -1]

    def test_a_node_that_came_and_went_changes_nothing(self) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, Reads.NODE)
        before = list(snapshot.node_infos)
        snapshot.replace([*before, NodeInfo.of(make_node("new").build())])
        snapshot.replace(before)
        assert column.stale(snapshot.table) == ()
        assert column.values.tolist() == [0, 1, 2]

    def test_when_the_last_node_goes_its_answer_goes(self) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, Reads.NODE)
        snapshot.replace(snapshot.node_infos[:2])
        assert column.stale(snapshot.table) is None
        column.follow(snapshot.table)
        assert column.values.tolist() == [0, 1]

    def test_who_has_missed_many_moves_starts_again(self) -> None:
        snapshot = snapshot_of(2)
        column = self.column(snapshot, Reads.NODE)
        for _ in range(10):
            snapshot.replace(list(reversed(snapshot.node_infos)))
        column.follow(snapshot.table)
        assert column.values.tolist() == [-1, -1]

    def test_who_lags_further_than_the_log_goes_back_starts_again(self) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, Reads.PODS)
        for _ in range(3000):
            snapshot.update([NodeInfo.of(snapshot.get("n1").node, [make_pod("p").build()])])
        column.follow(snapshot.table)
        assert column.values.tolist() == [-1, -1, -1]


class TestMemory:
    def kept(self, memo: Memo, snapshot: Snapshot, kind: str) -> object:
        return memo.begin_cycle(CycleState(), make_pod().labels(kind=kind).build(), snapshot.table)

    def memo(self) -> Memo:
        made = make_framework(signing()).plugins["A"]
        return Memo([(made, PluginMemo.of(made))])

    def test_pods_of_one_signature_share_what_is_known(self) -> None:
        memo, snapshot = self.memo(), snapshot_of(3)
        assert self.kept(memo, snapshot, "a") is self.kept(memo, snapshot, "a")
        assert self.kept(memo, snapshot, "a") is not self.kept(memo, snapshot, "b")

    def counted(self, reads: Reads, pods: Sequence[str]) -> int:
        """How many kinds are kept of a plugin with a batch form, after pods of these kinds in turn."""
        kind = signing(filter_batch=answering(None))
        kind.reads = reads
        made = make_framework(kind).plugins["A"]
        counts, snapshot = PluginMemo.of(made), snapshot_of(3)
        memo = Memo([(made, counts)])
        for each in pods:
            self.kept(memo, snapshot, each)
        return counts.classes_signed

    @pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
    def test_where_there_is_a_batch_form_a_signature_is_kept_from_its_second_pod_on(
        self, reads: Reads
    ) -> None:
        assert self.counted(reads, "a") == 0
        assert self.counted(reads, "aa") == 1
        assert self.counted(reads, "abcd") == 0
        assert self.counted(reads, "abcdabcd") == 4

    def test_what_follows_pods_is_kept_only_for_the_latest_few(self) -> None:
        assert self.counted(Reads.PODS, "abcde" * 3) == 0
        assert self.counted(Reads.NODE, "abcde" * 3) == 5

    def test_the_least_recently_used_go_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memo_module, "LEAST_BYTES", 3 * 2 * BYTES_PER_CLASS)
        memo, snapshot = self.memo(), snapshot_of(1)
        monkeypatch.setattr(memo_module, "BYTES_PER_NODE", 0)
        first, second = self.kept(memo, snapshot, "a"), self.kept(memo, snapshot, "b")
        assert self.kept(memo, snapshot, "a") is first
        self.kept(memo, snapshot, "c")
        assert self.kept(memo, snapshot, "a") is first
        assert self.kept(memo, snapshot, "b") is not second

    def test_more_nodes_leave_room_for_fewer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memo_module, "LEAST_BYTES", 100_000)
        monkeypatch.setattr(memo_module, "BYTES_PER_NODE", 0)
        memo, snapshot = self.memo(), snapshot_of(1)
        first = self.kept(memo, snapshot, "a")
        snapshot.replace(snapshot_of(2000).node_infos)
        second = self.kept(memo, snapshot, "b")
        assert self.kept(memo, snapshot, "b") is second
        assert self.kept(memo, snapshot, "a") is not first

    @pytest.mark.slow
    def test_reasons_that_are_all_different_do_not_pile_up(self) -> None:
        # A status per pod and node, more in all than are kept.
        def refuse(pod: object, node_info: NodeInfo) -> Status:
            return Status.unschedulable(f"{node_info.name} against {pod}")

        for evaluation in Evaluation:
            framework = make_framework(
                plugin("A", filter=refuse), snapshot=snapshot_of(200), evaluation=evaluation
            )
            everything = NodeSelection.whole(framework.handle.snapshot.table)
            for number in range(90):
                found = framework.filter_nodes(CycleState(), pod(f"p{number}"), everything)
                assert f"p{number}" in dict(found.refused)["n7"].message
            state = CycleState()
            framework.filter_nodes(state, pod("last"), everything)
            assert len(state.read(POD_CLASS).codes) < 17_000


class TestReport:
    def run(self, *kinds: PluginClass, pods: int = 3) -> dict[str, tuple[int, str]]:
        framework = make_framework(*kinds, snapshot=snapshot_of(10))
        everything = NodeSelection.whole(framework.handle.snapshot.table)
        for number in range(pods):
            labelled = make_pod(f"p{number}").labels(kind="a").build()
            framework.filter_nodes(CycleState(), labelled, everything)
        return {name: (each.rows_asked, each.objection) for name, each in framework.memo_report().items()}

    def test_what_is_remembered_is_asked_once(self) -> None:
        assert self.run(signing()) == {"A": (10, "")}

    def test_what_is_missing_is_named(self) -> None:
        neither, unsigned = plugin("B", filter=answering(None)), plugin("C", filter=answering(None))
        unsigned.reads = Reads.NODE
        report = self.run(neither, unsigned)
        assert report["B"][1] == "it doesn't declare reads and sign"
        assert report["C"][1] == "it doesn't declare sign"

    def test_a_signature_that_fails_is_named_and_the_answers_are_given_all_the_same(self) -> None:
        broken = signing()
        broken.sign = lambda self, pod: [pod.name]  # type: ignore[assignment, misc, method-assign]
        _, objection = self.run(broken)["A"]
        assert objection == "sign failed: TypeError: unhashable type: 'list'"


@pytest.mark.parametrize("reads", Reads)
@pytest.mark.parametrize("refused", [1, 10])
@pytest.mark.parametrize("is_nominated", [False, True])
def test_a_refusal_is_forgotten_when_its_time_has_come(
    reads: Reads, refused: int, is_nominated: bool
) -> None:
    clock, nominator = FakeClock(1000.0), Nominator()
    opening = 1060.0

    def filter_(node_info: NodeInfo) -> Status | None:
        if int(node_info.name[1:]) >= refused or clock.now() >= opening:
            return None
        return Status.unresolvable("node(s) were closed", retry_at=opening)

    shop = signing(filter=filter_)
    shop.reads = reads
    framework = make_framework(shop, snapshot=snapshot_of(10), clock=clock, nominator=nominator)
    table, labelled = framework.handle.snapshot.table, make_pod("p").labels(kind="a").build()
    if is_nominated:
        nominator.add(PodInfo.of(make_pod("other").build()), "n0")

    def closed() -> int:
        found = framework.filter_nodes(CycleState(), labelled, NodeSelection.whole(table))
        assert found.refused.count + len(found.feasible) == 10
        return found.refused.count

    assert closed() == closed() == closed() == refused
    clock.advance(60)
    assert closed() == closed() == 0


@pytest.mark.parametrize("changed", [1, 9])
def test_an_error_is_never_remembered(changed: int) -> None:
    broken = False

    def filter_(node_info: NodeInfo) -> None:
        if broken and node_info.name == "n0":
            raise OSError("no disk")

    framework = make_framework(signing(filter=filter_), snapshot=snapshot_of(10))
    snapshot, labelled = framework.handle.snapshot, make_pod("p").labels(kind="a").build()

    def error() -> str:
        found = framework.filter_nodes(CycleState(), labelled, NodeSelection.whole(snapshot.table))
        return "" if found.error is None else found.error.message

    assert error() == ""
    snapshot.update([NodeInfo.of(make_node(f"n{number}").build()) for number in range(changed)])
    broken = True
    assert error() == error() == error() == 'running "A" filter plugin: OSError: no disk'
    broken = False
    assert error() == ""
