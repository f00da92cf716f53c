"""The declaration of a hook's properties, once beside each hookspec."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import pluggy

from kschedfw.api.records import frozen
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.plugin import PROJECT
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.status import Code, Status

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])

_ATTRIBUTE: Final = f"{PROJECT}_hook"
_mark = pluggy.HookspecMarker(PROJECT)


@frozen
class HookSpec:
    """The specification of a hook.

    `arguments` are the names of its arguments, in order.

    `point` is where a profile enables it; None for a hook that every plugin of a profile may have.

    `measured` is kube-scheduler's name of it in metrics and error messages; None for a hook that isn't measured.

    `codes` are the codes that its status may have beside SUCCESS and ERROR; None for a hook that returns no status.

    `goes_with` is the name of another hook that a plugin with this one must implement, too.
    """

    name: str
    arguments: tuple[str, ...]
    point: ExtensionPoint | None
    measured: MeasuredPoint | None
    codes: frozenset[Code] | None
    goes_with: str | None

    def explained(self, status: Status) -> Status:
        """Return an ERROR that names the codes that the hook may give, if the status has another and says no more.

        Other statuses are returned as they are. In kube-scheduler such a status is an error with the text
        `%!w(<nil>)`, or without a text.
        """
        if status.code in (Code.SUCCESS, Code.ERROR) or status.code in (self.codes or ()):
            return status
        # Only a refusal's reasons are the text of its error.
        if status.is_rejected and status.reasons:
            return status
        told = f" ({status.message})" if status.reasons else ""
        *others, last = map(str, sorted({Code.SUCCESS, Code.ERROR, *(self.codes or ())}))
        may = f"{', '.join(others)} or {last}"
        return Status.from_error(f"{status.code}{told}, but {self.name} may answer only {may}")


def hookspec(
    point: ExtensionPoint | None = None,
    *,
    measured: MeasuredPoint | None = None,
    codes: Iterable[Code] | None = None,
    goes_with: str | None = None,
) -> Callable[[FunctionT], FunctionT]:
    """Mark a function as the specification of the hook of its name; see `HookSpec` for the arguments."""

    def mark(function: FunctionT) -> FunctionT:
        allowed = None if codes is None else frozenset(codes)
        arguments = tuple(inspect.signature(function).parameters)
        setattr(
            function, _ATTRIBUTE, HookSpec(function.__name__, arguments, point, measured, allowed, goes_with)
        )
        return _mark(function)

    return mark


def declared_hooks(namespace: Mapping[str, object]) -> Mapping[str, HookSpec]:
    """Return the hooks that functions of a module specify, by name, in the order of the source."""
    marked = (getattr(each, _ATTRIBUTE, None) for each in list(namespace.values()))
    return {each.name: each for each in marked if isinstance(each, HookSpec)}
