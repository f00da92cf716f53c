"""Several extenders together: their order, and who binds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import TypeVar

from kschedfw.api.pod import Pod
from kschedfw.config.extenders import ExtenderConfig, check_extenders
from kschedfw.framework.clock import Clock
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.extender import Extender
from kschedfw.scheduler.http_extender.client import HTTPExtender

ExtenderT = TypeVar("ExtenderT", bound=Extender)


def make_extenders(
    configs: Sequence[ExtenderConfig], *, clock: Clock | None = None
) -> tuple[HTTPExtender, ...]:
    """The extenders of a configuration, checked and in the order in which they are asked.

    See also `with_ignored_resources`, which the profiles need.

    Raises:
        ExtenderConfigError: an extender can't work, or not together with the others.
        MissingExtraError: there are any, and the extra `extender` isn't installed.
    """
    check_extenders(configs)
    made: list[HTTPExtender] = []
    try:
        for config in configs:
            made.append(HTTPExtender(config, clock=clock))
    except Exception:
        for extender in made:
            extender.close()
        raise
    return order_extenders(made)


def order_extenders(extenders: Iterable[ExtenderT]) -> tuple[ExtenderT, ...]:
    """The ignorable ones last, else as they were given: whoever is sure to answer narrows the choice first."""
    return tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))


def close_extenders(extenders: Iterable[Extender]) -> None:
    """Let go of the connections of those that have any; closing is no part of the `Extender` protocol.

    Each is closed; what one of them raises comes last.
    """
    with ExitStack() as stack:
        for extender in extenders:
            close: Callable[[], object] | None = getattr(extender, "close", None)
            if close is not None:
                stack.callback(close)


def bind_with_extenders(extenders: Iterable[Extender], pod: Pod, node_name: str) -> bool:
    """Have the extender bind the pod that wants to (kube-scheduler `extendersBinding`).

    Returns:
        Whether it did. If not, the bind plugins have to: none is interested, or an ignorable one failed.

    Raises:
        ExtenderError: the extender failed and isn't ignorable (other implementations may raise what they like).
    """
    for extender in extenders:
        if not (extender.is_binder and extender.is_interested(pod)):
            continue
        try:
            extender.bind(pod, node_name)
        except HOOK_FAILURES:
            if not extender.is_ignorable:
                raise
        else:
            return True
    return False
