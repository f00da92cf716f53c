"""Comparing one plugin's forms: which runs are made, what is asked in them, and when a difference is one."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from bench.plugins import Open, Silent
from bench.test_measure import Ticking, case
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.bench.forms import (
    FormError,
    FormRuns,
    FormsComparison,
    FormVerdict,
    comparison,
    form_cases,
    in_form,
)
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.memo import PluginUse
from kschedfw_lab.bench.stage import Case, Form, PluginForm

from kschedfw import NodeInfo, Plugin, Registry, hookimpl
from kschedfw.cli.enabled import changed_default_profile
from kschedfw.framework.nodes.arrays import IntArray

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_little_garbage")]

SCALAR, BATCH, MEMO = Form.SCALAR, Form.BATCH, Form.MEMO

times = st.lists(st.floats(1e-6, 1.0), min_size=4, max_size=6)


def with_open() -> tuple[Case, Registry]:
    registry = Registry()
    registry.register(Open)
    return case("basic", profile=changed_default_profile(["Open"], [])), registry


class TestForms:
    @pytest.mark.parametrize("form", Form)
    def test_the_plugin_alone_has_the_form(self, form: Form) -> None:
        planned, registry = with_open()

        def uses(each: Case) -> dict[str, PluginUse]:
            return {use.plugin: use for use in measure(each, Ticking(), registry=registry).plugins}

        found = uses(attrs.evolve(planned, form=PluginForm("Open", form)))
        assert (found["Open"].rows_per_attempt >= 20) is (form is not MEMO)
        assert found["Open"].batch is (form is not SCALAR)
        # A profile in which one plugin promises nothing has no plans, so the others are asked more often.
        assert [name for name, use in uses(planned).items() if use.rows_per_attempt > 0] == []
        others = {name: use.batch for name, use in found.items() if name != "Open"}
        assert others == {name: use.batch for name, use in uses(planned).items() if name != "Open"}

    @pytest.mark.parametrize(
        ("form", "says"),
        [
            (BATCH, "Silent has no form batch: neither filter_batch nor score_batch"),
            (MEMO, "Silent has no form memo: it doesn't say what it `reads`"),
        ],
    )
    def test_a_form_that_is_not_there(self, form: Form, says: str) -> None:
        with pytest.raises(FormError) as caught:
            in_form(Silent, form)
        assert str(caught.value) == says

    def test_they_take_turns(self) -> None:
        planned, _ = with_open()
        made = [
            None if each.form is None else each.form.form
            for each in form_cases(planned, "Open", [SCALAR, MEMO], 3)
        ]
        assert made == [None, SCALAR, MEMO, MEMO, SCALAR, None, None, SCALAR, MEMO]

    def test_one_is_without_the_plugin(self) -> None:
        planned, _ = with_open()
        first, second = form_cases(planned, "Open", [SCALAR], 1)
        assert "Open" not in first.profile.plugin_names
        assert "Open" in second.profile.plugin_names


class TestVerdict:
    @given(times)
    def test_the_same_runs_do_not_differ(self, seconds: list[float]) -> None:
        assert FormRuns(None, seconds).against(FormRuns(MEMO, seconds)) is FormVerdict.NO_DIFFERENCE

    @given(times, times)
    def test_it_is_the_opposite_from_the_other_side(self, one: list[float], other: list[float]) -> None:
        opposite = {
            FormVerdict.SLOWER: FormVerdict.FASTER,
            FormVerdict.FASTER: FormVerdict.SLOWER,
            FormVerdict.NO_DIFFERENCE: FormVerdict.NO_DIFFERENCE,
        }
        a, b = FormRuns(None, one), FormRuns(MEMO, other)
        assert a.against(b) is opposite[b.against(a)]

    @given(times, times)
    def test_a_cost_is_above_noise_and_never_negative(
        self, without: list[float], seconds: list[float]
    ) -> None:
        runs = [FormRuns(None, without), FormRuns(MEMO, seconds, was_asked=True)]
        cost = FormsComparison("Open", "basic", 100, 20, 10, runs).cost(runs[1])
        assert (cost is not None) == (min(seconds) > max(without))
        assert cost is None or cost > 0

    def test_only_turns_that_are_complete_count(self) -> None:
        planned, registry = with_open()
        one = measure(attrs.evolve(planned, pods=1), Ticking(), registry=registry)
        cases = list(form_cases(planned, "Open", [SCALAR, MEMO], 2))
        assert comparison(planned, "Open", []) is None
        assert comparison(planned, "Open", [(cases[0], one)]) is None
        compared = comparison(planned, "Open", [(each, one) for each in cases[:5]])
        assert compared is not None
        assert [len(each.seconds) for each in compared.runs] == [1, 1, 1]


class Flighty(Plugin):
    """Prefers other nodes in its batch form than node by node."""

    name = "Flighty"

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return int(node_info.name.rpartition("-")[2]) % 100

    @hookimpl
    def score_batch(self, rows: IntArray) -> IntArray:
        return 100 - rows % 100


def compared(plugin: str, forms: Sequence[Form], workload: str = "basic") -> FormsComparison:
    registry = Registry()
    registry.register(Open)
    registry.register(Flighty)
    weighty = changed_default_profile([f"{plugin}=1000"], [])
    planned = case(workload, profile=weighty)
    runs = [
        (each, measure(each, Ticking(), registry=registry)) for each in form_cases(planned, plugin, forms, 2)
    ]
    result = comparison(planned, plugin, runs)
    assert result is not None
    return result


class TestWhatWasAsked:
    """Of a plugin that wasn't asked, nothing was measured."""

    def test_about_how_many_nodes_per_attempt(self) -> None:
        without, scalar, memo = compared("Open", [SCALAR, MEMO]).runs
        assert (without.was_asked, scalar.was_asked, memo.was_asked) == (False, True, True)
        assert scalar.asked == 20
        assert memo.asked < 5

    @pytest.mark.parametrize("forms", [[SCALAR], [SCALAR, MEMO], [MEMO]])
    def test_a_plugin_whose_business_the_pods_are_not(self, forms: list[Form]) -> None:
        found = compared("NodePorts", forms)
        assert not found.was_asked
        assert all(found.cost(each) is None for each in found.runs)
        told = found.to_json()
        assert told["wasAsked"] is False
        assert isinstance(told["runs"], list)
        assert {run["againstWithout"] for run in told["runs"]} == {None}

    def test_one_that_answers_from_memory_was_asked(self) -> None:
        assert compared("NodeAffinity", [MEMO], "node-affinity").was_asked


class TestDecisions:
    def test_are_the_same_in_all_forms(self) -> None:
        assert compared("Open", [SCALAR, BATCH, MEMO]).difference == ""

    def test_or_the_first_that_differs_is_named(self) -> None:
        difference = compared("Flighty", [SCALAR, BATCH]).difference
        assert difference.startswith("scalar and batch differ on pod 1 of 5: ")

    def test_runs_of_one_form_may_differ_too(self) -> None:
        runs = [FormRuns(None, [1.0, 1.0]), FormRuns(SCALAR, [1.0, 1.0], 1.0, True, [["a", "b"], ["a", ""]])]
        found = FormsComparison("Open", "basic", 100, 20, 10, runs)
        assert found.difference == "two runs of scalar differ on pod 2 of 2: b and no node"

    def test_only_what_all_came_to_is_compared(self) -> None:
        runs = [FormRuns(None, [1.0]), FormRuns(SCALAR, [1.0, 1.0], 1.0, True, [["a", "b"], ["a"]])]
        assert FormsComparison("Open", "basic", 100, 20, 10, runs).difference == ""

    def test_what_depends_on_real_time_is_not_compared(self) -> None:
        runs = [FormRuns(None, [1.0]), FormRuns(SCALAR, [1.0, 1.0], 1.0, True, [["a"], ["b"]])]
        assert FormsComparison("Open", "unschedulable-churn", 100, 20, 10, runs).difference == ""
