"""How a framework is made, and what it tells about itself."""

from __future__ import annotations

from random import Random

import pytest

from kschedfw import (
    CycleState,
    Framework,
    Handle,
    InMemoryCluster,
    Parallelizer,
    Parts,
    Plugin,
    PodInfo,
    Profile,
    Registry,
    Snapshot,
    hookimpl,
)
from kschedfw.framework.clock import SystemClock
from kschedfw.framework.errors import PluginError, PluginLoadError, PluginNotFoundError, ProfileError
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.testing import FakeClock
from tests.framework.support import answering, make_framework, node_info, plugin, pod


class Watcher(Plugin):
    """Remembers what it was made with."""

    name = "Watcher"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.framework_when_made: object = None
        try:
            self.framework_when_made = handle.framework
        except RuntimeError as error:
            self.framework_when_made = str(error)


class TestHandle:
    def test_a_plugin_gets_all_it_may_depend_on(self) -> None:
        registry = Registry(entry_points=False)
        registry.register(Watcher)
        cluster, snapshot, clock, random, parallelizer = (
            InMemoryCluster(),
            Snapshot(),
            FakeClock(),
            Random(7),
            Parallelizer(1),
        )
        framework = Framework(
            registry,
            Profile(["Watcher"], scheduler_name="gpu"),
            Parts(cluster, snapshot=snapshot, clock=clock, random=random, parallelizer=parallelizer),
        )
        handle = framework.plugins["Watcher"].handle
        assert handle is framework.handle
        assert handle.profile_name == "gpu"
        assert handle.cluster is cluster
        assert handle.snapshot is snapshot
        assert handle.clock is clock
        assert handle.random is random
        assert handle.parallelizer is parallelizer
        assert handle.waiting_pods is framework.waiting_pods
        assert handle.framework is framework

    def test_what_is_left_out_is_made(self) -> None:
        framework = Framework(Registry(entry_points=False), Profile(), Parts(InMemoryCluster()))
        assert len(framework.handle.snapshot) == 0
        assert framework.handle.nominator.nominated_pods_for_node("n") == ()
        assert isinstance(framework.handle.clock, SystemClock)
        assert framework.handle.parallelizer.parallelism == 16
        again = Framework(Registry(entry_points=False), Profile(), Parts(InMemoryCluster()))
        assert framework.handle.random.random() == again.handle.random.random(), "it doesn't depend on chance"

    def test_the_framework_can_not_be_used_while_it_is_made(self) -> None:
        watcher = make_framework(Watcher).plugins["Watcher"]
        assert isinstance(watcher, Watcher)
        assert watcher.framework_when_made == (
            "handle.framework can't be used in a plugin's __init__: the framework isn't made yet"
        )


class TestMaking:
    def test_a_plugin_at_several_points_is_made_once(self) -> None:
        made: list[object] = []

        class Rack(Plugin):
            name = "Rack"

            def __init__(self, args: None, handle: Handle) -> None:
                super().__init__(args, handle)
                made.append(self)

            @hookimpl
            def filter(self) -> None: ...

            @hookimpl
            def reserve(self) -> None: ...

        framework = make_framework(Rack, profile=Profile(["Rack"], points={"filter": ["Rack"]}))  # type: ignore[dict-item]
        assert made == [framework.plugins["Rack"]]
        assert repr(made[0]) == "<plugin Rack>"

    def test_each_framework_makes_its_own(self) -> None:
        rack = plugin("Rack")
        assert make_framework(rack).plugins["Rack"] is not make_framework(rack).plugins["Rack"]

    def test_a_constructor_that_fails_is_an_error_that_names_the_plugin(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            def __init__(self, args: None, handle: Handle) -> None:
                raise OSError("no inventory")

        with pytest.raises(PluginLoadError) as caught:
            make_framework(Rack)
        assert str(caught.value) == "plugin 'Rack': making it failed: OSError: no inventory"
        assert isinstance(caught.value.__cause__, OSError)

    def test_a_plugins_own_error_comes_through(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            def __init__(self, args: None, handle: Handle) -> None:
                raise PluginError("Rack", "needs the cluster's inventory")

        with pytest.raises(PluginError) as caught:
            make_framework(Rack)
        assert str(caught.value) == "plugin 'Rack': needs the cluster's inventory"

    def test_a_plugin_that_is_not_there_is_an_error(self) -> None:
        with pytest.raises(PluginNotFoundError, match="plugin 'Rack': no installed distribution offers it"):
            make_framework(profile=Profile(["Rack"]))

    def test_a_plugin_promises_nothing_that_it_does_not_declare(self) -> None:
        rack = make_framework(plugin("Rack")).plugins["Rack"]
        assert rack.reads is None
        assert rack.sign(pod()) is None


class TestQueueSort:
    def queued(self, name: str, timestamp: float) -> QueuedPodInfo:
        return QueuedPodInfo(PodInfo.of(pod(name)), timestamp)

    def test_the_plugin_decides_which_pod_comes_first(self) -> None:
        framework = make_framework(
            plugin("Fifo", queue_sort=lambda first, second: first.timestamp < second.timestamp)
        )
        early, late = self.queued("early", 1), self.queued("late", 2)
        assert framework.less(early, late)
        assert not framework.less(late, early)
        assert not framework.less(early, early)

    def test_without_one_pods_can_not_be_compared(self) -> None:
        with pytest.raises(ProfileError) as caught:
            make_framework().less(self.queued("a", 0), self.queued("b", 0))
        assert (
            str(caught.value) == "profile 'default-scheduler': a queue sort plugin is needed, none is enabled"
        )


class TestEvents:
    EVENT = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)

    def test_each_plugin_names_its_own(self) -> None:
        framework = make_framework(plugin("A", events_to_register=lambda: [self.EVENT]), plugin("B"))
        assert framework.events_to_register() == {"A": (self.EVENT,)}

    def test_they_belong_to_the_plugin_whatever_points_it_is_enabled_at(self) -> None:
        rack = plugin("A", events_to_register=lambda: [self.EVENT], filter=answering(None))
        framework = make_framework(rack, profile=Profile(points={"filter": ["A"]}))  # type: ignore[dict-item]
        assert framework.events_to_register() == {"A": (self.EVENT,)}

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            (ValueError("no list"), "events_to_register failed: ValueError: no list"),
            (42, "events_to_register must return ClusterEvents, not 42"),
        ],
    )
    def test_a_failure_names_the_plugin(self, answer: object, why: str) -> None:
        with pytest.raises(PluginError, match=f"^plugin 'A': {why}$"):
            make_framework(plugin("A", events_to_register=answering(answer))).events_to_register()

    def test_an_event_that_never_happens_is_refused(self) -> None:
        never = ClusterEvent(EventResource.NODE, ActionType.UPDATE_POD_LABEL)
        actions = (
            r"ADD, DELETE, UPDATE_NODE_ALLOCATABLE, UPDATE_NODE_LABEL, UPDATE_NODE_TAINT, UPDATE_NODE_CONDITION, "
            r"UPDATE_NODE_ANNOTATION, UPDATE_NODE_DECLARED_FEATURE"
        )
        why = rf"names NodeUpdatePodLabel, which never happens; actions of NODE are {actions}$"
        with pytest.raises(PluginError, match=why):
            make_framework(plugin("A", events_to_register=lambda: [never])).events_to_register()

    def test_updates_are_actions_too(self) -> None:
        assert ActionType.UPDATE_NODE_TAINT in ActionType.UPDATE
        assert ActionType.ADD not in ActionType.UPDATE
        assert ActionType.ADD in ActionType.ALL


def test_closing_ends_the_threads() -> None:
    framework = make_framework(plugin("A", score=answering(1)), parallelism=4)
    framework.run_score_plugins(CycleState(), pod(), [node_info(str(index)) for index in range(50)])
    assert framework.handle.parallelizer._pool is not None
    framework.close()
    assert framework.handle.parallelizer._pool is None
