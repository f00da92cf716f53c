"""Metrics of one's own: those that distributions offer, those that are given, and those that plugins count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from compare.scenes import packing, pod, spreading, two_nodes
from kschedfw_lab.cli.compare_rows import sections
from kschedfw_lab.compare import (
    Comparison,
    Condition,
    ConditionError,
    FinishedRun,
    OwnMetric,
    Unit,
    compare,
    metric_values,
    own_metrics,
)
from kschedfw_lab.report.comparison import Direction, direction_of
from kschedfw_lab.sweep.measures import metrics_by_label

from kschedfw import Handle, NodeInfo, Plugin, Profile, Registry, SchedulerConfiguration, Status, hookimpl
from kschedfw.api import ExtensionError, extensions
from kschedfw.api.distributions import entry_points_of
from kschedfw.scheduler import Setup


def empty_nodes(run: FinishedRun) -> int:
    return sum(not each.pods for each in run.allocations)


EMPTY_NODES = OwnMetric(empty_nodes, higher_is_better=True)


class Offer:
    """An entry point of a distribution that isn't installed."""

    value = "mine:metric"
    dist = None

    def __init__(self, name: str, metric: object) -> None:
        self.name, self._metric = name, metric

    def load(self) -> object:
        return self._metric


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(**offered: object) -> None:
        offers = [Offer(name.replace("__", "."), metric) for name, metric in offered.items()]
        found = entry_points_of
        # Other groups keep what is installed: what is found in them is kept for the whole process.
        monkeypatch.setattr(
            extensions,
            "entry_points_of",
            lambda groups: offers if own_metrics.METRICS.group in groups else found(groups),
        )
        # A registry that looks again.
        fresh = attrs.evolve(own_metrics.METRICS)
        monkeypatch.setattr(own_metrics, "METRICS", fresh)
        monkeypatch.setattr(metric_values, "METRICS", fresh)

    return install


def compared(**more: Any) -> Comparison:
    return compare(two_nodes(pod("web")), [spreading(), packing()], **more)


def test_an_installed_metric_is_a_row_a_column_and_a_word_of_conditions(install: Install) -> None:
    install(empty_nodes=EMPTY_NODES)
    comparison = compared()
    assert [run.own for run in comparison.runs] == [{"empty_nodes": 0.0}, {"empty_nodes": 1.0}]
    (section,) = [each for each in sections(comparison) if each.title == "Own metrics"]
    assert list(section.rows) == [("empty_nodes", ("0", "1"))]
    assert comparison.runs[1].to_json()["metrics"] == {"empty_nodes": 1.0}
    assert metrics_by_label(comparison)["packing"]["empty_nodes"] == 1.0
    condition = Condition.parse("empty_nodes > baseline.empty_nodes")
    assert condition.holds(comparison, 1)
    assert condition.told(comparison, 1) == "empty_nodes is 1, baseline.empty_nodes is 0"
    assert direction_of("empty_nodes") is Direction.UP


def test_metrics_that_are_given_take_the_place_of_installed_ones(install: Install) -> None:
    install(empty_nodes=EMPTY_NODES)
    comparison = compared(metrics={"half": OwnMetric(lambda run: empty_nodes(run) / 2)})
    assert [run.own for run in comparison.runs] == [{"half": 0.0}, {"half": 0.5}]


def test_a_percentage_of_a_number_is_refused(install: Install) -> None:
    install(empty_nodes=EMPTY_NODES, idle_share=OwnMetric(empty_nodes, Unit.SHARE))
    with pytest.raises(ConditionError, match="a percentage can't be compared with a number"):
        Condition.parse("empty_nodes > 5%")
    assert Condition.parse("idle_share > 5%").holds(compared(), 1)


def test_a_misspelt_metric_is_told_the_nearest(install: Install) -> None:
    install(empty_nodes=EMPTY_NODES)
    with pytest.raises(ConditionError, match=r"there is no metric 'empty_node'; did you mean empty_nodes\?"):
        Condition.parse("empty_node > 1")


@pytest.mark.parametrize(
    ("offered", "told"),
    [
        ({"empty_nodes": empty_nodes}, "is function, expected an instance of OwnMetric"),
        ({"nan": OwnMetric(lambda _run: float("nan"))}, "expected a finite number, found nan"),
        ({"truth": OwnMetric(lambda _run: True)}, "expected a finite number, found True"),
        (
            {"plugin__mine": EMPTY_NODES},
            "expected a name such as energy_kwh, whose first part isn't one of plugin",
        ),
        ({"Energy": EMPTY_NODES}, "expected a name such as energy_kwh"),
    ],
)
def test_a_metric_that_is_none_is_told_with_its_name(
    install: Install, offered: dict[str, object], told: str
) -> None:
    install(**offered)
    with pytest.raises(ExtensionError, match=told):
        compared()


def test_a_given_metric_without_a_number_is_told_with_its_name() -> None:
    with pytest.raises(ValueError, match="metric 'infinite': expected a finite number, found inf"):
        compared(metrics={"infinite": OwnMetric(lambda _run: float("inf"))})


class Counting(Plugin):
    """Refuses the first node, and measures what it does."""

    name = "Counting"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.refused = handle.counter("refused_total", "Refused nodes.", "node")
        self.sizes = handle.histogram("sizes", "Pods on the node.")

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        self.sizes.observe(len(node_info.pods))
        if node_info.name == "n1":
            self.refused.inc(node_info.name)
            return Status.unschedulable("node(s) came first")
        return None


def test_counters_of_plugins_are_metrics_summed_over_their_labels() -> None:
    registry = Registry()
    registry.register(Counting)
    profile = Profile(["PrioritySort", "NodeResourcesFit", "Counting", "DefaultBinder"])
    comparison = compare(
        two_nodes(pod("a"), pod("b")),
        [spreading(), Setup("counting", SchedulerConfiguration(profiles=(profile,)))],
        registry=registry,
    )
    without, counted = comparison.runs
    assert without.own == {}
    assert counted.own["plugin.refused_total"] == 2.0
    assert counted.own["plugin.sizes.count"] == 4.0
    assert counted.own["plugin.sizes.mean"] == 0.75, "one on n1 both times, none and then one on n2"
    assert Condition.parse("plugin.refused_total == 2 and baseline.plugin.refused_total == 0").holds(
        comparison, 1
    )
