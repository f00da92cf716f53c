"""The extenders of a scheduler: their clients, their order, and binding by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Final, TypeVar

import attrs

from kschedfw.api.extensions import Extensions
from kschedfw.api.pod import Pod
from kschedfw.config.extenders import ExtenderConfig, check_extenders
from kschedfw.framework.clock import Clock
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.extender import Extender

ExtenderT = TypeVar("ExtenderT", bound=Extender)


@attrs.frozen
class ExtenderClient:
    """The factory of an extender's client; entry points of `kschedfw.extender_clients` refer to such objects."""

    make: Callable[[ExtenderConfig, Clock | None], Extender]


EXTENDER_CLIENTS: Final = Extensions(
    "kschedfw.extender_clients", "extender client", ExtenderClient, {"HTTP": "kschedfw-kubernetes"}
)


def make_extenders(configs: Sequence[ExtenderConfig], *, clock: Clock | None = None) -> tuple[Extender, ...]:
    """Return the extenders of a configuration, checked, in the order in which they are called.

    They are called over HTTP, by the extender client of the name HTTP. Close them with `close_extenders`. See also
    `with_ignored_resources`, which the profiles need.

    Raises:
        ExtenderConfigError: the configuration of an extender is invalid, alone or together with the others.
        ExtensionError: there are extenders, and the distribution that calls them isn't installed.
        MissingExtraError: an extra of that distribution isn't installed.
    """
    check_extenders(configs)
    if not configs:
        return ()
    client = EXTENDER_CLIENTS.load("HTTP")
    made: list[Extender] = []
    try:
        for config in configs:
            made.append(client.make(config, clock))
    except Exception:
        close_extenders(made)
        raise
    return order_extenders(made)


def order_extenders(extenders: Iterable[ExtenderT]) -> tuple[ExtenderT, ...]:
    """Return the extenders with the ignorable ones last, otherwise in the given order."""
    # As kube-scheduler, which moves ignorable extenders to the end; the sort is stable.
    return tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))


def close_extenders(extenders: Iterable[Extender]) -> None:
    """Close the extenders that have a `close` method, which isn't a part of the `Extender` protocol.

    All are closed, even if some raise; then the error is raised.
    """
    with ExitStack() as stack:
        for extender in extenders:
            close: Callable[[], object] | None = getattr(extender, "close", None)
            if close is not None:
                stack.callback(close)


def bind_with_extenders(extenders: Iterable[Extender], pod: Pod, node_name: str) -> bool:
    """Have the interested binder among the extenders bind the pod (kube-scheduler `extendersBinding`).

    Return whether an extender has bound it. If not, because none is interested or an ignorable one failed, the
    bind plugins must run.

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
