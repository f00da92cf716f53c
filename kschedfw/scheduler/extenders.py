"""Several extenders together: their order, and which one binds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import TypeVar

from kschedfw_kubernetes.http_extender.client import HTTPExtender

from kschedfw.api.pod import Pod
from kschedfw.config.extenders import ExtenderConfig, check_extenders
from kschedfw.framework.clock import Clock
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.extender import Extender

ExtenderT = TypeVar("ExtenderT", bound=Extender)


def make_extenders(
    configs: Sequence[ExtenderConfig], *, clock: Clock | None = None
) -> tuple[HTTPExtender, ...]:
    """The extenders of a configuration, checked, in the order in which they are called.

    See also `with_ignored_resources`, which the profiles need.

    Raises:
        ExtenderConfigError: the configuration of an extender is invalid, alone or together with the others.
        MissingExtraError: there are extenders, and the extra `extender` isn't installed.
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
    """The extenders with the ignorable ones last, otherwise in the given order."""
    return tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))


def close_extenders(extenders: Iterable[Extender]) -> None:
    """Close those extenders that have a `close` method, which isn't a part of the `Extender` protocol.

    All are closed, even if some raise; then the error is raised.
    """
    with ExitStack() as stack:
        for extender in extenders:
            close: Callable[[], object] | None = getattr(extender, "close", None)
            if close is not None:
                stack.callback(close)


def bind_with_extenders(extenders: Iterable[Extender], pod: Pod, node_name: str) -> bool:
    """Have the interested binder among the extenders bind the pod (kube-scheduler `extendersBinding`).

    Returns:
        Whether one has bound it. If not, because none is interested or an ignorable one failed, the bind plugins
        run.

    Raises:
        ExtenderError: the extender failed and isn't ignorable (other implementations may raise other errors).
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
