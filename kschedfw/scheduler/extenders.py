"""The extenders of a scheduler: their clients, their order, and filtering, rating and binding by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Final, TypeVar

import numpy as np

from kschedfw.api import Pod, wrapped
from kschedfw.api.extensions import Extensions
from kschedfw.api.records import frozen
from kschedfw.config.extenders import ExtenderConfig, check_extenders
from kschedfw.framework.clock import Clock
from kschedfw.framework.diagnosis import Diagnosis
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.extender import MAX_EXTENDER_PRIORITY, Extender
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.results import MAX_NODE_SCORE
from kschedfw.framework.status import Status
from kschedfw.scheduler.errors import SchedulingError

ExtenderT = TypeVar("ExtenderT", bound=Extender)


@frozen
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
            with EXTENDER_CLIENTS.calling("HTTP"):
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


def pass_extenders(
    extenders: Iterable[Extender], pod: Pod, feasible: NodeSelection, diagnosis: Diagnosis
) -> NodeSelection:
    """Return the nodes that the extenders let pass, and note in the diagnosis why the others were refused.

    Raises:
        SchedulingError: an extender failed that isn't ignorable.
    """
    for extender in extenders:
        if not len(feasible):
            break
        if not (extender.is_filter and extender.is_interested(pod)):
            continue
        try:
            result = extender.filter(pod, feasible)
        except HOOK_FAILURES as error:
            # An extender may raise anything; that is its failure, not the scheduler's.
            if extender.is_ignorable:
                continue
            raise SchedulingError(Status.from_error(error)) from error
        for name, message in result.failed_and_unresolvable.items():
            diagnosis.node_to_status.set(name, Status.unresolvable(message))
        for name, message in result.failed.items():
            # An extender may name a node in both. Unresolvable counts then, as in kube-scheduler.
            if name not in result.failed_and_unresolvable:
                diagnosis.node_to_status.set(name, Status.unschedulable(message))
        rows = feasible.table.rows
        feasible = NodeSelection(
            feasible.table, np.array([rows[info.name] for info in result.feasible], dtype=np.int64)
        )
    return feasible


def with_extenders(
    extenders: Iterable[Extender], pod: Pod, nodes: Sequence[NodeInfo], totals: IntArray
) -> IntArray:
    """Add the extenders' priorities to the nodes' totals, in place, and return these."""
    rows = {name: row for row, name in enumerate(info.name for info in nodes)}
    for extender in extenders:
        if not (extender.is_prioritizer and extender.is_interested(pod)):
            continue
        try:
            priorities = extender.prioritize(pod, nodes)
        # A failure only loses this extender's priorities, as in kube-scheduler.
        except HOOK_FAILURES:
            continue
        for name, priority in priorities.items():
            # Nodes that weren't asked about are ignored, as in kube-scheduler.
            if name in rows:
                # Extenders rate from 0 to 10, plugins from 0 to 100.
                rated = priority * extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
                # In Python's integers, since a sum beyond int64 has to wrap around silently, as in Go.
                totals[rows[name]] = wrapped(int(totals[rows[name]]) + rated)
    return totals


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
