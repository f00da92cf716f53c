"""An attempt that takes 100 ms or more is told with its steps; others aren't."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from random import Random

import pytest
from kschedfw_kubernetes.serve.slow_attempts import TracingMetrics

from kschedfw import InMemoryCluster, Plugin, Profile, Registry, Scheduler, hookimpl, make_node, make_pod
from kschedfw.framework.profile import EnabledPlugin
from kschedfw.scheduler.structured import Structured
from kschedfw.testing.clock import FakeClock


def told(caplog: pytest.LogCaptureFixture) -> Sequence[dict[str, object]]:
    return [record.msg.values for record in caplog.records if isinstance(record.msg, Structured)]


def scheduler(clock: FakeClock, *, filter_takes: float = 0.0, score_takes: float = 0.0) -> Scheduler:
    class Slow(Plugin):
        name = "Slow"

        @hookimpl
        def filter(self) -> None:
            clock.advance(filter_takes)

        @hookimpl
        def score(self) -> int:
            clock.advance(score_takes)
            return 1

    registry = Registry()
    registry.register(Slow)
    profile = Profile([*map(EnabledPlugin, ("PrioritySort", "DefaultBinder", "NodeName", "Slow"))])
    metrics = TracingMetrics(clock)
    cluster = InMemoryCluster([make_node("a").build(), make_node("b").build()])
    made = Scheduler(cluster, [profile], registry=registry, clock=clock, random=Random(1), metrics=metrics)
    made.algorithm = metrics.following(made.algorithm)
    return made


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kschedfw_kubernetes.serve.slow_attempts")


def test_the_steps_are_what_took_long(caplog: pytest.LogCaptureFixture) -> None:
    slow = scheduler(FakeClock(), filter_takes=0.06, score_takes=0.02)
    slow.cluster.add(make_pod("web").build())
    slow.run_until_idle()
    slow.close()
    (trace,) = told(caplog)
    assert trace == {"pod": "default/web", "total": "160ms", "steps": "Filter 120ms, Score 40ms"}


def test_a_pod_that_fits_nowhere_is_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    slow = scheduler(FakeClock(), filter_takes=0.1)
    slow.cluster.add(make_pod("web").node_selector({}).build())
    pod = make_pod("lost").build()
    slow.cluster.add(pod)
    slow.run_until_idle()
    slow.close()
    assert {trace["pod"] for trace in told(caplog)} == {"default/web", "default/lost"}


def test_others_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    quick = scheduler(FakeClock(), filter_takes=0.01)
    quick.cluster.add(make_pod("web").build())
    quick.run_until_idle()
    quick.close()
    assert told(caplog) == []


def test_metrics_are_counted_all_the_same() -> None:
    clock = FakeClock()
    made = scheduler(clock, filter_takes=0.2)
    metrics = made.parts.metrics
    made.cluster.add(make_pod("web").build())
    made.run_until_idle()
    made.close()
    assert isinstance(metrics, TracingMetrics)
    assert b'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0' in (
        metrics.exposition()
    )
