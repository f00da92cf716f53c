"""Calls of hooks that answer with a status. Whatever they return or raise becomes a Status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.results import NominatingMode, PostFilterResult
from kschedfw.framework.runtime.hook_answers import as_room, as_status
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.status import Code, Status

_SUCCESS = Status.success()


class Evaluation(Enum):
    """The two ways to the same decisions."""

    SCALAR = "scalar"
    """Only `filter` and `score`, node by node: their plain meaning, for comparison."""
    MEMO = "memo"
    """By plans: `filter_batch` and `score_batch` where plugins have them, answers kept where they hold."""


def call(hook: str, function: Hook, *arguments: object) -> Status:
    """Call the hook of a plugin. An exception or a wrong answer becomes an ERROR."""
    try:
        answer = function(*arguments)
        return _SUCCESS if answer is None else as_status(hook, answer)
    except HOOK_FAILURES as error:
        return Status.from_error(error)


def named(status: Status, hook: str, plugin: str) -> Status:
    """Return the status of a failed hook with its plugin: a refusal stays one, anything else becomes an ERROR."""
    if status.is_rejected:
        return status.with_plugin(plugin)
    spec = HOOKS[hook]
    return spec.explained(status).prefixed(f'running {spec.measured} plugin "{plugin}"', plugin)


def first_failure(hook: str, functions: Iterable[tuple[str, Hook]], *arguments: object) -> Status:
    """Call the plugins in order until one answers anything but success. Return that answer, or success."""
    for plugin, function in functions:
        status = call(hook, function, *arguments)
        # The only status of success that `call` returns.
        if status is not _SUCCESS:
            return named(status, hook, plugin)
    return _SUCCESS


def call_all(hook: str, functions: Iterable[tuple[str, Hook]], *arguments: object) -> Sequence[Status]:
    """Call every plugin in order. Return their exceptions as ERRORs."""
    failures = []
    for plugin, function in functions:
        try:
            function(*arguments)
        except HOOK_FAILURES as error:
            failures.append(named(Status.from_error(error), hook, plugin))
    return failures


def first_success(
    post_filters: Iterable[tuple[str, Hook]], state: CycleState, pod: Pod, node_to_status: NodeToStatus
) -> tuple[PostFilterResult | None, Status]:
    """Call post_filters in order until one succeeds or answers that nothing helps; else return all their reasons."""
    result: PostFilterResult | None = None
    reasons: list[str] = []
    rejector = ""
    for name, hook in post_filters:
        try:
            own_result, status = as_room("post_filter", hook(state, pod, node_to_status))
        except HOOK_FAILURES as error:
            own_result, status = None, Status.from_error(error)
        if status.is_success:
            return own_result, status
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return own_result, status.with_plugin(name)
        if not status.is_rejected:
            failure = HOOKS["post_filter"].explained(status).as_error()
            return None, Status.from_error(failure).with_plugin(name)
        # Remembered past this plugin: a nomination to clear is returned even if later plugins only
        # refuse.
        if own_result is not None and own_result.mode is not NominatingMode.NOOP:
            result = own_result
        reasons.extend(status.reasons)
        rejector = rejector or name
    return result, Status.unschedulable(*reasons).with_plugin(rejector)
