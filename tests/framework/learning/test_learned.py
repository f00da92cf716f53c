"""Learned batch forms ask a pure hook once per distinct combination of values, and leave the rest to the hook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import (
    CycleState,
    Evaluation,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    Registry,
    Status,
    Verdicts,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.framework.errors import HookError
from kschedfw.framework.learning.learned import LearnedFilter, LearnedHook, LearnedScore
from kschedfw.framework.plugin import is_pure
from kschedfw.testing.properties import examples
from tests.framework.learning.drawn_hooks import PureHooks, pure_hooks
from tests.framework.learning.twins import Side, Twins
from tests.framework.support import make_framework, plugin

STATE = CycleState()


def table_of(*labels: dict[str, str]) -> NodeTable:
    return NodeTable(
        [NodeInfo.of(make_node(f"n{row}").labels(each).build()) for row, each in enumerate(labels)]
    )


RACKS = [{"rack": f"r{row % 3}"} for row in range(30)]


class Counted:
    """A hook that counts its calls."""

    def __init__(self, answer: Callable[[Pod, NodeInfo], object]) -> None:
        self.calls = 0
        self._answer = answer

    def __call__(self, _state: CycleState, pod: Pod, node_info: NodeInfo) -> object:
        self.calls += 1
        return self._answer(pod, node_info)


def same_rack(pod: Pod, info: NodeInfo) -> Status | None:
    rack = info.node.labels.get("rack")
    return None if rack == pod.labels.get("rack") else Status.unschedulable(f"node(s) were in {rack}")


def pod(name: str = "p", **labels: str) -> Pod:
    return make_pod(name).labels(labels).build()


def codes(form: LearnedHook, asked: Pod, table: NodeTable) -> Sequence[str]:
    found = form(STATE, asked, table, table.all_rows)
    assert isinstance(found, Verdicts)
    return [found.statuses[code].message for code in found.codes.tolist()]


def test_a_hook_is_asked_once_per_value_and_kind_of_pod() -> None:
    hook = Counted(same_rack)
    form, table = LearnedFilter(hook), table_of(*RACKS)
    expected = ["" if row % 3 == 1 else f"node(s) were in r{row % 3}" for row in range(30)]
    assert codes(form, pod(rack="r1"), table) == expected
    hook.calls = 0
    for number in range(10):
        assert codes(form, pod(f"p{number}", rack="r1", other=str(number)), table) == expected
    assert hook.calls == 0
    codes(form, pod(rack="r2"), table)
    assert hook.calls == 3


def test_a_changed_node_is_asked_about_only_if_its_value_is_new() -> None:
    hook = Counted(same_rack)
    form, table = LearnedFilter(hook), table_of(*RACKS)
    codes(form, pod(rack="r1"), table)
    hook.calls = 0
    table.update(0, NodeInfo.of(make_node("n0").labels(rack="r1").build()))
    assert codes(form, pod(rack="r1"), table)[0] == ""
    assert hook.calls == 0
    table.update(0, NodeInfo.of(make_node("n0").labels(rack="new").build()))
    assert codes(form, pod(rack="r1"), table)[0] == "node(s) were in new"
    assert hook.calls == 1


def test_several_changed_nodes_are_all_seen() -> None:
    form, table = LearnedFilter(Counted(same_rack)), table_of(*RACKS)
    codes(form, pod(rack="r1"), table)
    for row in (3, 4, 5):
        table.update(row, NodeInfo.of(make_node(f"n{row}").labels(rack=f"r{(row + 1) % 3}").build()))
    assert [not text for text in codes(form, pod(rack="r1"), table)][:6] == [
        False,
        True,
        False,
        True,
        False,
        False,
    ]


def test_a_node_that_comes_goes_or_moves_keeps_the_answers_of_others() -> None:
    hook = Counted(same_rack)
    form, table = LearnedFilter(hook), table_of(*RACKS)
    codes(form, pod(rack="r1"), table)
    hook.calls = 0
    infos = list(table.node_infos)
    table.replace([*infos[4:], NodeInfo.of(make_node("x").labels(rack="r1").build()), infos[0]])
    found = codes(form, pod(rack="r1"), table)
    asked = [same_rack(pod(rack="r1"), info) for info in table.node_infos]
    assert found == ["" if status is None else status.message for status in asked]
    assert hook.calls == 0


def test_what_is_read_behind_a_condition_is_learned_when_it_is_met() -> None:
    def nested(pod: Pod, info: NodeInfo) -> Status | None:
        if "picky" not in pod.labels:
            return None
        return None if info.node.labels.get("rack") == "r0" else Status.unschedulable("node(s) no")

    form, table = LearnedFilter(Counted(nested)), table_of(*RACKS)
    assert codes(form, pod(), table) == [""] * 30
    assert codes(form, pod(picky="yes"), table) == ["", "node(s) no", "node(s) no"] * 10
    assert codes(form, pod(), table) == [""] * 30


def test_none_is_told_apart_from_an_object() -> None:
    def has_affinity(pod: Pod, _info: NodeInfo) -> int:
        return 0 if pod.spec.affinity.node_affinity is None else 7

    form, table = LearnedScore(Counted(has_affinity)), table_of(*RACKS)
    plain, affine = pod(), make_pod("a").node_affinity_in("rack", "r1").build()
    for asked in (plain, affine, plain):
        assert (
            form(STATE, asked, table, table.all_rows).tolist()
            == [has_affinity(asked, table.node_infos[0])] * 30
        )


def test_a_value_that_comes_and_goes_for_ever_leaves_nothing_behind() -> None:
    def label(_pod: Pod, info: NodeInfo) -> int:
        return int(info.node.labels["number"])

    form, table = LearnedScore(Counted(label)), table_of(*[{"number": "0"}] * 4)
    for number in range(300):
        table.update(number % 4, NodeInfo.of(make_node(f"n{number % 4}").labels(number=str(number)).build()))
        found = form(STATE, pod(), table, table.all_rows)
        assert found.tolist() == [label(pod(), info) for info in table.node_infos]
    assert form._nodes is not None
    assert form._nodes.column.size <= 2 * 4 + 64


class TestNotLearned:
    @pytest.mark.parametrize(
        "answer",
        [
            ValueError("broken"),
            Status.from_error("an error"),
            Status.unschedulable("later", retry_at=5.0),
            "nonsense",
        ],
    )
    def test_an_answer_that_is_not_kept_is_left_to_the_hook(self, answer: object) -> None:
        def answering(pod: Pod, _info: NodeInfo) -> object:
            if "bad" not in pod.labels:
                return None
            if isinstance(answer, Exception):
                raise answer
            return answer

        form, table = LearnedFilter(Counted(answering)), table_of(*RACKS)
        assert form(STATE, pod(bad="1"), table, table.all_rows) is None
        assert codes(form, pod(), table) == [""] * 30

    def test_a_score_that_is_no_integer_is_left_to_the_hook(self) -> None:
        form, table = LearnedScore(Counted(lambda _pod, _info: 0.5)), table_of(*RACKS)
        assert form(STATE, pod(), table, table.all_rows) is None

    def test_a_score_of_numpy_is_an_integer(self) -> None:
        form, table = LearnedScore(Counted(lambda _pod, _info: np.int64(3))), table_of(*RACKS)
        assert form(STATE, pod(), table, table.all_rows).tolist() == [3] * 30

    def test_a_hook_whose_answers_never_repeat_pauses_and_tries_again(self) -> None:
        hook = Counted(lambda pod, info: len(pod.name + info.name))
        form, table = LearnedScore(hook), table_of(*RACKS)
        learned = sum(
            form(STATE, pod(f"p{number}"), table, table.all_rows) is not None for number in range(512)
        )
        assert learned <= 5
        assert form.pauses == 1
        assert not form.is_learning
        assert hook.calls <= 5 * 30
        while not form.is_learning:
            assert form(STATE, pod("p"), table, table.all_rows) is None
        assert form(STATE, pod("p"), table, table.all_rows).tolist() == [
            len("p" + i.name) for i in table.node_infos
        ]

    def test_a_hook_that_reads_too_many_things_is_not_learned(self) -> None:
        form, table = (
            LearnedScore(Counted(lambda _pod, info: len([info.node.labels.get(f"k{n}") for n in range(65)]))),
            table_of(*RACKS),
        )
        assert form(STATE, pod(), table, table.all_rows) is None
        assert form.problem == "it reads more than 64 different things"

    def test_a_hook_that_gives_no_end_of_reasons_is_not_learned(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw.framework.learning.learned._MOST_STATUSES", 10)
        form = LearnedFilter(Counted(lambda _pod, info: Status.unschedulable(info.name)))
        table = table_of(*RACKS)
        assert form(STATE, pod(), table, table.all_rows) is None
        assert form.problem == "it gives more than 10 different reasons"


def test_a_hook_that_is_not_pure_is_found_while_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    verdicts = [None]

    def moody(_pod: Pod, _info: NodeInfo) -> Status | None:
        return verdicts[0]

    form, table = LearnedFilter(Counted(moody), "Moody"), table_of(*RACKS)
    assert codes(form, pod(), table) == [""] * 30
    verdicts[0] = Status.unschedulable("node(s) are out of favour")  # type: ignore[call-overload]
    answers = [form(STATE, pod(), table, table.all_rows) for _ in range(64)]
    assert answers[-1] is None
    assert form.problem == "it isn't pure, as it answered differently for equal values"
    assert "plugin Moody: what filter reads is learned no more: it isn't pure" in caplog.text


class Base(Plugin):
    name = "Base"
    pure = True

    @hookimpl
    def filter(self) -> None: ...


class Overriding(Base):
    @hookimpl
    def filter(self) -> None: ...


class Renewing(Overriding):
    pure = True


class Adding(Base):
    @hookimpl
    def score(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("kind", "hook", "expected"),
    [
        (Base, "filter", True),
        (Overriding, "filter", False),
        (Renewing, "filter", True),
        (Adding, "filter", True),
        (Adding, "score", True),
    ],
)
def test_the_promise_of_a_base_class_is_not_one_for_a_hook_that_overrides_it(
    kind: type[Plugin[Any]], hook: str, *, expected: bool
) -> None:
    framework = make_framework(kind)
    assert is_pure(framework.plugins["Base"], hook) is expected


def test_a_plugin_may_name_the_hooks_that_are_pure() -> None:
    framework = make_framework(
        plugin("Some", pure=("filter",), pre_filter=lambda: None, filter=lambda: None, score=lambda: 1)
    )
    learned = framework.learned["Some"]
    assert (list(learned.forms), learned.is_whole) == (["filter_batch"], False)


@pytest.mark.parametrize("pure", ["filter", ("filters",), ()])
def test_a_name_that_is_no_hook_is_refused(pure: object) -> None:
    with pytest.raises(
        HookError, match=r"its `pure` is .*; it is True, False, or some of \(pre_filter, filter"
    ):
        make_framework(plugin("Some", pure=pure, filter=lambda: None))


def test_a_plugin_that_is_pure_gets_the_batch_forms_that_it_lacks() -> None:
    own = plugin(
        "Own",
        pure=True,
        filter=lambda: None,
        filter_batch=lambda rows: Verdicts.passing(len(rows)),
        score=lambda: 1,
    )
    framework = make_framework(own, plugin("Plain", filter=lambda: None))
    assert {name: list(each.forms) for name, each in framework.learned.items()} == {
        "Own": ["score_batch"],
        "Plain": [],
    }


def test_pods_are_told_apart_by_parts_that_pre_score_wrote_without_reading_them() -> None:
    """TaintToleration's pre_score reads the effects of tolerations alone, and writes the tolerations."""
    nodes = [
        make_node("large").capacity(cpu=8, pods=10).taint("old", effect="PreferNoSchedule").build(),
        make_node("small").capacity(cpu=4, pods=10).build(),
    ]
    side = Side(nodes, default_profile(), Registry(), Evaluation.MEMO)
    tolerations = ["old", "old", "old", "other", "old"]
    pods = [
        make_pod(f"p{number}").requests(cpu=1).toleration(key, operator="Exists").build()
        for number, key in enumerate(tolerations)
    ]
    assert [side.decide(pod)[0] for pod in pods] == ["large", "large", "large", "small", "large"]
    side.scheduler.close()


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(st.lists(pure_hooks, min_size=1, max_size=2), st.integers(0, 2**32))
def test_every_decision_is_that_of_hooks_asked_about_each_node(drawn: Sequence[PureHooks], seed: int) -> None:
    """500 decisions on drawn plugins in clusters that change; 2,500 at night. `trials` is the long run."""
    twins = Twins(seed, drawn)
    try:
        twins.run(25)
    finally:
        twins.close()
