"""Runs the pre_filters, and the pre_scores, of a plan: prepared answers in their places, and calls of other hooks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.results import PreFilterResult, no_nodes_left
from kschedfw.framework.runtime.engine.kept import HookStep
from kschedfw.framework.runtime.hook_answers import as_left_over, as_status
from kschedfw.framework.status import Code, Status

_SUCCESS, _SKIP = Status.success(), Status.skip()
_NONE: frozenset[str] = frozenset()


def run_pre_filters(
    steps: Sequence[HookStep], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
    """Write the prepared state, and call the remaining pre_filters; see `Framework.run_pre_filter_plugins`."""
    prepared = _NONE
    skipped: list[str] = []
    narrowing: set[str] = set()
    result: PreFilterResult | None = None
    rejection = _SUCCESS
    try:
        for written, skips, name, hook in steps:
            # In profile order: a hook finds in the state what the hooks before it wrote.
            if written is not None:
                state.take(written)
            if skips:
                prepared = joined(prepared, skips) if prepared else skips
            if hook is None:
                continue
            try:
                answer = hook(state, pod, nodes)
                if answer is None:
                    continue
                if answer is _SKIP:
                    skipped.append(name)
                    continue
                answer = as_left_over("pre_filter", answer)
            except HOOK_FAILURES as error:
                answer = Status.from_error(error)
            if isinstance(answer, PreFilterResult):
                narrowing.add(name)
                result = answer.intersect(result)
                if not result.node_names:
                    return result, no_nodes_left(narrowing), frozenset(narrowing)
                continue
            match answer.code:
                case Code.SKIP:
                    skipped.append(name)
                case Code.SUCCESS:
                    pass
                case Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return None, answer.with_plugin(name), _NONE
                case Code.UNSCHEDULABLE:
                    # Of several the last one counts, as in kube-scheduler.
                    rejection = answer.with_plugin(name)
                case _:
                    answer = HOOKS["pre_filter"].explained(answer)
                    return None, answer.prefixed(f'running PreFilter plugin "{name}"', name), _NONE
        return result, rejection, frozenset(narrowing) if narrowing else _NONE
    finally:
        # Also after a refusal: preemption's dry runs must not call filters whose pre_filter skipped.
        state.skip_filter_plugins = joined(prepared, tuple(skipped))


def run_pre_scores(
    steps: Sequence[HookStep], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> Status:
    """Write the prepared state, and call the remaining pre_scores; see `Framework.run_pre_score_plugins`."""
    prepared = _NONE
    skipped: list[str] = []
    try:
        for written, skips, name, hook in steps:
            if written is not None:
                state.take(written)
            if skips:
                prepared = joined(prepared, skips) if prepared else skips
            if hook is None:
                continue
            try:
                answer = hook(state, pod, nodes)
                if answer is None:
                    continue
                if answer is _SKIP:
                    skipped.append(name)
                    continue
                status = as_status("pre_score", answer)
            except HOOK_FAILURES as error:
                status = Status.from_error(error)
            if status.is_skip:
                skipped.append(name)
            elif not status.is_success:
                status = HOOKS["pre_score"].explained(status)
                return status.prefixed(f'running PreScore plugin "{name}"', name)
        return _SUCCESS
    finally:
        state.skip_score_plugins = joined(prepared, tuple(skipped))


# The sets are few, and found again as one object their hash is computed once.
@lru_cache(maxsize=1024)
def joined(names: frozenset[str], more: frozenset[str] | tuple[str, ...]) -> frozenset[str]:
    """Return the union of both."""
    return names.union(more)
