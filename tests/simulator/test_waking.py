"""Virtual time: when it begins, what takes some of it, and plugins that have pods tried again at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import default_profile
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.plugin import AnyPlugin, Plugin, hookimpl
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.simulator import Arrivals, Decision, Outcome, Report, Simulation
from kschedfw.simulator.ledger import FRUITLESS_ATTEMPTS, UNMOVED_ATTEMPTS
from kschedfw.testing import FakeClock
from tests.simulator.objects import node, pod

EIGHT = datetime(2026, 3, 2, 8, tzinfo=UTC)
HOUR, DAY = 3600.0, 86_400.0


class OfficeHours(Plugin):
    """Lets pods in between 9 and 17 o'clock (UTC)."""

    name = "OfficeHours"

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        now = self.handle.clock.now()
        midnight = now - now % DAY
        if 9 * HOUR <= now - midnight < 17 * HOUR:
            return None
        opens = midnight + 9 * HOUR
        return Status.unresolvable("outside of office hours", retry_at=opens if now < opens else opens + DAY)

    @hookimpl
    def events_to_register(self) -> list[ClusterEvent]:
        return []


class Gate(OfficeHours):
    """The same at the door of the queue."""

    name = "Gate"

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self.pre_filter(pod)


class Caller(Plugin):
    """Refuses every pod once, and calls it again a minute later."""

    name = "Caller"
    seen: set[str]

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        self.seen = getattr(self, "seen", set())
        if pod.uid in self.seen:
            return None
        self.seen.add(pod.uid)
        self.handle.activate_at(self.handle.clock.now() + 60.0, [pod])
        return Status.unresolvable("not yet")

    @hookimpl
    def events_to_register(self) -> list[ClusterEvent]:
        return []


def poll(seconds: float, *, at_the_door: bool) -> type[AnyPlugin]:
    """A plugin that never lets a pod in, and wants to be asked again and again."""

    class Never(Plugin):
        name = "Never"

        def _answer(self) -> Status:
            return Status.unresolvable("never", retry_at=self.handle.clock.now() + seconds)

        @hookimpl
        def pre_enqueue(self) -> Status | None:
            return self._answer() if at_the_door else None

        @hookimpl
        def pre_filter(self) -> Status:
            return self._answer()

        @hookimpl
        def events_to_register(self) -> list[ClusterEvent]:
            return []

    return Never


def with_plugin(plugin: type[AnyPlugin]) -> tuple[Registry, Profile]:
    registry = Registry()
    registry.register(plugin)
    return registry, Profile([*default_profile().multi_point, plugin.name])


def simulate(plugin: type[AnyPlugin], *objects: Node | Pod, **options: Any) -> Report:
    registry, profile = with_plugin(plugin)
    return Simulation(
        InMemoryCluster(objects), registry=registry, profiles=[profile], parallelism=1, **options
    ).run()


def made(name: str, created: datetime | None, cpu: str = "1") -> Pod:
    return pod(name, meta={"creation_timestamp": created}, cpu=cpu)


def by_name(report: Report) -> Mapping[str, Decision]:
    return {decision.pod.removeprefix("default/"): decision for decision in report.decisions}


HERE = node("n1", cpu="4", pods="9")


class TestStart:
    def test_is_when_the_first_pod_was_made(self) -> None:
        report = simulate(OfficeHours, HERE, made("a", EIGHT), made("b", EIGHT + timedelta(hours=3)))
        assert report.start == EIGHT.timestamp()
        assert report.to_json()["startTime"] == "2026-03-02T08:00:00+00:00"
        assert by_name(report)["a"].bound == HOUR

    def test_or_else_when_the_first_other_object_was_made(self) -> None:
        old = attrs.evolve(HERE, metadata=attrs.evolve(HERE.metadata, creation_timestamp=EIGHT))
        assert simulate(OfficeHours, old, made("a", None)).start == EIGHT.timestamp()

    def test_or_else_the_epoch(self) -> None:
        report = simulate(OfficeHours, HERE, made("a", None))
        assert (report.start, by_name(report)["a"].bound) == (0.0, 9 * HOUR)

    def test_or_as_given(self) -> None:
        report = simulate(OfficeHours, HERE, made("a", EIGHT), start_time=EIGHT + timedelta(hours=10))
        assert by_name(report)["a"].bound == 15 * HOUR

    def test_a_given_one_moves_a_replay_as_a_whole(self) -> None:
        pods = made("a", EIGHT), made("b", EIGHT + timedelta(seconds=90))
        noon = EIGHT + timedelta(hours=4)
        report = simulate(OfficeHours, HERE, *pods, arrivals=Arrivals(), start_time=noon)
        assert [(each.arrived, each.bound) for each in report.decisions] == [(0.0, 0.0), (90.0, 90.0)]

    def test_a_replay_has_the_pods_own_times(self) -> None:
        pods = made("a", EIGHT), made("b", EIGHT + timedelta(minutes=90))
        found = by_name(simulate(OfficeHours, HERE, *pods, arrivals=Arrivals()))
        assert (found["a"].bound, found["b"].bound) == (HOUR, 1.5 * HOUR)

    def test_needs_a_time_zone(self) -> None:
        with pytest.raises(
            ValueError, match="start_time: expected a time with a time zone, found 2026-03-02"
        ):
            simulate(OfficeHours, HERE, start_time=EIGHT.replace(tzinfo=None))


class TestTimesThatPluginsName:
    @pytest.mark.parametrize(("plugin", "attempts"), [(OfficeHours, 2), (Gate, 1), (Caller, 2)])
    def test_a_pod_is_tried_again_then(self, plugin: type[AnyPlugin], attempts: int) -> None:
        decision = by_name(simulate(plugin, HERE, made("a", EIGHT)))["a"]
        assert (decision.outcome, decision.attempts) == (Outcome.PLACED, attempts)
        assert decision.bound == (60.0 if plugin is Caller else HOUR)

    def test_others_that_fit_nowhere_do_not_end_it_before(self) -> None:
        """`big` fails as often as it makes sense to try it, and `a` still has its time."""

        class Failing(OfficeHours):
            name = "Failing"

            @hookimpl
            def pre_filter(self, pod: Pod) -> Status | None:
                return Status.from_error("broken") if pod.name == "broken" else super().pre_filter(pod)

        found = by_name(simulate(Failing, HERE, made("a", EIGHT), made("broken", EIGHT)))
        assert found["a"].bound == HOUR
        assert found["broken"].outcome is Outcome.FAILED

    @pytest.mark.parametrize("at_the_door", [False, True])
    def test_who_never_gives_in_does_not_hold_it_up(self, at_the_door: bool) -> None:
        report = simulate(poll(HOUR, at_the_door=at_the_door), HERE, made("a", EIGHT))
        found = by_name(report)["a"]
        assert found.outcome is (Outcome.GATED if at_the_door else Outcome.UNSCHEDULABLE)
        assert report.attempts == (0 if at_the_door else FRUITLESS_ATTEMPTS)

    def test_a_pod_that_leaves_takes_its_time_along(self) -> None:
        """It is deleted while it waits, and then nobody waits for its time."""
        cluster = InMemoryCluster([HERE, made("a", EIGHT)])
        registry, profile = with_plugin(OfficeHours)
        simulation = Simulation(cluster, registry=registry, profiles=[profile], parallelism=1)
        simulation.scheduler.run_until_idle()
        present = cluster.get(Pod, "default/a")
        assert present is not None
        assert simulation.scheduler.queue.next_deadline() == (EIGHT + timedelta(hours=1)).timestamp()
        cluster.delete(present)
        assert simulation.scheduler.queue.next_deadline() is None

    @pytest.mark.parametrize("plugin", [OfficeHours, Gate, Caller])
    def test_scheduler_binds_a_pod_at_the_time_that_its_plugin_asked_for(
        self, plugin: type[AnyPlugin]
    ) -> None:
        clock = FakeClock(EIGHT.timestamp())
        cluster = InMemoryCluster([HERE])
        registry, profile = with_plugin(plugin)
        scheduler = Scheduler(
            cluster, [profile], registry=registry, clock=clock, unschedulable_timeout=math.inf
        )
        cluster.add(made("a", EIGHT))
        wait = 60.0 if plugin is Caller else HOUR
        for seconds, bound in ((0.0, ""), (wait - 1.0, ""), (1.0, "n1")):
            clock.advance(seconds)
            scheduler.run_until_idle()
            present = cluster.get(Pod, "default/a")
            assert present is not None
            assert present.node_name == bound
        scheduler.close()


class TestAttemptTime:
    def test_each_attempt_takes_that_long(self) -> None:
        found = by_name(simulate(Caller, HERE, made("a", EIGHT), made("b", EIGHT), attempt_time=2.0))
        assert (found["a"].bound, found["b"].bound) == (62.0, 64.0)

    def test_none_by_default(self) -> None:
        found = by_name(simulate(Caller, HERE, made("a", EIGHT), made("b", EIGHT)))
        assert found["a"].bound == found["b"].bound == 60.0

    def test_pods_come_back_from_backoff_before_others_have_had_their_turn(self) -> None:
        """`flaky` fails at first. At the full second after its backoff it goes before those that haven't had a turn."""

        class Flaky(Plugin):
            name = "Flaky"
            tried = False

            @hookimpl
            def reserve(self, pod: Pod) -> Status | None:
                if pod.name != "flaky" or self.tried:
                    return None
                self.tried = True
                return Status.from_error("once")

        pods = [pod("flaky", {"priority": 1}, cpu="1m"), *(made(f"p{i}", None, cpu="1m") for i in range(8))]
        room = node("n1", cpu="4", pods="99")
        for seconds, place in ((0.0, 8), (0.5, 3)):
            report = simulate(Flaky, room, *pods, attempt_time=seconds)
            assert [each.pod for each in report.decisions].index("default/flaky") == place

    def test_pods_arrive_meanwhile(self) -> None:
        pods = made("a", EIGHT), made("b", EIGHT), made("c", EIGHT + timedelta(seconds=3))
        found = by_name(simulate(Caller, HERE, *pods, arrivals=Arrivals(), attempt_time=2.0))
        assert found["c"].bound == 66.0

    @pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
    def test_is_at_most_an_hour(self, seconds: float) -> None:
        with pytest.raises(ValueError, match="attempt_time: expected seconds from 0 to 3600, found"):
            simulate(Caller, HERE, attempt_time=seconds)


class Polls(Plugin):
    """Asks for another attempt in a minute, and another."""

    name = "Polls"

    @hookimpl
    def pre_filter(self) -> Status | None:
        return Status.unresolvable("not yet", retry_at=self.handle.clock.now() + 60)


class PollsAtTheGate(Plugin):
    name = "PollsAtTheGate"

    @hookimpl
    def pre_enqueue(self) -> Status | None:
        return Status.unresolvable("not yet", retry_at=self.handle.clock.now() + 60)


class Refuses(Plugin):
    name = "Refuses"

    @hookimpl
    def pre_filter(self) -> Status | None:
        return Status.unresolvable("never")


def notes_on(plugin: type[AnyPlugin], *pods: Pod) -> Report:
    registry = Registry()
    registry.register(plugin)
    profile = Profile([*default_profile().multi_point, plugin.name])
    cluster = InMemoryCluster([node("n", cpu="4", pods="10"), *pods])
    return Simulation(cluster, profiles=[profile], registry=registry, notes=["given"]).run()


@pytest.mark.parametrize("plugin", [Polls, PollsAtTheGate])
def test_the_report_says_which_pods_would_have_been_tried_again(plugin: type[AnyPlugin]) -> None:
    given, note = notes_on(plugin, pod("a"), pod("b")).notes
    assert given == "given"
    assert note.startswith("2 pods (default/a, default/b) still waited for a time, or for another attempt")
    assert f"more than {FRUITLESS_ATTEMPTS} times" in note


def test_nothing_is_said_of_pods_that_wait_for_no_time() -> None:
    assert notes_on(Refuses, pod("a")).notes == ("given",)


class RaisesInItsWindow(Plugin):
    """Each pod has an hour of its own, and there is a bug behind it."""

    name = "RaisesInItsWindow"

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        opens, now = float(pod.annotations["opens"]), self.handle.clock.now()
        if opens <= now < opens + HOUR:
            return None
        return Status.unresolvable("outside of its window", retry_at=opens if now < opens else opens + DAY)

    @hookimpl
    def filter(self) -> Status | None:
        raise ValueError("a bug")


def test_an_error_before_the_last_refusal_is_not_forgotten() -> None:
    windows = {"a": HOUR, "b": 10 * HOUR}
    pods = [
        each.with_metadata(attrs.evolve(each.metadata, annotations=FrozenDict({"opens": str(opens)})))
        for each, opens in ((pod(name), opens) for name, opens in windows.items())
    ]
    report = notes_on(RaisesInItsWindow, *pods)
    assert [decision.outcome for decision in report.decisions] == [Outcome.UNSCHEDULABLE, Outcome.FAILED]
    assert (
        '1 pod (default/a) failed in an earlier attempt than the last one: running "RaisesInItsWindow" filter plugin: '
        "ValueError: a bug"
    ) in report.notes


class Restless(Plugin):
    """Fails in every attempt, and relabels the node each time."""

    name = "Restless"

    @hookimpl
    def pre_filter(self) -> None:
        (found,) = self.handle.cluster.list(Node)
        labels = FrozenDict({"times": str(int(found.labels.get("times", "0")) + 1)})
        self.handle.cluster.update(found.with_metadata(attrs.evolve(found.metadata, labels=labels)))
        raise RuntimeError("no luck")


def test_a_pod_whose_failed_attempts_change_the_cluster_each_time_is_given_up_at_last() -> None:
    registry = Registry()
    registry.register(Restless)
    cluster = InMemoryCluster([node("n", cpu="4", pods="10"), pod("a", cpu="1")])
    profile = Profile(("PrioritySort", "Restless", "DefaultBinder"))
    report = Simulation(cluster, profiles=[profile], registry=registry).run()
    assert [(each.outcome, each.attempts) for each in report.decisions] == [
        (Outcome.FAILED, UNMOVED_ATTEMPTS)
    ]
