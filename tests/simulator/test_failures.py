"""Each distinct failure of a plugin is told once, with how often it happened."""

from __future__ import annotations

import logging

import pytest

from kschedfw import EnabledPlugin, InMemoryCluster, NodeInfo, Plugin, Pod, Profile, Registry, hookimpl
from kschedfw.simulator import Failures, Simulation
from tests.simulator.objects import node, pod

LOG = logging.getLogger("kschedfw.test")


class Broken(Plugin):
    """Fails in one way for pods whose names begin with a, and in another for the others."""

    name = "Broken"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> None:
        if pod.name.startswith("a"):
            raise ValueError(f"no luck with {pod.name}")
        raise KeyError(node_info.name)


def simulation() -> Simulation:
    registry = Registry()
    registry.register(Broken)
    profile = Profile([EnabledPlugin(name) for name in ("PrioritySort", "Broken", "DefaultBinder")])
    cluster = InMemoryCluster([node("n1", cpu="4", pods="9"), pod("a1"), pod("a2"), pod("b")])
    return Simulation(cluster, profiles=[profile], registry=registry)


class TestInASimulation:
    def test_each_is_logged_once_with_a_count(self, caplog: pytest.LogCaptureFixture) -> None:
        simulated = simulation()
        report = simulated.run()
        assert report.failed == 3
        assert report.attempts == 15
        assert [record.getMessage()[:49] for record in caplog.records] == [
            "failed 10 times, first: scheduling default/a1 fai",
            "failed 5 times, first: scheduling default/b faile",
        ]
        assert "ValueError: no luck with a1" in caplog.text
        assert "in filter" in caplog.text, "with the traceback"
        assert isinstance(simulated.cluster, InMemoryCluster)
        assert len(simulated.cluster.events) >= 3, "every pod has its event"

    def test_or_collected_by_whom_it_is_asked_for(self, caplog: pytest.LogCaptureFixture) -> None:
        with Failures() as failures:
            simulation().run()
        assert failures.count == 15
        assert not caplog.records

    def test_a_handler_of_ones_own_gets_no_line_for_each_attempt(self) -> None:
        class Kept(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                messages.append(record.getMessage())

        messages: list[str] = []
        logger, handler = logging.getLogger("kschedfw"), Kept()
        logger.addHandler(handler)
        try:
            simulation().run()
            LOG.warning("and back again")
        finally:
            logger.removeHandler(handler)
        assert len(messages) == 3
        assert messages[-1] == "and back again"


class TestFailures:
    def test_what_says_the_same_of_several_pods_is_one_failure(self) -> None:
        with Failures() as failures:
            for pod in ("a", "b"):
                LOG.error("scheduling %s failed: %s", pod, "filter must return None or a Status, not 7")
            LOG.error("scheduling %s failed: %s", "c", "another")
        assert failures.count == 3
        assert list(failures.lines()) == [
            "failed 2 times, first: scheduling a failed: filter must return None or a Status, not 7",
            "",
            "failed once: scheduling c failed: another",
            "",
        ]

    def test_it_is_the_first_exception_of_a_chain_that_is_shown(self) -> None:
        with Failures() as failures:
            try:
                try:
                    raise KeyError("rack")
                except KeyError as error:
                    raise RuntimeError("what the framework made of it") from error
            except RuntimeError:
                LOG.exception("it failed")
        text = "\n".join(failures.lines())
        assert "KeyError: 'rack'" in text
        assert "RuntimeError" not in text

    def test_there_is_an_end_to_it(self) -> None:
        with Failures() as failures:
            for number in range(1000):
                LOG.error("scheduling %s failed: %s", "a", number)
        lines = list(failures.lines())
        assert len(lines) < 250
        assert lines[-1] == "and 900 other failures"

    def test_warnings_are_no_failures_and_go_where_they_go(self, caplog: pytest.LogCaptureFixture) -> None:
        with Failures() as failures:
            LOG.warning("mind the gap")
        assert failures.count == 0
        assert caplog.messages == ["mind the gap"]

    def test_within_another_the_inner_one_collects(self) -> None:
        with Failures() as outer:
            with Failures() as inner:
                LOG.error("inside")
            LOG.error("outside")
        assert (outer.count, inner.count) == (1, 1)
        assert list(outer.lines()) == ["failed once: outside", ""]
