"""Checks of pre_filter_add_pod and pre_filter_remove_pod, on a clone of the state."""

from __future__ import annotations

from collections.abc import Callable

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.status import Status
from kschedfw.testing.plugin_contract.stage import PluginStage, on_stages
from kschedfw.testing.plugin_contract.subject import Subject, concerns
from kschedfw.testing.plugin_contract.violation import violated

_ADD, _REMOVE = "pre_filter_add_pod", "pre_filter_remove_pod"


class FollowingChecks(Subject):
    """Checks that the state written by pre_filter can be cloned, and follows added and removed pods."""

    @concerns(_ADD, _REMOVE)
    def test_following_pods_is_undone_and_never_reaches_the_original_state(self) -> None:
        def check(new_stage: Callable[[], PluginStage]) -> None:
            stage = new_stage()
            for hook, other in ((_ADD, _REMOVE), (_REMOVE, _ADD)):
                if not stage.hooks.has(hook):
                    violated(
                        f"{self._name} has {other} but not {hook}",
                        "preemption's dry runs take pods off a node and put some of them back: have both, each undoing "
                        "the other",
                    )
            for pod in stage.pods:
                state = stage.begin(pod)
                if state is None or stage.name in state.skip_filter_plugins:
                    continue
                for info in stage.nodes:
                    if info.pods:
                        _there_and_back(stage, state, pod, info, info.pods[0], (_REMOVE, _ADD))
                    visitor = next((each for each in stage.pods if each is not pod), None)
                    if visitor is not None:
                        guest = PodInfo.of(visitor.bound_to(info.name))
                        _there_and_back(stage, state, pod, info, guest, (_ADD, _REMOVE))

        on_stages(self, check)


def _there_and_back(
    stage: PluginStage, state: CycleState, pod: Pod, info: NodeInfo, moved: PodInfo, hooks: tuple[str, str]
) -> None:
    before = stage.verdicts(state, pod)
    copy, node = state.clone(), info.clone()
    nodes = [node if each is info else each for each in stage.nodes]
    for hook in hooks:
        _follow(stage, hook, copy, pod, moved, node)
        stage.verdicts(copy, pod, nodes)
        _same(
            before,
            stage.verdicts(state, pod),
            f"{stage.name}.{hook} on a clone of the cycle state changes what filter answers from the original",
            "what pre_filter writes and this hook changes needs a `clone()` that copies all that changes, also what "
            "is nested; values without `clone` are shared",
        )
    _same(
        before,
        stage.verdicts(copy, pod, nodes),
        f"{stage.name}: after {hooks[0]} and {hooks[1]} of the same pod, filter answers otherwise than before",
        "each must undo the other exactly; count what is there, rather than note that something is",
    )


def _follow(
    stage: PluginStage, hook: str, state: CycleState, pod: Pod, moved: PodInfo, node_info: NodeInfo
) -> None:
    if hook == _ADD:
        node_info.add_pod(moved)
    else:
        node_info.remove_pod(moved.pod)
    stage.hooks.status(hook, state, pod, moved, node_info)


def _same(before: dict[str, Status], after: dict[str, Status], wrong: str, remedy: str) -> None:
    for node, status in before.items():
        if after[node] != status:
            violated(
                f"{wrong}: {node} was {status.code} ({status.message}), and is {after[node].code} "
                f"({after[node].message})",
                remedy,
            )
