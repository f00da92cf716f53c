"""Scratch space of one scheduling cycle, shared by the hooks of all plugins (kube-scheduler `CycleState`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

from kschedfw.api import KschedfwError, Pod
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.status import PluginFailure, text_of

T = TypeVar("T")


class StateKeyError(KschedfwError, KeyError):
    """The error of reading a key under which nothing was written in this cycle."""

    def __str__(self) -> str:
        return str(self.args[0])


@runtime_checkable
class Clonable(Protocol):
    """State that can copy itself. State that hooks change after its write (add/remove pod) must be Clonable."""

    def clone(self) -> object:
        """Return a copy that hooks may change."""
        ...


class StateKey(Generic[T]):
    """The name of one piece of cycle state, and its type.

    Two keys with the same name are the same key, so prefix the plugin's name: `StateKey[Counts]("Rack.counts")`.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


def _not_a_key(key: object) -> TypeError:
    return TypeError(
        f"key: expected a StateKey, found {key!r}; make one beside the plugin: KEY = StateKey[int]({str(key)!r})"
    )


def _not_cloned(name: str, value: object, error: BaseException) -> PluginFailure:
    return PluginFailure(
        f"{name}: {type(value).__name__}.clone failed in a copy of the cycle state: {text_of(error)}; it is a method "
        "without arguments that returns a copy, and a value that is never changed after its write needs none"
    )


class CycleState:
    """Typed key/value store that lives from pre_filter to post_bind of one pod.

    Writes happen in pre_filter, pre_score, reserve and permit, which run alone; `filter` and `score` run concurrently
    and only read. `clone` copies values that are `Clonable` and shares all others, so a value that is never changed
    after its write needs no `clone`.

    `skip_filter_plugins`, `skip_score_plugins` and `skip_pre_bind_plugins` name the plugins whose pre_filter,
    pre_score or pre_bind_pre_flight answered SKIP, `parallel_pre_bind_plugins` those whose pre_bind may run beside
    others.
    `record_plugin_metrics` tells whether the durations of single plugins are measured in this cycle.
    """

    __slots__ = (
        "_data",
        "parallel_pre_bind_plugins",
        "plan",
        "record_plugin_metrics",
        "scheduling_cycle",
        "skip_filter_plugins",
        "skip_pre_bind_plugins",
        "skip_score_plugins",
    )

    def __init__(self) -> None:
        self._data: dict[str, object] = {}
        self.plan: object = None
        """The framework's plan for the pod; None before pre_filter."""
        self.record_plugin_metrics = False
        self.scheduling_cycle: int | None = None
        """The number of the cycle, which is the number of pods taken from the queue so far; None for a pod from
        elsewhere."""
        self.skip_filter_plugins: frozenset[str] = frozenset()
        self.skip_score_plugins: frozenset[str] = frozenset()
        self.skip_pre_bind_plugins: frozenset[str] = frozenset()
        self.parallel_pre_bind_plugins: frozenset[str] = frozenset()

    def read(self, key: StateKey[T]) -> T:
        """Return the value under the key.

        Raises:
            StateKeyError: nothing was written under the key.
            TypeError: `key` is no StateKey.
        """
        try:
            return self._data[key.name]  # type: ignore[return-value]  # the key carries the type of what it names
        except KeyError:
            raise StateKeyError(f"{key.name}: not found in the cycle state") from None
        except AttributeError:
            raise _not_a_key(key) from None

    def find(self, key: StateKey[T]) -> T | None:
        """Return the value under the key; None if nothing was written under it.

        Raises:
            TypeError: `key` is no StateKey.
        """
        try:
            return self._data.get(key.name)  # type: ignore[return-value]  # as in `read`
        except AttributeError:
            raise _not_a_key(key) from None

    def write(self, key: StateKey[T], value: T) -> None:
        """Write the value under the key, in place of an earlier one.

        Raises:
            TypeError: `key` is no StateKey.
        """
        try:
            self._data[key.name] = value
        except AttributeError:
            raise _not_a_key(key) from None

    def delete(self, key: StateKey[T]) -> None:
        """Delete the key, if it was written.

        Raises:
            TypeError: `key` is no StateKey.
        """
        try:
            self._data.pop(key.name, None)
        except AttributeError:
            raise _not_a_key(key) from None

    @property
    def is_empty(self) -> bool:
        """True if the state has no key."""
        return not self._data

    def take(self, other: CycleState) -> None:
        """Copy everything that was written in another state into this one."""
        self._data.update(other._data)

    def __contains__(self, key: StateKey[T]) -> bool:
        try:
            return key.name in self._data
        except AttributeError:
            raise _not_a_key(key) from None

    def clone(self) -> CycleState:
        """Return a copy. Later writes to the copy don't show in this state.

        Raises:
            PluginFailure: the `clone` of a value failed, or is no method; names the key.
        """
        copy, data = CycleState(), self._data
        # What isinstance(value, Clonable) asks, but a hundred times as fast.
        name = ""
        try:
            for name, value in data.items():
                clone = getattr(value, "clone", None)
                copy._data[name] = value if clone is None else clone()
        except HOOK_FAILURES as error:
            raise _not_cloned(name, data[name], error) from error
        copy.plan = self.plan
        copy.record_plugin_metrics = self.record_plugin_metrics
        copy.skip_filter_plugins = self.skip_filter_plugins
        copy.skip_score_plugins = self.skip_score_plugins
        copy.skip_pre_bind_plugins = self.skip_pre_bind_plugins
        copy.parallel_pre_bind_plugins = self.parallel_pre_bind_plugins
        return copy


_PODS_TO_ACTIVATE = StateKey[dict[str, Pod]]("kschedfw.pods_to_activate")


def activate_pods(state: CycleState, *pods: Pod) -> None:
    """Move pods from the backoff or unschedulable pods to the active ones if the cycle of `state` succeeds.

    For hooks from reserve to post_bind. A gang scheduler activates the other members this way (kube-scheduler
    `PodsToActivate`).
    """
    if _PODS_TO_ACTIVATE not in state:
        state.write(_PODS_TO_ACTIVATE, {})
    state.read(_PODS_TO_ACTIVATE).update({pod.uid: pod for pod in pods})


def take_pods_to_activate(state: CycleState) -> Sequence[Pod]:
    """Return the pods given to `activate_pods` since the last call."""
    if _PODS_TO_ACTIVATE not in state:
        return ()
    pods = tuple(state.read(_PODS_TO_ACTIVATE).values())
    state.delete(_PODS_TO_ACTIVATE)
    return pods
