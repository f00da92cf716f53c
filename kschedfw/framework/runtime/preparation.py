"""Calls hooks once for all pods of a class, where they promise that this is enough (`per_signature`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.runtime.hooks import Hook, is_per_signature
from kschedfw.framework.runtime.pod_class import Preparation
from kschedfw.framework.status import Status


def prepare(
    hook_name: str,
    hooks: Sequence[tuple[str, Hook]],
    plugins: Mapping[str, AnyPlugin],
    kept: Collection[str],
    pod: Pod,
    nodes: Sequence[NodeInfo],
) -> Preparation:
    """Call the pre_filter (or pre_score) hooks of a class of pods that promise to be the same for all of them.

    Only plugins whose signatures are `kept` can promise that for the class.

    A hook that answers anything but success or SKIP is left to be called for every pod.
    """
    written = CycleState()
    skipped: set[str] = set()
    left: list[tuple[str, Hook]] = []
    for name, hook in hooks:
        if name not in kept or not is_per_signature(plugins[name], hook_name):
            left.append((name, hook))
            continue
        own = CycleState()
        try:
            answer = hook(own, pod, nodes)
        except HOOK_FAILURES:
            left.append((name, hook))
            continue
        if answer is None or (isinstance(answer, Status) and answer.is_success):
            written.take(own)
        elif isinstance(answer, Status) and answer.is_skip:
            written.take(own)
            skipped.add(name)
        else:
            left.append((name, hook))
    return Preparation(written, frozenset(skipped), tuple(left))
