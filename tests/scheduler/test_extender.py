"""Extenders are asked after the plugins: one after the other about the feasible nodes, then about their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import pytest

from kschedfw import Code, CycleState, FitError, NodeInfo, Pod, ScheduleResult, Status, make_pod
from kschedfw.framework.extender import Extender, ExtenderFilterResult, Victims
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.scheduler import SchedulingError
from tests.framework.support import answering, nodes, plugin, pod
from tests.scheduler.support import POOL, Bench

POD = pod()
ALL = plugin("All", filter=answering(None))


@attrs.define
class Helper:
    """An extender in this process."""

    name: str = "helper"
    weight: int = 1
    is_ignorable: bool = False
    interested: bool = True
    refuse: Mapping[str, str] = attrs.field(factory=dict)
    never: Mapping[str, str] = attrs.field(factory=dict)
    """What it refuses beyond preemption's reach."""
    rate: Callable[[str], int] | None = None
    error: Exception | None = None
    filters: bool = True
    seen: list[list[str]] = attrs.field(factory=list)

    @property
    def is_filter(self) -> bool:
        return self.filters

    @property
    def is_prioritizer(self) -> bool:
        return self.rate is not None

    @property
    def is_binder(self) -> bool:
        return False

    @property
    def supports_preemption(self) -> bool:
        return False

    def is_interested(self, pod: Pod) -> bool:
        return self.interested

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderFilterResult:
        self.seen.append([info.name for info in nodes])
        if self.error is not None:
            raise self.error
        left = [info for info in nodes if info.name not in self.refuse and info.name not in self.never]
        return ExtenderFilterResult(left, self.refuse, self.never)

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        if self.error is not None:
            raise self.error
        assert self.rate is not None
        return {info.name: self.rate(info.name) for info in nodes} | {"unknown": 10}

    def process_preemption(
        self, pod: Pod, victims_by_node: Mapping[str, Victims], snapshot: Snapshot | None = None
    ) -> Mapping[str, Victims]:
        raise NotImplementedError

    def bind(self, pod: Pod, node_name: str) -> None:
        raise NotImplementedError


def bench(*extenders: Extender, names: str = "abc") -> Bench:
    return Bench(ALL, nodes=nodes(*names), extenders=extenders)


class TestFilter:
    def test_they_are_asked_in_order_each_about_what_the_one_before_left(self) -> None:
        first, second = Helper(refuse={"a": "full"}), Helper(refuse={"b": "full"})
        assert bench(first, second).schedule(POD) == ScheduleResult("c", evaluated_nodes=3, feasible_nodes=1)
        assert first.seen == [["a", "b", "c"]]
        assert second.seen == [["b", "c"]]

    def test_once_no_node_is_left_nobody_is_asked(self) -> None:
        second = Helper()
        with pytest.raises(FitError) as caught:
            bench(Helper(refuse=dict.fromkeys("abc", "full")), second).schedule(POD)
        assert str(caught.value) == "0/3 nodes are available: 3 full."
        assert second.seen == []

    def test_only_about_nodes_that_the_plugins_passed(self) -> None:
        helper = Helper()
        refusing = plugin(
            "A", filter=lambda node_info: None if node_info.name == "b" else Status.unschedulable("no")
        )
        Bench(refusing, nodes=nodes("a", "b"), extenders=[helper]).schedule(POD)
        assert helper.seen == [["b"]]

    @pytest.mark.parametrize("helper", [Helper(interested=False), Helper(filters=False)])
    def test_those_that_do_not_filter_or_are_not_interested_are_left_out(self, helper: Helper) -> None:
        bench(helper).schedule(POD)
        assert helper.seen == []

    def test_refusals_are_noted_and_unresolvable_ones_win(self) -> None:
        helper = Helper(
            refuse={"a": "full", "b": "full"}, never={"b": "no such device", "c": "no such device"}
        )
        with pytest.raises(FitError) as caught:
            bench(helper).schedule(POD)
        statuses = caught.value.diagnosis.node_to_status
        assert [(statuses.get(name).code, statuses.get(name).message) for name in "abc"] == [
            (Code.UNSCHEDULABLE, "full"),
            (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "no such device"),
            (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "no such device"),
        ]
        assert caught.value.diagnosis.unschedulable_plugins == {"Extender"}

    def test_without_refusals_no_extender_is_blamed(self) -> None:
        scheduler = bench(Helper())
        scheduler.cache.update_snapshot(scheduler.framework.handle.snapshot)
        _, diagnosis = scheduler.scheduler.find_nodes_that_fit_pod(scheduler.framework, CycleState(), POD)
        assert diagnosis.unschedulable_plugins == set()

    def test_a_failure_ends_the_attempt(self) -> None:
        error = ConnectionError("connection refused")
        with pytest.raises(SchedulingError, match=r"^ConnectionError: connection refused$") as caught:
            bench(Helper(error=error)).schedule(POD)
        assert caught.value.__cause__ is error

    def test_an_ignorable_extenders_failure_does_not_matter(self) -> None:
        second = Helper(refuse={"a": "full"})
        result = bench(Helper(error=ConnectionError(), is_ignorable=True), second, names="ab").schedule(POD)
        assert result.suggested_host == "b"
        assert second.seen == [["a", "b"]]

    def test_the_next_search_begins_after_the_nodes_that_the_plugins_passed(self) -> None:
        helper = Helper(never={"n0": "no such device"})
        scheduler = Bench(ALL, nodes=POOL, percentage=50, extenders=[helper])
        for _ in range(2):
            assert scheduler.schedule(POD).feasible_nodes in (149, 150)
        assert [len(seen) for seen in helper.seen] == [150, 150]
        assert [seen[0] for seen in helper.seen] == ["n0", "n150"]


class TestNominatedNode:
    INCOMING = make_pod("incoming").nominated_node("b").build()

    def test_extenders_must_agree_to_it(self) -> None:
        helper = Helper(refuse={"b": "full"})
        assert bench(helper, names="ab").schedule(self.INCOMING).suggested_host == "a"
        assert helper.seen == [["b"], ["a", "b"]]

    def test_a_failure_there_is_passed_over(self) -> None:
        class FailsOnce(Helper):
            def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderFilterResult:
                if not self.seen:
                    self.seen.append([])
                    raise ConnectionError
                return super().filter(pod, nodes)

        helper = FailsOnce()
        assert bench(helper, names="ab").schedule(self.INCOMING).feasible_nodes == 2
        assert helper.seen == [[], ["a", "b"]]


class TestPrioritize:
    def totals(self, *extenders: Extender, scores: Mapping[str, int] | None = None) -> list[int]:
        plugins = [] if scores is None else [plugin("A", score=lambda node_info: scores[node_info.name])]
        scheduler = Bench(*plugins, nodes=nodes("a", "b", "c"), extenders=extenders)
        scheduler.cache.update_snapshot(scheduler.framework.handle.snapshot)
        infos = scheduler.framework.handle.snapshot.node_infos
        totals = scheduler.scheduler.prioritize_nodes(scheduler.framework, CycleState(), POD, infos)
        return list(totals.values)

    def test_priorities_of_0_to_10_are_scaled_weighed_and_added_to_the_plugins_scores(self) -> None:
        helper = Helper(weight=3, rate={"a": 0, "b": 1, "c": 10}.__getitem__)
        assert self.totals(helper, scores={"a": 100, "b": 50, "c": 0}) == [100, 80, 300]

    def test_what_does_not_fit_int64_wraps_around_and_the_others_are_rated_all_the_same(self) -> None:
        most = (1 << 63) - 1
        heavy, light = (
            Helper(weight=2, rate={"a": most, "b": 2, "c": 0}.__getitem__),
            Helper(rate=lambda _: most),
        )
        # The largest int64 is -1/2 there: twice it is -2, ten times it is 2⁶³ - 10, which is -2⁶³ - 10 wrapped.
        assert self.totals(heavy, light, light, scores={"a": 100, "b": 50, "c": 0}) == [60, 70, -20]

    def test_several_are_added_up(self) -> None:
        assert self.totals(Helper(rate=lambda name: 1), Helper(rate=lambda name: 2)) == [30, 30, 30]

    def test_without_score_plugins_they_alone_decide(self) -> None:
        assert self.totals(Helper(rate={"a": 0, "b": 5, "c": 1}.__getitem__)) == [0, 50, 10]

    @pytest.mark.parametrize(
        "helper",
        [
            Helper(rate=lambda name: 10, error=ConnectionError()),
            Helper(rate=lambda name: 10, interested=False),
            Helper(),
        ],
        ids=["fails", "isn't interested", "doesn't rate"],
    )
    def test_one_that_fails_or_has_no_opinion_leaves_it_to_the_others(self, helper: Helper) -> None:
        assert self.totals(helper, Helper(rate=lambda name: 1), scores={"a": 1, "b": 2, "c": 3}) == [
            11,
            12,
            13,
        ]


class TestNumberOfNodes:
    @pytest.mark.parametrize(
        ("helper", "feasible"),
        [(Helper(), 3), (Helper(filters=False, rate=lambda name: 0), 3), (Helper(filters=False), 1)],
        ids=["filters", "rates", "does neither"],
    )
    def test_an_extender_that_filters_or_rates_is_shown_more_than_one_node(
        self, helper: Helper, feasible: int
    ) -> None:
        assert bench(helper).schedule(POD).feasible_nodes == feasible
