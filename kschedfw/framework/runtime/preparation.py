"""Single calls of hooks for all pods of a class, where plugins promise that this is enough (`per_signature`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.results import PreFilterResult, no_nodes_left
from kschedfw.framework.runtime.answers.pod_class import Preparation, PreparedStep
from kschedfw.framework.runtime.hook_answers import as_left_over, as_status
from kschedfw.framework.runtime.hooks import Hook, is_per_signature
from kschedfw.framework.status import Code, Status

_SUCCESS, _SKIP = Status.success(), Status.skip()


def prepare(
    hook_name: str,
    hooks: Sequence[tuple[str, Hook]],
    plugins: Mapping[str, AnyPlugin],
    kept: Collection[str],
    pod: Pod,
    nodes: Sequence[NodeInfo],
) -> Preparation:
    """Call the pre_filter (or pre_score) hooks that promise to answer the same for all pods of the class.

    Only plugins whose signatures are `kept` can promise that for the class. A hook that answers anything but
    success or SKIP is left to be called for every pod.
    """
    steps = [PreparedStep()]
    for name, hook in hooks:
        step = steps[-1]
        if name in kept and is_per_signature(plugins[name], hook_name):
            own = CycleState()
            try:
                answer = hook(own, pod, nodes)
            except HOOK_FAILURES as error:
                answer = Status.from_error(error)
            is_skip = isinstance(answer, Status) and answer.is_skip
            if answer is None or is_skip or (isinstance(answer, Status) and answer.is_success):
                if not own.is_empty:
                    step.written = step.written or CycleState()
                    step.written.take(own)
                if is_skip:
                    step.skipped |= {name}
                continue
        step.name, step.hook = name, hook
        steps.append(PreparedStep())
    return tuple(steps)


def run_pre_filters(
    preparation: Preparation, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
    """Write the prepared state, and call the remaining pre_filters; see `Framework.run_pre_filter_plugins`."""
    skipped: set[str] = set()
    narrowing: set[str] = set()
    result: PreFilterResult | None = None
    rejection = _SUCCESS
    try:
        for step in preparation:
            name, hook = step.name, step.hook
            # In profile order: a hook finds in the state what the hooks before it wrote.
            if step.written is not None:
                state.take(step.written)
            skipped |= step.skipped
            if hook is None:
                continue
            try:
                answer = hook(state, pod, nodes)
                if answer is None:
                    continue
                if answer is _SKIP:
                    skipped.add(name)
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
                    skipped.add(name)
                case Code.SUCCESS:
                    pass
                case Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return None, answer.with_plugin(name), frozenset()
                case Code.UNSCHEDULABLE:
                    # Of several the last one counts, as in kube-scheduler.
                    rejection = answer.with_plugin(name)
                case _:
                    return None, answer.prefixed(f'running PreFilter plugin "{name}"', name), frozenset()
        return result, rejection, frozenset(narrowing)
    finally:
        # Also after a refusal: preemption's dry runs must not call filters whose pre_filter skipped.
        state.skip_filter_plugins = frozenset(skipped)


def run_pre_scores(
    preparation: Preparation, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> Status:
    """Write the prepared state, and call the remaining pre_scores; see `Framework.run_pre_score_plugins`."""
    skipped: set[str] = set()
    try:
        for step in preparation:
            name, hook = step.name, step.hook
            if step.written is not None:
                state.take(step.written)
            skipped |= step.skipped
            if hook is None:
                continue
            try:
                answer = hook(state, pod, nodes)
                if answer is None:
                    continue
                if answer is _SKIP:
                    skipped.add(name)
                    continue
                status = as_status("pre_score", answer)
            except HOOK_FAILURES as error:
                status = Status.from_error(error)
            if status.is_skip:
                skipped.add(name)
            elif not status.is_success:
                return status.prefixed(f'running PreScore plugin "{name}"', name)
        return _SUCCESS
    finally:
        state.skip_score_plugins = frozenset(skipped)
