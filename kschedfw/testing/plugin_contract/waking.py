"""Checks that queueing hints wake the pods that filters would let pass."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import ClassVar

from kschedfw.api import CustomKind, CustomObject, CustomResource, Named
from kschedfw.framework.events import EVENT_RESOURCES, ClusterEvent, EventResource, QueueingHint
from kschedfw.testing.plugin_contract.stage import PluginStage
from kschedfw.testing.plugin_contract.subject import Subject, concerns, violated
from kschedfw.testing.plugin_contract.world import World
from kschedfw.testing.waking import Gap, NotWokenError, Scene, Thing, Trial

_POD_RESOURCES = (
    EventResource.POD,
    EventResource.ASSIGNED_POD,
    EventResource.UNSCHEDULED_POD,
    EventResource.TARGET_POD,
)


def ask_hints(subject: Subject, stage: PluginStage) -> None:
    """Call every hint with each kind of change of its resource."""
    events = stage.hooks.answer("events_to_register")
    assert isinstance(events, Sequence)
    for event in events:
        if event.hint is None:
            continue
        for pod, (old, new) in itertools.product(stage.pods, _happens(subject, stage, event)):
            try:
                answer = event.hint(pod, old, new)
            except Exception as error:
                violated(
                    f"{stage.name}: the hint for {event.label} raised {type(error).__name__}: {error}",
                    "old is None for an addition, new for a deletion; what the hint can't read is no reason to fail: "
                    "answer QUEUE if in doubt",
                    error,
                )
            if not isinstance(answer, QueueingHint):
                violated(
                    f"{stage.name}: the hint for {event.label} returned {answer!r}",
                    "return QueueingHint.QUEUE or QueueingHint.SKIP",
                )
            if event.pre_hint is None:
                continue
            says = event.pre_hint(old, new)
            if not isinstance(says, bool):
                violated(
                    f"{stage.name}: the pre_hint for {event.label} returned {says!r}", "return True or False"
                )
            if answer is QueueingHint.QUEUE and not says:
                violated(
                    f"{stage.name}: the hint for {event.label} queues a pod, and its pre_hint says that none is",
                    "let pre_hint be False only where the hint skips every pod",
                )


def _happens(
    subject: Subject, stage: PluginStage, event: ClusterEvent
) -> Iterator[tuple[object | None, object | None]]:
    """Yield old and new object of an addition, an update and a deletion, for kinds of the contract's objects."""
    kind = str(event.resource).rpartition("/")[2]
    objects: list[object] = [each for each in subject.objects if type(each).__name__ == kind]
    if isinstance(event.resource, CustomKind):
        objects += (each for each in stage.cluster.list(CustomObject) if each.kind == event.resource)
    if event.resource in (*_POD_RESOURCES, EventResource.WILDCARD):
        objects += stage.pods
        objects += (each.pod for info in stage.nodes for each in info.pods[:1])
    if event.resource in (EventResource.NODE, EventResource.WILDCARD):
        objects += (info.node for info in stage.nodes)
    for one, other in zip(objects, [*objects[1:], *objects[:1]], strict=True):
        yield None, one
        yield one, None
        yield one, one
        if type(one) is type(other):
            yield one, other


_PODS = 8


class WakingChecks(Subject):
    """Checks with pods that come to a scheduler with the plugin, while nodes, pods and `objects` change."""

    gaps: ClassVar[Sequence[Gap]] = ()
    """Events that the plugin passes over knowingly, although they may help a pod that it refused."""

    @concerns("events_to_register")
    def test_a_pod_that_waited_is_placed_as_by_a_new_scheduler(self) -> None:
        hooks = self._hooks()
        needed = {"queue_sort": "PrioritySort", "bind": "DefaultBinder"}
        profile = self._profile(*(plugin for hook, plugin in needed.items() if hook not in hooks))

        def check(world: World) -> None:
            trial = Trial(
                self._scene(world),
                world.random,
                profile,
                self._registry,
                self.gaps,
                start_time=self.start_time.timestamp(),
            )
            try:
                trial.run(_PODS)
            except NotWokenError as error:
                violated(
                    str(error),
                    f"{self._name}.events_to_register has to name every event after which its hooks may let a refused "
                    "pod pass, with a hint that answers QUEUE then; a refusal that ends by itself needs `retry_at`; "
                    "`gaps` of the contract names exceptions",
                    error,
                )
            finally:
                trial.close()

        self._in_worlds(check)

    def _hooks(self) -> set[str]:
        """Return the hooks of all plugins of the profile."""
        framework = self._framework()
        found = {hook for plugin in framework.plugins for hook in framework.hooks_of(plugin)}
        framework.close()
        return found

    def _scene(self, world: World) -> Scene:
        """Return the world's nodes and pods, and `objects`, each of which may be gone or changed.

        A changed object has the content of another one of its kind.
        """
        things: list[Thing] = list(world.states())
        always: list[Named] = []
        for obj in self.objects:
            if isinstance(obj, CustomObject | CustomResource) or type(obj) in EVENT_RESOURCES:
                same_kind = (other for other in self.objects if type(other) is type(obj))
                things.append([obj, *(other.with_metadata(obj.metadata) for other in same_kind)])
            else:
                always.append(obj)
        return Scene(things, list(world.pending()), always)
