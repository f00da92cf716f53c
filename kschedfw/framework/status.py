"""The answer of a plugin: a code, its reasons, and the plugin's name.

Semantics: kube-scheduler `fwk.Code` and `fwk.Status`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum
from typing import TypeGuard, final

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.records import frozen


class Code(IntEnum):
    """The kinds of answer of a hook. The hook's docstring lists the codes that it may give."""

    SUCCESS = 0
    ERROR = 1
    """Something broke; the attempt is abandoned and retried later."""
    UNSCHEDULABLE = 2
    """The pod doesn't fit now; preemption may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """The pod doesn't fit, and removing other pods would not change that."""
    WAIT = 4
    """Permit only: hold the pod until it is allowed, rejected or timed out."""
    SKIP = 5
    """The plugin has nothing to do in this cycle (pre_filter, pre_score) or leaves it to the next one (bind)."""
    PENDING = 6
    """The pod doesn't fit until something outside the scheduler happens; it then comes back without backoff."""

    def __str__(self) -> str:
        """Return kube-scheduler's spelling, e.g. `UnschedulableAndUnresolvable`."""
        return self.name.title().replace("_And_", "And").replace("_", "")


_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


# No "Error" in its name: it wraps a failure, and plugins don't raise it.
class PluginFailure(Exception):
    """The exception of an error that a plugin reported as text."""


def text_of(error: BaseException) -> str:
    """Return the text of an exception with its type, `KeyError: 'rack'`; without it for kschedfw's own exceptions."""
    name = type(error).__name__
    try:
        text = str(error)
    # An exception of a plugin's own class may fail in anything.
    except (Exception, SystemExit):
        text = ""
    if isinstance(error, KschedfwError | PluginFailure):
        return text or name
    return f"{name}: {text}" if text else name


def several_texts(given: Iterable[str], argument: str = "reasons") -> tuple[str, ...]:
    """Return the texts in their order.

    Raises:
        TypeError: there is one alone, or what is given are no texts. The message names the argument.
    """
    if type(given) is not tuple:
        # A lone text would be read as a sequence of one-letter texts.
        if isinstance(given, str):
            raise TypeError(f"{argument}: expected several texts, found one: {given!r}; write ({given!r},)")
        if not isinstance(given, Iterable):
            raise TypeError(f"{argument}: expected texts, found {given!r}")
        given = tuple(given)
    for text in given:
        if not isinstance(text, str):
            raise TypeError(f"{argument}: expected texts, found {text!r}")
    return given


@final
@frozen
class Status:
    """The result of a hook. A hook that returns None has succeeded.

    `reasons` are texts for people, in the order in which they were found. `plugin` is filled in by the
    framework. `error` is the exception behind an ERROR, with its traceback. `timeout` (seconds) belongs to
    WAIT alone. `retry_at`, which goes with a refusal, is the time at which the pod is tried again unless an event has
    brought it back before: seconds since the epoch, on the clock of the plugin's handle.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = attrs.field(default=(), converter=several_texts)
    plugin: str = ""
    error: BaseException | None = attrs.field(default=None, eq=False)
    timeout: float | None = None
    retry_at: float | None = None

    def __attrs_post_init__(self) -> None:
        """Raise TypeError or ValueError where a field has another type, such as a reason in place of the code."""
        if not isinstance(self.code, Code):
            raise TypeError(
                f"code: expected a Code, found {self.code!r}; Status.unschedulable(…) takes reasons alone"
            )
        if not isinstance(self.plugin, str):
            raise TypeError(f"plugin: expected a name, found {self.plugin!r}")
        # Few statuses have one of these.
        if self.retry_at is not None:
            _check_moment(self.retry_at)
        if self.timeout is not None:
            _check_duration(self.timeout)
        if self.error is not None and not isinstance(self.error, BaseException):
            raise TypeError(f"error: expected an exception, found {self.error!r}")

    @staticmethod
    def success() -> Status:
        return _SUCCESS

    @staticmethod
    def unschedulable(*reasons: str, retry_at: float | None = None) -> Status:
        """Return an UNSCHEDULABLE status.

        Raises ValueError where `retry_at` is no finite number, as all these constructors do.
        """
        return Status(Code.UNSCHEDULABLE, reasons, retry_at=retry_at)

    @staticmethod
    def unresolvable(*reasons: str, retry_at: float | None = None) -> Status:
        """Return an UNSCHEDULABLE_AND_UNRESOLVABLE status: preemption on this node would not help."""
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, retry_at=retry_at)

    @staticmethod
    def pending(*reasons: str, retry_at: float | None = None) -> Status:
        return Status(Code.PENDING, reasons, retry_at=retry_at)

    @staticmethod
    def skip() -> Status:
        return _SKIP

    @staticmethod
    def wait(timeout: float, *reasons: str) -> Status:
        """Return a WAIT status, which holds the pod at permit for at most `timeout` seconds (capped at 15 minutes).

        Raises:
            ValueError: `timeout` isn't above 0. A wait that ends at once is a refusal: `Status.unschedulable`.
        """
        return Status(Code.WAIT, reasons, timeout=timeout)

    @staticmethod
    def from_error(error: BaseException | str) -> Status:
        """Return an ERROR status. Its reason is the exception's text, with the type unless it is kschedfw's own."""
        if isinstance(error, str):
            error = PluginFailure(error)
        return Status(Code.ERROR, (text_of(error),), error=error)

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_wait(self) -> bool:
        return self.code is Code.WAIT

    @property
    def is_rejected(self) -> bool:
        """True if the status refuses the pod (rather than accepts it, skips or fails)."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """All reasons, joined by commas."""
        return ", ".join(self.reasons)

    @property
    def _text(self) -> str:
        """The message, or the code if there are no reasons."""
        return self.message or str(self.code)

    def with_plugin(self, plugin: str) -> Status:
        return Status(self.code, self.reasons, plugin, self.error, self.timeout, self.retry_at)

    def as_error(self) -> BaseException:
        """Return the exception behind this status; make one from the message if there is none."""
        return self.error if self.error is not None else PluginFailure(self._text)

    def prefixed(self, prefix: str, plugin: str) -> Status:
        """An ERROR of this status with words before it and the plugin named; keeps the original as its cause."""
        failure = PluginFailure(f"{prefix}: {self._text}")
        failure.__cause__ = self.as_error()
        return Status(Code.ERROR, (str(failure),), plugin=plugin, error=failure)


def _check_moment(time: object) -> None:
    if not (_is_number(time) and math.isfinite(time)):
        raise ValueError(f"retry_at: expected seconds since the epoch, found {time!r}")


def _check_duration(seconds: object) -> None:
    # NaN isn't above 0 either.
    if not (_is_number(seconds) and seconds > 0):
        raise ValueError(
            f"timeout: expected seconds above 0, found {seconds!r}; Status.unschedulable(…) refuses the pod"
        )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SUCCESS = Status()
_SKIP = Status(Code.SKIP)
