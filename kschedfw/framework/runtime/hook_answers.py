"""The answers that hooks may give: a table of them in words, and one check for each kind.

A check returns the answer in the form in which the framework goes on with it. Where type, range or size is wrong, it
raises PluginFailure: call it where an exception of the hook is caught, too. Types are compared exactly where an object
could otherwise claim to be something else, as mocks do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from reprlib import Repr
from types import UnionType
from typing import Final, TypeGuard, TypeVar, cast

import numpy as np

from kschedfw.api.field_errors import printable
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.events import ClusterEvent, QueueingHint
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.results import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NominatingMode,
    PostFilterResult,
    PreBindPreFlightResult,
    PreFilterResult,
    Verdicts,
)
from kschedfw.framework.status import Code, PluginFailure, Status

EXPECTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "pre_enqueue",
            "pre_filter_add_pod",
            "pre_filter_remove_pod",
            "filter",
            "pre_score",
            "reserve",
            "permit",
            "pre_bind",
            "bind",
            "placement_feasible",
            "pod_group_post_filter",
        ),
        "None or a Status",
    ),
    **dict.fromkeys(("unreserve", "post_bind"), "None"),
    "queue_sort": "True or False",
    "pre_filter": "None, a PreFilterResult of a set of names, or a Status",
    "filter_batch": "None or Verdicts",
    "post_filter": "a pair of a PostFilterResult or None and a Status or None",
    "score": "an int",
    "score_batch": "None or int64 scores",
    "normalize_score": "None, int64 scores or a Status",
    "pre_bind_pre_flight": "None, a PreBindPreFlightResult or a Status",
    "placement_generate": "GroupPlacements of the nodes that it was given, or a Status that isn't success",
    "placement_score": "an int",
    "normalize_placement_score": "an int for the name of each placement",
    "events_to_register": "ClusterEvents",
    # No hooks, but methods and functions of plugins that are asked in the same way.
    "evidence": "Evidence",
    "queueing_hint": "a QueueingHint",
    "pre_queueing_hint": "True or False",
}
"""The answers of each hook, in the words of the error of a wrong one. unreserve's and post_bind's aren't looked at."""

MOST_PLACEMENTS: Final = 100_000
"""The largest number of placements for one group. In the largest clusters, all pairs of racks are a few thousand."""
_MOST: Final = 1_000
"""The largest number of other things that one answer lists."""

_SUCCESS: Final = Status.success()
_INT64: Final = np.dtype(np.int64)
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1
_LONGEST: Final = 200

_ListedT = TypeVar("_ListedT")

_repr = Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = _LONGEST


def as_status(hook: str, answer: object) -> Status:
    """Return an answer of None or a Status; the one object of all successes for either."""
    if answer is None:
        return _SUCCESS
    if type(answer) is Status:
        return _SUCCESS if answer.code is Code.SUCCESS else answer
    raise _wrong(hook, answer)


def as_truth(hook: str, answer: object) -> bool:
    # Not by truth: a forgotten `return` would mean False, and an array raises.
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise _wrong(hook, answer)


def as_left_over(hook: str, answer: object) -> PreFilterResult | Status:
    """Return the answer of pre_filter. The names aren't looked at: those of unknown nodes are ignored."""
    if type(answer) is not PreFilterResult:
        return as_status(hook, answer)
    if not _has(answer, node_names=frozenset | set):
        raise _wrong(hook, answer)
    return answer


def as_verdicts(hook: str, answer: object, count: int) -> Verdicts:
    """Return the answer of filter_batch for `count` nodes."""
    if type(answer) is not Verdicts:
        raise _wrong(hook, answer)
    codes, statuses = answer.codes, answer.statuses
    if not _has(answer, codes=np.ndarray) or codes.dtype.kind not in "iu" or codes.shape != (count,):
        raise PluginFailure(f"the verdicts' codes must be integers of shape ({count},), not {shown(codes)}")
    if not _has(answer, statuses=tuple | list) or any(type(each) is not Status for each in statuses):
        raise PluginFailure(f"the verdicts' statuses must be Statuses, not {shown(statuses)}")
    if not statuses or not statuses[0].is_success:
        raise PluginFailure("the first of the verdicts' statuses must be success, which code 0 means")
    # As an unsigned number, a negative one is too large.
    if count and codes.view(f"u{codes.itemsize}").max() >= len(statuses):
        outside = codes[(codes < 0) | (codes >= len(statuses))][0]
        raise PluginFailure(f"the verdicts have a code {outside} but {len(statuses)} statuses")
    return answer


def as_room(hook: str, answer: object) -> tuple[PostFilterResult | None, Status]:
    """Return the answer of post_filter."""
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise _wrong(hook, answer)
    result, status = answer
    if result is not None and not (
        type(result) is PostFilterResult and _has(result, nominated_node_name=str, mode=NominatingMode)
    ):
        raise _wrong(hook, answer)
    if status is not None and type(status) is not Status:
        raise _wrong(hook, answer)
    return result, as_status(hook, status)


def as_integer(hook: str, answer: object) -> int:
    """Return a raw score, which fits int64."""
    if type(answer) is Status:
        if answer.code is Code.ERROR or (answer.is_rejected and answer.reasons):
            raise PluginFailure(answer.message or str(answer.code)) from answer.as_error()
        raise PluginFailure(f"{hook} must return {EXPECTED[hook]}, not a Status of the code {answer.code}")
    if not _is_integer(answer):
        raise _wrong(hook, answer)
    score = int(answer)
    if not _MIN_INT64 <= score <= _MAX_INT64:
        raise PluginFailure(f"{hook} must fit int64, and {shown(score)} doesn't")
    return score


def _is_integer(answer: object) -> TypeGuard[int]:
    # Not isinstance of int: a bool would pass for a score of 0 or 1.
    return type(answer) is int or isinstance(answer, np.integer)


def as_scores(hook: str, answer: object, count: int) -> IntArray:
    """Return scores of `count` nodes as an array: shape (count,), int64."""
    if type(answer) is np.ndarray and answer.dtype == _INT64 and answer.shape == (count,):
        return answer
    if isinstance(answer, np.ndarray):
        # A float isn't cut off and a uint64 not wrapped around: both would hide a plugin's mistake in a score that
        # looks right.
        if answer.dtype.kind in "iu" and np.can_cast(answer.dtype, _INT64) and answer.shape == (count,):
            return np.asarray(answer).astype(np.int64, copy=False)
    # One by one, since NumPy makes an array of whatever is in a list, whichever size that has.
    elif isinstance(answer, list | tuple) and len(answer) == count and all(map(_is_integer, answer)):
        return np.array([as_integer(hook, each) for each in answer], dtype=np.int64)
    raise PluginFailure(f"scores must be int64 of shape ({count},), not {shown(answer)}")


def as_pre_flight(hook: str, answer: object) -> PreBindPreFlightResult | Status:
    if type(answer) is not PreBindPreFlightResult:
        return as_status(hook, answer)
    if not _has(answer, allow_parallel=bool, skip=bool):
        raise _wrong(hook, answer)
    return answer


def as_placements(hook: str, answer: object, table: NodeTable) -> tuple[GroupPlacement, ...] | Status:
    """Return the answer of placement_generate: placements with names of their own, on nodes of this table."""
    if type(answer) is Status and not answer.is_success:
        return answer
    placements = _listed(hook, answer, GroupPlacement, MOST_PLACEMENTS)
    names: set[str] = set()
    for each in placements:
        if not _has(each, name=str) or not _is_of(table, each.nodes):
            raise _wrong(hook, each)
        if each.name in names:
            raise PluginFailure(
                f"{hook} must give each placement a name of its own, not {shown(each.name)} twice"
            )
        names.add(each.name)
    return placements


def _is_of(table: NodeTable, nodes: object) -> bool:
    """Return whether these are nodes of the table, each at most once."""
    if type(nodes) is not NodeSelection or nodes.table is not table:
        return False
    rows = nodes.rows
    if rows is table.all_rows:
        return True
    if not (_has(nodes, rows=np.ndarray) and rows.dtype == _INT64 and rows.ndim == 1):
        return False
    if not len(rows):
        return True
    # Rows in the table's order, as most are, are distinct and between the first and the last one.
    if (rows[1:] > rows[:-1]).all():
        return bool(rows[0] >= 0 and rows[-1] < len(table))
    return bool(rows.min() >= 0 and rows.max() < len(table)) and len(np.unique(rows)) == len(rows)


def as_placement_scores(hook: str, answer: object, names: Sequence[str]) -> Mapping[str, int]:
    """Return scores of 0–100 by the names of placements."""
    if not isinstance(answer, Mapping):
        raise _wrong(hook, answer)
    if missing := [name for name in names if name not in answer]:
        raise PluginFailure(f"{hook} must return {EXPECTED[hook]}; there is none for {shown(missing[0])}")
    scores = {name: as_integer(hook, answer[name]) for name in names}
    for score in scores.values():
        if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
            raise PluginFailure(f"placement score {score} isn't within [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}]")
    return scores


def as_events(hook: str, answer: object) -> tuple[ClusterEvent, ...]:
    events = _listed(hook, answer, ClusterEvent)
    if (never := next((event for event in events if not event.can_happen), None)) is not None:
        raise PluginFailure(f"{hook} names {never.why_never}")
    return events


def as_hint(hook: str, answer: object) -> QueueingHint:
    # A pod that a forgotten `return` leaves in the queue would wait for ever.
    if isinstance(answer, QueueingHint):
        return answer
    raise _wrong(hook, answer)


def as_pre_hint(hook: str, answer: object) -> bool:
    # None, of a forgotten `return`, isn't False: it would keep every pod from being woken.
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise _wrong(hook, answer)


def as_evidence(hook: str, answer: object) -> tuple[Evidence, ...]:
    found = _listed(hook, answer, Evidence)
    for each in found:
        if not _has(each, asked=str, found=str):
            raise _wrong(hook, each)
    return found


def shown(answer: object) -> str:
    """Return an answer in a few words on one line, whatever it is; an array by its type and shape."""
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype} of shape {answer.shape}"
    try:
        text = _repr.repr(answer)
    # A plugin's object, so `__repr__` may raise anything.
    except HOOK_FAILURES:
        text = f"a {type(answer).__name__}"
    return printable(text, _LONGEST)


def _listed(hook: str, answer: object, kind: type[_ListedT], most: int = _MOST) -> tuple[_ListedT, ...]:
    """Return the items of an answer, at most so many: it may be an iterator without an end."""
    # An empty text or dict would pass for a list of nothing.
    if not isinstance(answer, Iterable) or isinstance(answer, str | bytes | Mapping):
        raise _wrong(hook, answer)
    items: Sequence[object] = tuple(islice(answer, most + 1))
    if len(items) > most:
        raise PluginFailure(f"{hook} must return at most {most:,} items, and there are more")
    for each in items:
        if type(each) is not kind:
            raise _wrong(hook, each)
    return cast("tuple[_ListedT, ...]", items)


def _has(answer: object, **types: type | UnionType) -> bool:
    """Return whether the attributes have these types."""
    return all(isinstance(getattr(answer, name), type) for name, type in types.items())


def _wrong(hook: str, answer: object) -> PluginFailure:
    return PluginFailure(f"{hook} must return {EXPECTED[hook]}, not {shown(answer)}")
