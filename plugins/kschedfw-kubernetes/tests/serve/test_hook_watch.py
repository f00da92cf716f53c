"""A hook that doesn't return in time is told with its plugin and stack; if asked to, its attempt fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.serve.hook_watch import HookWatch
from serve.replicas import Replica, add_nodes, add_pod, configuration

from kschedfw import (
    ActionType,
    ClusterEvent,
    ConfigurationError,
    CycleState,
    EventResource,
    FitError,
    InMemoryCluster,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    Profile,
    QueueingHint,
    Registry,
    Scheduler,
    SchedulingError,
    Status,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.config import load_configuration
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.waiting import PATIENCE

POINTS = ("PrioritySort", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder", "Slow")


class Slow(Plugin):
    """Takes some seconds in some hooks."""

    name = "Slow"
    in_hook: Callable[[str], None]

    @hookimpl
    def filter(self) -> None:
        type(self).in_hook("filter")

    @hookimpl
    def score(self) -> int:
        type(self).in_hook("score")
        return 1

    @hookimpl
    def pre_bind(self) -> None:
        type(self).in_hook("pre_bind")

    @hookimpl
    def post_bind(self) -> None:
        type(self).in_hook("post_bind")


def scheduler(
    clock: FakeClock, in_hook: Callable[[str], None], *, fail: bool = False
) -> tuple[Scheduler, HookWatch]:
    watch = HookWatch(clock, 2.0, fail=fail)
    registry = Registry(guard=watch.guard)
    plugin = type("Slow", (Slow,), {"in_hook": staticmethod(in_hook)})
    registry.register(plugin)
    cluster = InMemoryCluster([make_node("a").capacity(cpu=4).build(), make_pod("web").build()])
    made = Scheduler(cluster, [Profile(POINTS)], registry=registry, clock=clock, random=Random(1))
    return made, watch


def takes(clock: FakeClock, **seconds: float) -> Callable[[str], None]:
    return lambda hook: clock.advance(seconds.get(hook, 0.0))


def web(made: Scheduler) -> Pod:
    found = made.cluster.get(Pod, "default/web")
    assert found is not None
    return found


def test_a_hook_that_took_too_long_is_told_and_one_that_did_not_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    made, _ = scheduler(clock, takes(clock, filter=2.0, score=2.5, pre_bind=600, post_bind=3))
    made.run_until_idle()
    assert web(made).node_name == "a"
    assert [record.getMessage() for record in caplog.records] == [
        "plugin Slow: post_bind returned after 3s, longer than hookTimeout (2s)"
    ]  # with one feasible node nothing is scored
    made.close()


@pytest.mark.parametrize("fail", [False, True])
def test_hint_that_took_too_long_is_told_and_still_counts(
    fail: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()

    class Hesitant(Plugin):
        name = "Slow"

        @hookimpl
        def filter(self) -> Status | None:
            return None if cluster.get(Node, "b") else Status.unschedulable("no b")

        @hookimpl
        def events_to_register(self) -> Sequence[ClusterEvent]:
            return [ClusterEvent(EventResource.NODE, ActionType.ADD, hint=self.hint, pre_hint=self.pre_hint)]

        def pre_hint(self, old: object, new: object) -> bool:
            clock.advance(4)
            return True

        def hint(self, pod: Pod, old: object, new: object) -> QueueingHint:
            clock.advance(3)
            return QueueingHint.QUEUE

    watch = HookWatch(clock, 2.0, fail=fail)
    registry = Registry(guard=watch.guard)
    registry.register(Hesitant)
    cluster = InMemoryCluster([make_node("a").capacity(cpu=4).build(), make_pod("web").build()])
    made = Scheduler(cluster, [Profile(POINTS)], registry=registry, clock=clock, random=Random(1))
    made.run_until_idle()
    assert not web(made).node_name
    cluster.add(make_node("b").capacity(cpu=4).build())
    made.run_until_idle()
    assert web(made).node_name
    assert [record.getMessage() for record in caplog.records] == [
        "plugin Slow: pre_hint returned after 4s, longer than hookTimeout (2s)",
        "plugin Slow: hint returned after 3s, longer than hookTimeout (2s)",
    ]
    made.close()


def test_a_hook_that_blocks_is_told_once_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    is_in, may = threading.Event(), threading.Event()

    def wait_for_a_server(hook: str) -> None:
        if hook == "filter":
            is_in.set()
            assert may.wait(PATIENCE)

    made, watch = scheduler(clock, wait_for_a_server)
    working = threading.Thread(target=made.run_until_idle)
    working.start()
    assert is_in.wait(PATIENCE)
    watch.check()
    assert caplog.records == []
    clock.advance(3)
    watch.check()
    watch.check()
    (told,) = (record.getMessage() for record in caplog.records)
    first, *stack = told.splitlines()
    assert first == "plugin Slow: filter hasn't returned for 3s, longer than hookTimeout (2s); it is at"
    assert any("in wait_for_a_server" in line for line in stack)
    assert not any("run_until_idle" in line for line in stack)  # what called the hook says nothing
    may.set()
    working.join()
    assert caplog.records[1].getMessage() == (
        "plugin Slow: filter returned after 3s, longer than hookTimeout (2s)"
    )
    assert web(made).node_name == "a"
    watch.check()
    assert len(caplog.records) == 2
    made.close()


def test_the_innermost_hook_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Preemption is a hook, too, in which filters are called."""
    clock = FakeClock()
    seen: list[list[str]] = []

    def look(hook: str) -> None:
        if hook == "filter":
            clock.advance(3)
            watch.check()
            seen.append([record.getMessage().split(" ")[2] for record in caplog.records])

    made, watch = scheduler(clock, look)
    made.cluster.add(make_pod("low").requests(cpu=4).node("a").build())
    made.cluster.add(make_pod("high").priority(10).requests(cpu=4).build())
    made.cluster.delete(web(made))
    caplog.clear()
    made.run_until_idle()
    assert seen[-1][-1] == "filter"
    made.close()


def test_an_attempt_fails_if_asked_to_and_no_effect_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    made, _ = scheduler(clock, takes(clock, filter=2.5), fail=True)
    with pytest.raises(SchedulingError, match=r"filter took 2\.5s, longer than hookTimeout \(2s\)") as failed:
        made.place(web(made))
    assert failed.value.status.plugin == "Slow"
    assert not isinstance(failed.value, FitError)
    made.close()
    made, _ = scheduler(clock, takes(clock, post_bind=2.5), fail=True)
    made.place(web(made)).commit()
    assert web(made).node_name == "a"
    assert caplog.records[-1].levelno == logging.WARNING
    made.close()


class Whole(Plugin):
    """Takes all arguments, so that nothing needs to stand between."""

    name = "Whole"

    @hookimpl
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> None: ...


def test_hooks_are_called_as_they_are_without_a_guard() -> None:
    for watch in (None, HookWatch(FakeClock(), 2.0)):
        registry = Registry(guard=None if watch is None else watch.guard)
        registry.register(Whole)
        made = Scheduler(InMemoryCluster(), [Profile(["PrioritySort", "Whole"])], registry=registry)
        framework = made.frameworks["default-scheduler"]
        plugin = framework.plugins["Whole"]
        assert isinstance(plugin, Whole)
        assert (framework.hooks_of("Whole")["filter"] == plugin.filter) is (watch is None)
        made.close()


def test_the_configuration_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    start = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(start + "hookTimeout: 1m30s\nfailOnHookTimeout: true\n")
    loaded = load_configuration(file)
    assert (loaded.hook_timeout, loaded.fail_on_hook_timeout) == (90.0, True)
    assert loaded.warnings == tuple(
        f"{name}: kschedfw run has it; kube-scheduler refuses a file with it"
        for name in ("hookTimeout", "failOnHookTimeout")
    )
    file.write_text(start + "failOnHookTimeout: true\n")
    with pytest.raises(
        ConfigurationError, match="failOnHookTimeout: Invalid value: true: needs a hookTimeout"
    ):
        load_configuration(file)
    file.write_text(start + "hookTimeout: -1s\n")
    with pytest.raises(ConfigurationError, match=r"hookTimeout: Invalid value: .*must not be negative"):
        load_configuration(file)


PLUGIN = """
import threading
from kschedfw import Plugin, hookimpl

class Blocks(Plugin):
    name = "Blocks"

    @hookimpl
    def filter(self):
        threading.Event().wait(2)
"""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as served:
        add_nodes(served)
        yield served


@pytest.mark.slow
def test_run_tells_of_a_hook_while_it_blocks(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    info = site / "blocks-1.dist-info"
    info.mkdir(parents=True)
    (site / "blocks.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blocks\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[kschedfw]\nBlocks = blocks:Blocks\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    profile = {"plugins": {"filter": {"enabled": [{"name": "Blocks"}]}}}
    config = configuration(
        server, tmp_path, "one", profiles=[profile], hookTimeout="100ms", failOnHookTimeout=True
    )
    with Replica(server, tmp_path, "one", f"--config={config}", anew=True) as replica:
        replica.wait_until_ready()
        add_pod(server, "a")
        replica.wait_for(lambda: "returned after 2" in replica.log)
        replica.wait_for(lambda: "filter took 2" in replica.log)
    assert "plugin Blocks: filter hasn't returned for " in replica.log
    assert "threading.Event().wait(2)" in replica.log
