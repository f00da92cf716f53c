"""Calls of hooks that answer with a status. Whatever they return or raise becomes a Status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.status import Status

_SUCCESS = Status.success()


class Evaluation(Enum):
    """The ways to the same decisions, from the plainest to the fastest. All but the last are for comparison."""

    SCALAR = "scalar"
    """Only `filter` and `score`, node by node."""
    BATCH = "batch"
    """`filter_batch` and `score_batch` where plugins have them."""
    MEMO = "memo"
    """Like BATCH; answers are also kept where plugins promise that they hold (`reads`, `sign`)."""


def checked(answer: object, plugin: str, hook: str) -> Status:
    """Return the answer of a hook as a Status; an ERROR if the answer is neither None nor a Status."""
    if answer is None:
        return _SUCCESS
    if isinstance(answer, Status):
        return _SUCCESS if answer.is_success else answer
    return Status.from_error(f"{hook} must return None or a Status, not {answer!r}").with_plugin(plugin)


def call(hook: str, plugin: str, function: Hook, *arguments: object) -> Status:
    """Call the hook of a plugin. An exception becomes an ERROR."""
    try:
        answer = function(*arguments)
        return _SUCCESS if answer is None else checked(answer, plugin, hook)
    except HOOK_FAILURES as error:
        return Status.from_error(error)


def named(status: Status, hook: str, plugin: str) -> Status:
    """Return the status of a failed hook with its plugin: a refusal stays one, anything else becomes an ERROR."""
    if status.is_rejected:
        return status.with_plugin(plugin)
    return status.prefixed(f'running {HOOKS[hook].measured} plugin "{plugin}"', plugin)


def first_failure(hook: str, functions: Iterable[tuple[str, Hook]], *arguments: object) -> Status:
    """Call the plugins in order until one answers anything but success. Return that answer, or success."""
    for plugin, function in functions:
        status = call(hook, plugin, function, *arguments)
        if status is not _SUCCESS:  # the only status of success that `call` returns
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
