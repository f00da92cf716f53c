"""Checks of post_filter and the hooks of the binding cycle."""

from __future__ import annotations

from kschedfw import Code, CycleState, NodeToStatus, Pod, PreBindPreFlightResult, Status
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.testing.plugin_contract.stage import NewStage, PlacedPod, PluginStage, difference, on_stages
from kschedfw.testing.plugin_contract.subject import Subject, violated

_PRE_FLIGHT_CODES = frozenset({Code.SUCCESS, Code.ERROR, *(HOOKS["pre_bind_pre_flight"].codes or ())})


class BindingChecks(Subject):
    """Checks that each hook does its work, and reports a failure as a status."""

    @on_stages("post_filter")
    def test_post_filter_nominates_a_node_that_exists_and_only_tries_things_out(
        self, new_stage: NewStage
    ) -> None:
        stage = new_stage()
        for pod in stage.pods:
            state = CycleState()
            stage.framework.run_pre_filter_plugins(state, pod)
            before = stage.surroundings()
            refused = NodeToStatus(absent=Status.unschedulable("node(s) were refused by the test"))
            result, _ = stage.hooks.post_filter(state, pod, refused)
            node_name = "" if result is None else result.nominated_node_name
            if node_name and stage.snapshot.find(node_name) is None:
                violated(
                    f"{self._name}.post_filter nominates {node_name!r}, and there is no such node",
                    "`PostFilterResult.nominate` takes the name of a node of the snapshot",
                )
            changed = difference(before, stage.surroundings())
            if changed.startswith(("the NodeInfo", "the order", "the columns", "the pod")):
                violated(
                    f"{self._name}.post_filter changes {changed}",
                    "what if this pod were gone? is asked on `node_info.clone()` and `state.clone()`: the snapshot "
                    "belongs to the cycle",
                )

    @on_stages("pre_bind_pre_flight")
    def test_pre_bind_pre_flight_says_whether_there_is_work_to_do_and_does_none(
        self, new_stage: NewStage
    ) -> None:
        for stage, placed in _placed(new_stage):
            before = stage.surroundings()
            answer = stage.hooks.answer("pre_bind_pre_flight", placed.state, placed.pod, placed.node_name)
            if not (
                answer is None
                or isinstance(answer, PreBindPreFlightResult)
                or (isinstance(answer, Status) and answer.code in _PRE_FLIGHT_CODES)
            ):
                violated(
                    f"{self._name}.pre_bind_pre_flight returned {answer!r}",
                    "return None or a PreBindPreFlightResult where pre_bind has work to do, and Skip where it has "
                    "not; it can't reject a pod",
                )
            if changed := difference(before, stage.surroundings()):
                violated(
                    f"{self._name}.pre_bind_pre_flight changes {changed}",
                    "it only says what pre_bind will do: the pod may still have to wait for permission",
                )

    @on_stages("pre_bind")
    def test_pre_bind_prepares_and_does_not_bind(self, new_stage: NewStage) -> None:
        for stage, placed in _placed(new_stage):
            stage.hooks.status("pre_bind", placed.state, placed.pod, placed.node_name)
            if (bound := _node_of(stage, placed.pod)) is not None:
                violated(
                    f"{self._name}.pre_bind binds the pod, to {bound!r}",
                    "binding is for the hook `bind`: the pre_bind of another plugin may still fail",
                )

    @on_stages("bind")
    def test_bind_binds_to_the_chosen_node_or_says_why_not(self, new_stage: NewStage) -> None:
        for stage, placed in _placed(new_stage):
            status = stage.hooks.status("bind", placed.state, placed.pod, placed.node_name)
            bound = _node_of(stage, placed.pod)
            if bound != (placed.node_name if status.is_success else None):
                violated(
                    f"{self._name}.bind answered {status.code}; the pod, for {placed.node_name!r}, is "
                    + ("not bound" if bound is None else f"bound to {bound!r}"),
                    "success means that the pod is bound to the node given, in the cluster "
                    "(`self.handle.cluster.bind`); Skip leaves it to the next plugin, and a refusal is an error: "
                    "both with the pod not bound",
                )

    @on_stages("bind")
    def test_bind_fails_with_a_status_for_a_pod_that_is_gone(self, new_stage: NewStage) -> None:
        for stage, placed in _placed(new_stage):
            stage.cluster.delete(placed.pod)
            status = stage.hooks.status("bind", placed.state, placed.pod, placed.node_name)
            if status.is_success:
                violated(
                    f"{self._name}.bind answered Success for a pod that was deleted meanwhile",
                    "bind by `self.handle.cluster.bind`, which refuses it, and answer with `Status.from_error`",
                )

    @on_stages("post_bind")
    def test_post_bind_never_fails(self, new_stage: NewStage) -> None:
        for stage, placed in _placed(new_stage):
            stage.cluster.bind(placed.pod, placed.node_name)
            arguments = placed.state, placed.pod, placed.node_name
            stage.hooks.answer("post_bind", *arguments)
            stage.cluster.delete(placed.pod)
            stage.hooks.answer("post_bind", *arguments)


def _placed(new_stage: NewStage) -> list[tuple[PluginStage, PlacedPod]]:
    """Return each pod that finds a node, reserved and permitted on a new stage."""
    found = []
    for number in range(len(new_stage().pods)):
        stage = new_stage()
        placed = stage.reserve(stage.pods[number])
        if placed is not None:
            stage.permit(placed)
            found.append((stage, placed))
    return found


def _node_of(stage: PluginStage, pod: Pod) -> str | None:
    """Return the name of the node that the pod is bound to in the cluster; None if there is none."""
    stored = stage.cluster.get(Pod, pod.key)
    return stored.node_name or None if stored is not None else None
