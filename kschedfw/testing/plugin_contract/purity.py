"""Checks that hooks of a plugin that says it is `pure` depend on their arguments alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import attrs

from kschedfw import AnyPlugin, CycleState, NodeInfo, Pod
from kschedfw.framework.plugin import is_pure
from kschedfw.testing.plugin_contract.outside import outside_noted
from kschedfw.testing.plugin_contract.stage import NewStage, PluginStage, on_stages
from kschedfw.testing.plugin_contract.subject import Subject, violated

_REMEDY = (
    "a pure hook reads its arguments, the pod, the node with its pods, and what the plugin's own pre_filter and "
    "pre_score wrote; leave out `pure`, or let pre_filter write to the state what the hook needs, as a value, and name "
    'the hooks that are pure: pure = ("filter", "score")'
)
_PURE_HOOKS = ("filter", "score")
_PREPARING = ("pre_filter", "pre_score")
_SECONDS = 4_000.0
"""The time that passes before the hooks are asked again."""


@attrs.frozen
class _Asked:
    """A question to a hook, and the answer."""

    hook: str
    state: CycleState
    pod: Pod
    info: NodeInfo
    answer: object


class PurityChecks(Subject):
    """Checks that `pure` is right."""

    @on_stages(*_PREPARING)
    def test_pure_hooks_before_filter_and_score_depend_on_the_pod_alone(self, new_stage: NewStage) -> None:
        stage = new_stage()
        plugin = stage.framework.plugins[self._name]
        for hook in _PREPARING:
            if not stage.hooks.has(hook) or not is_pure(plugin, hook):
                continue
            for pod in stage.pods:
                with _nothing_else_read(stage.name, hook, plugin):
                    stage.hooks.answer(hook, CycleState(), pod, stage.nodes)

    @on_stages(*_PURE_HOOKS)
    def test_pure_hooks_depend_on_their_arguments_alone(self, new_stage: NewStage) -> None:
        stage = new_stage()
        plugin = stage.framework.plugins[self._name]
        hooks = [hook for hook in _PURE_HOOKS if stage.hooks.has(hook) and is_pure(plugin, hook)]
        if not hooks:
            return
        asked = [each for hook in hooks for each in _ask_all(stage, plugin, hook)]
        # What happens in a scheduler between two cycles: time passes, and other pods are placed.
        stage.clock.advance(_SECONDS)
        for pod in stage.pods:
            stage.reserve(pod)
        with ThreadPoolExecutor(1) as another_thread:
            answers = another_thread.map(
                lambda each: stage.hooks.answer(each.hook, each.state, each.pod, each.info), reversed(asked)
            )
        for each, again in zip(reversed(asked), answers, strict=True):
            if again != each.answer:
                violated(
                    f"{self._name}.{each.hook}, which says that it is pure, answers {each.answer!r} for {each.pod.key} "
                    f"on {each.info.name}, and later, for the same arguments and on another thread, {again!r}",
                    _REMEDY,
                )


def _ask_all(stage: PluginStage, plugin: AnyPlugin, hook: str) -> Iterator[_Asked]:
    name = stage.name
    for pod in stage.pods:
        state = stage.begin(pod)
        if state is None:
            continue
        if hook == "score" and not stage.begin_scoring(state, pod, stage.nodes):
            continue
        if hook == "filter" and name in state.skip_filter_plugins:
            continue
        for info in stage.nodes:
            with _nothing_else_read(name, hook, plugin):
                answer = stage.hooks.answer(hook, state, pod, info)
            yield _Asked(hook, state, pod, info, answer)


@contextmanager
def _nothing_else_read(name: str, hook: str, plugin: AnyPlugin) -> Iterator[None]:
    """Report a violation if the hook, which is called meanwhile, reads or changes what isn't an argument.

    That is the handle, the plugin, and what belongs to the process or the machine.
    """
    before = _attributes(plugin)
    with _noted_handle(plugin) as read, outside_noted() as outside:
        yield
    if outside:
        violated(f"{name}.{hook}, which says that it is pure, reads {outside[0]}", _REMEDY)
    if read:
        violated(
            f"{name}.{hook}, which says that it is pure, asks the handle for its {', '.join(read)}", _REMEDY
        )
    after = _attributes(plugin)
    if changed := [key for key in (*before, *after) if before.get(key) != after.get(key)]:
        violated(
            f"{name}.{hook}, which says that it is pure, changes the plugin's attribute {changed[0]}",
            "a pure hook remembers nothing: it isn't called for a pod whose answers are known",
        )


def _attributes(plugin: AnyPlugin) -> Mapping[str, str]:
    """Return the plugin's attributes but the handle, of itself and of its class, as texts that show a change."""
    members: dict[str, Any] = {**vars(type(plugin)), **vars(plugin)}
    return {
        name: repr(value)
        for name, value in members.items()
        if name != "handle" and not name.startswith("__") and not callable(value)
    }


class _NotedHandle:
    """Stands for the handle, and notes what is asked of it."""

    def __init__(self, handle: object, read: dict[str, None]) -> None:
        self._handle, self._read = handle, read

    def __getattr__(self, name: str) -> object:
        self._read[name] = None
        return getattr(self._handle, name)


@contextmanager
def _noted_handle(plugin: AnyPlugin) -> Iterator[dict[str, None]]:
    """Yield the names of the handle's attributes that the plugin reads within the block."""
    handle, read = getattr(plugin, "handle", None), dict[str, None]()
    if handle is None:
        yield read
        return
    plugin.handle = _NotedHandle(handle, read)  # type: ignore[assignment]  # of the same attributes
    try:
        yield read
    finally:
        plugin.handle = handle
