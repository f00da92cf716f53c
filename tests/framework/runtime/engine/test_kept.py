"""What a plugin said of a node is reused until something changes that the plugin reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kschedfw import (
    CycleState,
    EnabledPlugin,
    Evaluation,
    Framework,
    IntArray,
    NodeInfo,
    NodeSelection,
    NodeTable,
    Pod,
    PodInfo,
    Profile,
    Reads,
    Snapshot,
    StateKey,
    Status,
    Verdicts,
    make_node,
    make_pod,
)
from kschedfw.framework.nodes.column import FEW_ROWS, UNKNOWN_CODE, UNKNOWN_SCORE, Column
from kschedfw.framework.nominator import Nominator
from kschedfw.testing import FakeClock
from tests.framework.runtime.engine.support import everything, of_kind, signing, snapshot_of
from tests.framework.support import answering, make_framework, plugin


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
        ],
    )
    def test_what_a_plugin_reads_decides_which_answers_are_forgotten(
        self, reads: Reads, after_pods: list[int], after_node: list[int]
    ) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, reads)
        assert not column.follow(snapshot.table)
        assert column.values.tolist() == [0, 1, 2]
        crowded = snapshot.get("n1").clone()
        crowded.add_pod(PodInfo.of(make_pod("p").build()))
        snapshot.update([crowded])
        assert bool(column.follow(snapshot.table)) is (reads is Reads.PODS)
        assert column.values.tolist() == after_pods
        column.values[:] = [0, 1, 2]
        relabelled = crowded.clone()
        relabelled.set_node(make_node("n1").labels(new="label").build())
        snapshot.update([relabelled])
        assert column.follow(snapshot.table)
        assert column.values.tolist() == after_node
        assert not column.follow(snapshot.table)

    def test_who_keeps_more_by_row_is_told_that_rows_have_moved(self) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, Reads.NODE)
        snapshot.replace([*snapshot.node_infos, NodeInfo.of(make_node("n9").build())])
        assert column.follow(snapshot.table) is None
        assert column.follow(snapshot.table) == ()

    def test_missing_rows_are_those_without_a_value(self) -> None:
        snapshot = snapshot_of(4)
        column = self.column(snapshot, Reads.NODE)
        column.values[[0, 2]] = UNKNOWN_CODE
        assert column.missing(snapshot.table.all_rows).tolist() == [0, 2]
        assert column.missing(np.array([3, 2, 1])).tolist() == [2]

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
        column.follow(snapshot.table)
        assert column.values.tolist() == [0, 1, 2]

    def test_when_the_last_node_goes_its_answer_goes(self) -> None:
        snapshot = snapshot_of(3)
        column = self.column(snapshot, Reads.NODE)
        snapshot.replace(snapshot.node_infos[:2])
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


class Asked:
    """A plugin of ten nodes that notes which nodes each of its hooks is asked about; all pass with their number."""

    def __init__(self, reads: Reads, *, batch: bool, scores: bool = False) -> None:
        self.one_by_one: list[str] = []
        self.together: list[list[str]] = []

        def number(name: str) -> int:
            return int(name[1:])

        def ask(node_info: NodeInfo) -> object:
            self.one_by_one.append(node_info.name)
            return number(node_info.name) if scores else None

        def ask_batch(nodes: NodeTable, rows: IntArray) -> object:
            names = [nodes.names[row] for row in rows]
            self.together.append(names)
            return np.array([*map(number, names)]) if scores else Verdicts.passing(len(rows))

        hook = "score" if scores else "filter"
        hooks: dict[str, object] = {hook: ask}
        if batch:
            hooks[f"{hook}_batch"] = ask_batch
        if scores:
            hooks["filter"] = answering(None)
            hooks["filter_batch"] = lambda rows: Verdicts.passing(len(rows))
        self.snapshot = snapshot_of(10)
        self.framework = make_framework(
            signing(reads=reads, **hooks), snapshot=self.snapshot, nominator=Nominator()
        )

    def about(self) -> tuple[list[str], list[list[str]]]:
        """The nodes that hooks are asked about for the next pod, one by one and together."""
        self.one_by_one, self.together = [], []
        answers(self.framework)
        return self.one_by_one, self.together

    def pod_comes_to(self, *names: str) -> None:
        changed = [self.snapshot.get(name).clone() for name in names]
        for info in changed:
            info.add_pod(PodInfo.of(make_pod("there").build()))
        self.snapshot.update(changed)

    def relabel(self, *names: str) -> None:
        self.snapshot.update([NodeInfo.of(make_node(name).labels(new="label").build()) for name in names])


def answers(framework: Framework, kind: str = "a") -> tuple[list[str], dict[str, str], list[int] | str, str]:
    """The feasible nodes, the refusals, the totals (or the error of scoring), and the error of filtering."""
    state, pod = CycleState(), of_kind(kind)
    framework.run_pre_filter_plugins(state, pod)
    found = framework.filter_nodes(state, pod, everything(framework))
    refused = {name: status.message for name, status in found.refused}
    error = "" if found.error is None else found.error.message
    framework.run_pre_score_plugins(state, pod, found.feasible)
    totals, status = framework.total_scores(state, pod, found.feasible)
    return (
        list(found.feasible.names),
        refused,
        status.message if totals is None else totals.values.tolist(),
        error,
    )


ALL = [f"n{number}" for number in range(10)]
SCORES = pytest.mark.parametrize("scores", [False, True], ids=["filter", "score"])


@SCORES
@pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
class TestOnlyChangedRowsAreAskedAboutAgain:
    def test_nothing_is_asked_twice_where_nothing_has_changed(self, reads: Reads, scores: bool) -> None:
        asked = Asked(reads, batch=False, scores=scores)
        assert asked.about() == (ALL, [])
        assert asked.about() == ([], [])

    def test_node_that_gets_a_pod(self, reads: Reads, scores: bool) -> None:
        asked = Asked(reads, batch=False, scores=scores)
        asked.about()
        asked.pod_comes_to("n3", "n5")
        assert asked.about() == (["n3", "n5"] if reads is Reads.PODS else [], [])

    def test_node_that_is_relabelled(self, reads: Reads, scores: bool) -> None:
        asked = Asked(reads, batch=False, scores=scores)
        asked.about()
        asked.relabel("n3")
        assert asked.about() == (["n3"], [])

    def test_nodes_that_move_come_and_go(self, reads: Reads, scores: bool) -> None:
        asked = Asked(reads, batch=False, scores=scores)
        asked.about()
        first, *others = asked.snapshot.node_infos
        asked.snapshot.replace([*others, first])
        assert asked.about() == ([], [])
        asked.snapshot.replace([*others, NodeInfo.of(make_node("n77").build())])
        assert asked.about() == (["n77"], [])
        # Back under the same name, a node is another one.
        asked.snapshot.replace([*others, NodeInfo.of(first.node)])
        assert asked.about() == (["n0"], [])

    def test_few_are_asked_one_by_one_and_many_by_the_batch_form(self, reads: Reads, scores: bool) -> None:
        asked = Asked(reads, batch=True, scores=scores)
        assert asked.about() == ([], [ALL])  # the first of its kind, asked as any other
        assert asked.about() == ([], [ALL])  # the second, whose answers are kept
        assert asked.about() == ([], [])
        asked.relabel(*ALL[:FEW_ROWS])
        assert asked.about() == (ALL[:FEW_ROWS], [])
        asked.relabel(*ALL[: FEW_ROWS + 1])
        assert asked.about() == ([], [ALL[: FEW_ROWS + 1]])
        asked.snapshot.replace(asked.snapshot.node_infos[:2])
        asked.relabel("n0", "n1")
        assert asked.about() == ([], [["n0", "n1"]])  # all of a small table


def test_scores_that_follow_pods_are_asked_of_feasible_nodes_alone() -> None:
    scored: list[str] = []

    def score(node_info: NodeInfo) -> int:
        scored.append(node_info.name)
        return 50

    asks = signing(
        reads=Reads.PODS,
        filter=lambda node_info: Status.unschedulable("no") if node_info.pods else None,
        score=score,
    )
    framework = make_framework(asks, snapshot=snapshot_of(4))
    snapshot = framework.handle.snapshot
    full = NodeInfo.of(snapshot.get("n2").node, [make_pod("there").build()])
    snapshot.update([full])
    assert answers(framework)[0] == ["n0", "n1", "n3"]
    assert scored == ["n0", "n1", "n3"]
    snapshot.update([NodeInfo.of(full.node)])
    assert answers(framework)[2] == [50] * 4
    assert scored == ["n0", "n1", "n3", "n2"]


@pytest.mark.parametrize("reads", Reads)
@pytest.mark.parametrize("refused", [1, 10])
@pytest.mark.parametrize("is_nominated", [False, True])
@pytest.mark.parametrize("batch", [False, True])
def test_a_refusal_is_forgotten_when_its_time_has_come(
    reads: Reads, refused: int, is_nominated: bool, batch: bool
) -> None:
    clock, nominator = FakeClock(1000.0), Nominator()
    opening = 1060.0

    def filter_(node_info: NodeInfo) -> Status | None:
        if int(node_info.name[1:]) >= refused or clock.now() >= opening:
            return None
        return Status.unresolvable("node(s) were closed", retry_at=opening)

    def filter_batch(nodes: NodeTable, rows: IntArray) -> Verdicts:
        said = [filter_(nodes.node_infos[row]) for row in rows]
        no = next((each for each in said if each is not None), Status.unschedulable("never"))
        return Verdicts.refuse(np.array([each is not None for each in said]), no)

    form = {"filter_batch": filter_batch} if batch else {}
    shop = signing(filter=filter_, reads=reads, **form)
    framework = make_framework(shop, snapshot=snapshot_of(10), clock=clock, nominator=nominator)
    if is_nominated:
        nominator.add(PodInfo.of(make_pod("other").build()), "n0")

    def closed() -> int:
        found = framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        assert found.refused.count + len(found.feasible) == 10
        return found.refused.count

    assert closed() == closed() == closed() == refused
    clock.advance(60)
    assert closed() == closed() == 0


@pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
@pytest.mark.parametrize("changed", [1, 9])
@pytest.mark.parametrize("answer", [OSError("no disk"), Status.from_error("no disk"), "rubbish"])
def test_an_error_is_never_remembered(reads: Reads, changed: int, answer: object) -> None:
    broken = False

    def filter_(node_info: NodeInfo) -> object:
        if broken and node_info.name == "n0":
            if isinstance(answer, Exception):
                raise answer
            return answer
        return None

    framework = make_framework(signing(filter=filter_, reads=reads), snapshot=snapshot_of(10))
    snapshot = framework.handle.snapshot

    def error() -> str:
        found = framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        assert (found.error is None) is (found.count == 10)
        return "" if found.error is None else found.error.message

    assert error() == ""
    snapshot.update([NodeInfo.of(make_node(f"n{number}").build()) for number in range(changed)])
    broken = True
    first = error()
    assert 'running "A" filter plugin' in first
    assert error() == error() == first
    broken = False
    assert error() == ""


def test_after_a_failure_answers_are_kept_again_once_a_node_has_changed() -> None:
    broken = True

    def answer(node_info: NodeInfo) -> object:
        return "rubbish" if broken and node_info.name == "n1" else None

    def score(node_info: NodeInfo) -> int:
        return 101 if broken and node_info.name == "n1" else 7

    for made in (signing(filter=answer), signing(score=score)):
        broken = True
        framework = make_framework(made, snapshot=snapshot_of(4))
        answers(framework)
        broken = False
        framework.handle.snapshot.update([NodeInfo.of(make_node("n1").labels(new="label").build())])
        assert answers(framework)[2] == answers(framework)[2]
        asked = framework.memo_report()["A"].rows_asked
        assert answers(framework)[3] == ""
        assert framework.memo_report()["A"].rows_asked == asked


def test_node_passes_if_no_kept_filter_refuses_it_and_kept_scores_count_with_their_weight() -> None:
    def refusing(name: str) -> Callable[[NodeInfo], Status | None]:
        return lambda node_info: Status.unschedulable(f"not {name}") if node_info.name == name else None

    framework = make_framework(
        signing("A", filter=refusing("n1"), score=lambda node_info: int(node_info.name[1:])),
        signing("B", filter=refusing("n2")),
        snapshot=snapshot_of(5),
        profile=Profile([EnabledPlugin("A", 3), EnabledPlugin("B")]),
    )
    for _ in range(2):
        assert answers(framework) == (["n0", "n3", "n4"], {"n1": "not n1", "n2": "not n2"}, [0, 9, 12], "")


class TestFailedScores:
    def framework(
        self, score: Callable[[NodeInfo], object], refused: Sequence[str] = (), **members: object
    ) -> Framework:
        filters = plugin(
            "F", filter=lambda node_info: Status.unschedulable("no") if node_info.name in refused else None
        )
        return make_framework(signing(score=score, **members), filters, snapshot=snapshot_of(4))

    @pytest.mark.parametrize("bad", [101, -1, 1 << 70, "rubbish", None])
    def test_of_refused_nodes_matter_to_nobody(self, bad: object) -> None:
        framework = self.framework(lambda node_info: bad if node_info.name == "n1" else 7, ["n1"])
        for _ in range(2):
            assert answers(framework)[2] == [7, 7, 7]

    def test_of_feasible_nodes_are_named_each_time(self) -> None:
        framework = self.framework(lambda node_info: 101 if node_info.name == "n1" else 7)
        for _ in range(2):
            assert 'plugin "A" returns an invalid score 101' in str(answers(framework)[2])

    @pytest.mark.parametrize("normalized", [101, -1])
    def test_of_normalizing_equal_scores_are_named_each_time(self, normalized: int) -> None:
        framework = self.framework(
            lambda node_info: len(node_info.pods),
            normalize_score=lambda scores: np.full(len(scores), normalized),
        )
        for _ in range(2):
            assert f'plugin "A" returns an invalid score {normalized}' in str(answers(framework)[2])

    def test_are_asked_for_again_when_they_may_be_given(self) -> None:
        scores = {"n1": 101}
        framework = self.framework(lambda node_info: scores.get(node_info.name, 7))
        assert isinstance(answers(framework)[2], str)
        scores["n1"] = 9
        assert answers(framework)[2] == [7, 9, 7, 7]

    def test_a_score_that_stands_for_none_is_a_score(self) -> None:
        """The number that means "not known" in a column is asked for each time."""

        def normalize(scores: IntArray) -> IntArray:
            return np.where(scores == UNKNOWN_SCORE, 1, 2)

        for reads in (Reads.NODE, Reads.PODS):
            framework = self.framework(
                lambda node_info: UNKNOWN_SCORE if node_info.name == "n1" else 5,
                reads=reads,
                normalize_score=normalize,
            )
            for _ in range(2):
                assert answers(framework)[2] == [2, 1, 2, 2]


class TestNormalizing:
    """Kept raw scores are normalised for each pod, since this depends on which nodes are feasible."""

    @pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
    @pytest.mark.parametrize("in_place", [False, True])
    def test_over_the_feasible_nodes_of_each_pod(self, reads: Reads, in_place: bool) -> None:
        def normalize(scores: IntArray) -> IntArray | None:
            shares: IntArray = scores * 100 // scores.max()
            if not in_place:
                return shares
            scores[:] = shares
            return None

        def filter_(node_info: NodeInfo) -> Status | None:
            return Status.unschedulable("full") if node_info.pods else None

        framework = make_framework(
            signing(
                reads=reads,
                score=lambda node_info: 10 * (1 + int(node_info.name[1:])),
                normalize_score=normalize,
            ),
            plugin("F", filter=filter_),
            snapshot=snapshot_of(4),
        )
        assert answers(framework)[2] == answers(framework)[2] == [25, 50, 75, 100]
        snapshot = framework.handle.snapshot
        snapshot.update([NodeInfo.of(snapshot.get("n3").node, [make_pod("there").build()])])
        assert answers(framework)[2] == answers(framework)[2] == [33, 66, 100]

    @pytest.mark.parametrize("raw", [0, 7, 1000])
    def test_equal_scores_stay_equal(self, raw: int) -> None:
        framework = make_framework(
            signing(score=answering(raw), normalize_score=lambda scores: np.full(len(scores), 60)),
            snapshot=snapshot_of(4),
        )
        assert answers(framework)[2] == answers(framework)[2] == [60] * 4


@pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
def test_refusals_of_a_batch_form_are_told_with_their_own_texts(reads: Reads) -> None:
    texts = [Status.success(), Status.unschedulable("x"), Status.unresolvable("y")]

    def filter_batch(nodes: NodeTable, rows: IntArray) -> Verdicts:
        return Verdicts(rows % 3, tuple(texts))

    framework = make_framework(
        signing(reads=reads, filter=answering(None), filter_batch=filter_batch), snapshot=snapshot_of(7)
    )
    for _ in range(3):
        feasible, refused, _, _ = answers(framework)
        assert feasible == ["n0", "n3", "n6"]
        assert refused == {"n1": "x", "n2": "y", "n4": "x", "n5": "y"}


def test_answers_to_other_kinds_are_kept_apart() -> None:
    def filter_(pod: object, node_info: NodeInfo) -> Status | None:
        kind = pod.labels["kind"]  # type: ignore[attr-defined]
        return Status.unschedulable(kind) if node_info.name == {"a": "n1", "b": "n2"}[kind] else None

    framework = make_framework(signing(filter=filter_), snapshot=snapshot_of(4))
    for _ in range(2):
        assert answers(framework, "a")[1] == {"n1": "a"}
        assert answers(framework, "b")[1] == {"n2": "b"}


def test_kept_answers_serve_any_part_and_order_of_the_nodes() -> None:
    framework, scalar = (
        make_framework(
            signing(
                filter=lambda node_info: Status.unschedulable("no") if node_info.name == "n3" else None,
                score=lambda node_info: int(node_info.name[1:]),
            ),
            snapshot=snapshot_of(20),
            evaluation=evaluation,
        )
        for evaluation in (Evaluation.MEMO, Evaluation.SCALAR)
    )
    table = framework.handle.snapshot.table
    whole = NodeSelection.whole(table)
    selections: Sequence[tuple[NodeSelection, int]] = [
        (whole, 20),
        (NodeSelection.whole(table, 7), 9),
        (whole[2:15], 20),
        (whole[::-1], 3),
        (whole[0:0], 20),
        (whole[3:4], 20),
    ]
    for nodes, wanted in selections:
        told = []
        for each in (framework, scalar):
            state = CycleState()
            own = NodeSelection.named(each.handle.snapshot.table, nodes.names)
            if nodes.start:
                own = NodeSelection.whole(each.handle.snapshot.table, nodes.start)
            found = each.filter_nodes(state, of_kind("a"), own, wanted)
            each.run_pre_score_plugins(state, of_kind("a"), found.feasible)
            totals, status = each.total_scores(state, of_kind("a"), found.feasible)
            assert totals is not None
            assert status.is_success
            told.append(
                (
                    found.feasible.names,
                    found.count,
                    found.processed,
                    list(found.refused),
                    totals.values.tolist(),
                    totals.best.tolist(),
                )
            )
        assert told[0] == told[1]


NOTED = StateKey[str]("P.noted")


def test_kinds_of_pods_of_which_a_pure_pre_filter_reads_more_than_of_the_first_are_told_apart() -> None:
    def pre_filter(state: CycleState, pod: Pod) -> None:
        # The first pod isn't picky, so that nothing tells of the label that is read for others.
        state.write(NOTED, pod.labels["rack"] if "picky" in pod.labels else "")

    def filter(state: CycleState, node_info: NodeInfo) -> Status | None:
        wanted = state.read(NOTED)
        return Status.unschedulable("other rack") if wanted and node_info.name != wanted else None

    framework = make_framework(
        plugin("P", pure=True, pre_filter=pre_filter, filter=filter),
        nodes=[make_node(name).build() for name in ALL],
    )

    def feasible(**labels: str) -> list[str]:
        state, pod = CycleState(), make_pod("p").labels(labels).build()
        framework.run_pre_filter_plugins(state, pod)
        return list(framework.filter_nodes(state, pod, everything(framework)).feasible.names)

    assert feasible(rack="n1") == ALL
    assert [feasible(picky="", rack=name) for name in ("n1", "n1", "n2", "n3", "n2")] == [
        [name] for name in ("n1", "n1", "n2", "n3", "n2")
    ]


def test_each_filter_is_asked_node_by_node_where_its_batch_form_fails() -> None:
    def filter(node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("n3 is full") if node_info.name == "n3" else None

    broken = plugin("B", filter=filter, filter_batch=answering(ValueError("broken")))
    framework = make_framework(broken, nodes=[make_node(name).build() for name in ALL])
    state, pod = CycleState(), make_pod("p").build()
    framework.run_pre_filter_plugins(state, pod)
    refused = framework.refused_by_each_filter(state, pod, everything(framework))
    assert {name: dict(codes) for name, codes in refused.items()} == {
        "B": {"n3": Status.unschedulable("n3 is full").with_plugin("B")}
    }
