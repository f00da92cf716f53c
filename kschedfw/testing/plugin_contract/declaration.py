"""Checks of a plugin's declarations: hooks, arguments, queue order, and events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints

import attrs

from kschedfw.api.convert import json_name, unstructure
from kschedfw.api.custom import CustomKind
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.parts import Parts
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.args import ArgsError, plugin_args
from kschedfw.framework.runtime.framework import Framework
from kschedfw.testing.plugin_contract.stage import NewStage, PluginStage, difference, on_stages, run_on_stages
from kschedfw.testing.plugin_contract.subject import Subject, concerns, violated
from kschedfw.testing.plugin_contract.waking import ask_hints


class DeclarationChecks(Subject):
    """Checks of hooks and arguments, as the framework finds them."""

    def test_hooks_and_arguments_are_accepted(self) -> None:
        self._must_be_accepted()
        plugin = self._framework().plugins[self._name]
        if not any(hasattr(plugin, hook) for hook in HOOKS):
            violated(
                f"{self._name} has no hook at all",
                f"mark the methods that are to be called with @hookimpl; hooks are {', '.join(HOOKS)}",
            )

    def test_arguments_are_read_from_a_configuration_and_checked(self) -> None:
        cls = self._registry.load(self._name).args_type
        if cls is None:
            self._refuses({"noSuchField": 1})
            return
        given = plugin_args(self._name, cls, self.args) if self.args is not None else self._default()
        written: Mapping[str, object] = {} if given is None else unstructure(given)
        if given is not None and (problem := self._problem(written, given)) is not None:
            violated(
                f"the arguments {given!r} don't come back from a configuration with {written!r}: {problem}",
                f"{cls.__name__} must be an attrs class; its fields have types that a YAML document can hold: "
                "str, int, float, bool, tuple[…, ...], another attrs class, `… | None`",
            )
        self._refuses({**written, "noSuchField": 1})
        if attrs.has(cls):
            for key, value in _edges(cls):
                self._is_made_or_refused({**written, key: value})

    @on_stages("pre_enqueue")
    def test_pre_enqueue_answers_the_same_twice_and_changes_nothing(self, new_stage: NewStage) -> None:
        stage = new_stage()
        before = stage.surroundings()
        first, again = ([stage.hooks.status("pre_enqueue", pod) for pod in stage.pods] for _ in range(2))
        if first != again or (changed := difference(before, stage.surroundings())):
            wrong = "answers otherwise when asked again" if first != again else f"changes {changed}"
            violated(
                f"{self._name}.pre_enqueue {wrong}",
                "it is asked whenever a pod might become active, as often as that happens: it only looks",
            )

    @on_stages("queue_sort")
    def test_queue_sort_is_a_strict_weak_order(self, new_stage: NewStage) -> None:
        stage = new_stage()
        queued = [
            QueuedPodInfo(PodInfo.of(pod), timestamp=float(number % 2), sequence=number)
            for number, pod in enumerate((*stage.pods, *stage.pods))
        ]
        before = {
            (one, other): bool(stage.hooks.answer("queue_sort", queued[one], queued[other]))
            for one, other in itertools.product(range(len(queued)), repeat=2)
        }
        for one, other, third in itertools.product(range(len(queued)), repeat=3):
            both = before[one, other] and before[other, one]
            if both or (before[one, third] and not (before[one, other] or before[other, third])):
                pods = ", ".join(queued[each].pod.name for each in (one, other, third))
                violated(
                    f"{self._name}.queue_sort is no strict weak order, see the pods {pods}",
                    "compare one key of each, `key(first) < key(second)`: with <= a pod would come before itself",
                )

    @concerns("events_to_register")
    def test_events_are_cluster_events_and_their_hints_answer(self) -> None:
        events = PluginStage(self, ()).hooks.answer("events_to_register")
        if not isinstance(events, list | tuple) or not all(isinstance(each, ClusterEvent) for each in events):
            violated(
                f"{self._name}.events_to_register returned {events!r}", "return a list of `ClusterEvent`s"
            )
        for event in events:
            if not isinstance(event.resource, EventResource | CustomKind) or not (
                isinstance(event.action, ActionType) and event.action
            ):
                violated(
                    f"{self._name}.events_to_register names {event!r}",
                    "`resource` is an EventResource or a CustomKind, `action` an ActionType or several, joined by |",
                )
            if not event.can_happen:
                named, _, instead = event.why_never.partition("; ")
                violated(f"{self._name}.events_to_register names {named}", instead)
        run_on_stages(self, lambda new_stage: ask_hints(self, new_stage()))

    def _default(self) -> object:
        """Return the default arguments; None if some arguments are required."""
        cls = self._registry.load(self._name).args_type
        try:
            return plugin_args(self._name, cls, None)
        except Exception:
            return None

    def _problem(self, written: Mapping[str, object], given: object) -> str | None:
        try:
            read = plugin_args(self._name, self._registry.load(self._name).args_type, written)
        except Exception as error:
            return str(error)
        return None if read == given else f"it gives {read!r}"

    def _refuses(self, written: Mapping[str, object]) -> None:
        try:
            plugin_args(self._name, self._registry.load(self._name).args_type, written)
        except ArgsError:
            return
        except Exception as error:
            outcome: Exception | None = error
        else:
            outcome = None
        violated(
            f"{self._name} doesn't refuse the argument noSuchField" + (f": {outcome}" if outcome else ""),
            "args_type must be an attrs class, so that a misspelt field of a configuration is refused",
            outcome,
        )

    def _is_made_or_refused(self, written: Mapping[str, object]) -> None:
        """Check that a framework can be made with these arguments, or that `validate` refuses them."""
        try:
            Framework(
                self._registry,
                Profile([self._name], args={self._name: written}),
                Parts(InMemoryCluster(self.objects)),
            ).close()
        except ArgsError:
            return
        except Exception as error:
            self._must_be_accepted()
            violated(
                f"the arguments {dict(written)!r} are neither refused nor usable: {error}",
                "`validate` of the arguments yields a FieldError for each rule that is broken, and raises nothing; "
                "what it lets pass, the plugin's __init__ can work with",
                error,
            )


def _edges(cls: type[attrs.AttrsInstance]) -> Iterator[tuple[str, object]]:
    """Yield fields of simple types, with edge values that authors forget."""
    hints = get_type_hints(cls)
    for field in attrs.fields(cls):
        for value in _EDGES.get(_simple(hints[field.name]), ()):
            yield json_name(field), value


def _simple(hint: Any) -> object:
    return next((each for each in (hint, *get_args(hint)) if each in _EDGES), None)


_EDGES: Mapping[object, tuple[object, ...]] = {
    int: (-1, 0, 1 << 62),
    float: (-1.0, 0.0, 1e300),
    str: ("", "-1", "no such thing"),
}
