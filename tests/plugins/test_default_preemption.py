"""DefaultPreemption: the plugin around the evaluator, as a profile runs it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from kschedfw import make_pod_group
from kschedfw.api.pod import Pod, PreemptionPolicy
from kschedfw.config import default_profile
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.gate_table import (
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    WORKLOAD_AWARE_PREEMPTION,
)
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.results import NominatingMode, PostFilterResult
from kschedfw.framework.runtime.args import ArgsError, plugin_args
from kschedfw.framework.status import Code, Status
from kschedfw.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from kschedfw.scheduler import Cache, FitError, GenericScheduler
from tests.framework.preemption.scenes import MARKED, Scene, budget, names, node, pod, scene
from tests.framework.support import plugin

PLUGINS = (NodeResourcesFit, DefaultPreemption)
FIELDS = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute")


def full(*pods: Pod, nodes: int = 1, **options: object) -> Scene:
    return scene([node(f"n{i}") for i in range(nodes)], pods, plugins=PLUGINS, **options)  # type: ignore[arg-type]


def post_filter(
    made: Scene, preemptor: Pod, refusals: NodeToStatus | None = None
) -> tuple[PostFilterResult | None, Status]:
    """The pod is in the cluster, and every node has refused it."""
    if made.cluster.get(Pod, preemptor.key) is None:
        made.cluster.add(preemptor)
    statuses = made.refused() if refusals is None else refusals
    return made.framework.run_post_filter_plugins(made.state(preemptor), preemptor, statuses)


_TAS, _WAP = TOPOLOGY_AWARE_WORKLOAD_SCHEDULING, WORKLOAD_AWARE_PREEMPTION
_GONE = "pod group for pod not found"
_BY_PLACEMENT = "not eligible due to placement-based pod group scheduling limitation"
_AS_A_WHOLE = "not eligible due to workload aware preemption enabled"


class TestMembersOfGroups:
    """Why a member doesn't preempt by itself: with the gate for placements its group decides, else the gates alone."""

    @pytest.mark.parametrize(
        ("gates", "group", "objection"),
        [
            ((), None, ""),
            ((), "constrained", ""),
            ((_TAS,), None, _GONE),
            ((_TAS,), "plain", ""),
            ((_TAS,), "constrained", _BY_PLACEMENT),
            ((_WAP,), None, _AS_A_WHOLE),
            ((_WAP,), "constrained", _AS_A_WHOLE),
            ((_TAS, _WAP), None, _GONE),
            ((_TAS, _WAP), "plain", _AS_A_WHOLE),
            ((_TAS, _WAP), "constrained", _BY_PLACEMENT),
        ],
    )
    def test_objections(self, gates: tuple[str, ...], group: str | None, objection: str) -> None:
        made = full(
            pod("low", 500, on="n0"), gates=FeatureGates.of(GENERIC_WORKLOAD, GANG_SCHEDULING, *gates)
        )
        if group is not None:
            builder = make_pod_group("g")
            made.cluster.add((builder.topology("rack") if group == "constrained" else builder).build())
        member = pod("member", 500, priority=1, build=lambda builder: builder.group("g"))
        result, status = post_filter(made, member)
        assert status.message == (f"preemption: {objection}" if objection else "")
        assert (result is None) is bool(objection)


class TestPostFilter:
    def test_a_more_important_pod_gets_its_place(self) -> None:
        made = full(pod("low", 500, on="n0"))
        result, status = post_filter(made, pod("p", 500, priority=1))
        assert status.is_success
        assert result == PostFilterResult("n0", NominatingMode.OVERRIDE)
        assert not made.is_there("low")

    def test_an_equally_important_one_does_not(self) -> None:
        made = full(pod("equal", 500, on="n0"))
        result, status = post_filter(made, pod("p", 500))
        assert status.reasons == (
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        )
        assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "DefaultPreemption")
        assert result == PostFilterResult.nominate("")
        assert made.is_there("equal")

    def test_nodes_that_preemption_can_not_help_are_counted_as_such(self) -> None:
        made = full(pod("low", 500, on="n0"), nodes=2)
        _, status = post_filter(made, pod("p", 500, priority=1), NodeToStatus())
        assert status.message == (
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )

    def test_a_pod_that_may_not_preempt_keeps_its_nomination(self) -> None:
        made = full(pod("low", 500, on="n0"))
        preemptor = pod("p", 500, priority=1, policy=PreemptionPolicy.NEVER)
        assert post_filter(made, preemptor) == (
            None,
            Status.unschedulable("preemption: not eligible due to preemptionPolicy=Never.").with_plugin(
                "DefaultPreemption"
            ),
        )

    def test_an_error_is_introduced_too_and_names_the_plugin(self) -> None:
        def fail(node_info: object) -> Status:
            raise LookupError("failed to remove pod")

        broken = plugin("test-plugin", pre_filter=lambda: None, pre_filter_remove_pod=fail)
        made = scene([node("n0")], [pod("low", 500, on="n0")], plugins=(*PLUGINS, broken))
        result, status = post_filter(made, pod("p", 500, priority=1))
        assert result is None
        assert (status.code, status.plugin) == (Code.ERROR, "DefaultPreemption")
        assert status.message == (
            'preemption: running RemovePod on PreFilter plugin "test-plugin": LookupError: failed to remove pod'
        )

    def test_budgets_come_from_the_cluster(self) -> None:
        foo = {"app": "foo"}
        made = full(
            pod("protected", 500, on="n0", labels=foo),
            pod("free", 500, on="n1", priority=1),
            nodes=2,
            budgets=[budget(0, foo)],
        )
        result, _ = post_filter(made, pod("p", 500, priority=2))
        assert result == PostFilterResult.nominate("n1")


def test_it_does_not_preempt_again_while_victims_terminate() -> None:
    made = full(pod("v", 500, on="n0", terminating=True, conditions=[MARKED]), pod("other", on="n0"))
    preemptor = pod("p", 500, priority=1, nominated="n0")
    result, status = post_filter(made, preemptor)
    assert result is None
    assert status.message == "preemption: not eligible due to a terminating pod on the nominated node."
    assert made.is_there("other")


def test_plan_says_the_same_and_does_nothing() -> None:
    made = full(pod("low", 500, on="n0"))
    preemptor = pod("p", 500, priority=1)
    preemption = made.framework.plugins["DefaultPreemption"]
    assert isinstance(preemption, DefaultPreemption)

    plan = preemption.plan(made.state(preemptor), preemptor, made.refused())
    assert plan.chosen is not None
    assert (plan.chosen.node_name, names(plan.chosen.victims.pods)) == ("n0", ["low"])
    assert made.is_there("low")

    refused = preemption.plan(made.state(preemptor), pod("q", 500), made.refused())
    assert refused.status.message.startswith("preemption: 0/1 nodes are available: ")


def test_the_message_ends_the_fit_error_and_after_preemption_the_pod_fits() -> None:
    made = full(pod("low", 500, on="n0"), pod("high", 500, on="n1", priority=5), nodes=2)
    cache = Cache()
    for info in made.snapshot.node_infos:
        cache.add_node(info.node)
        for pod_info in info.pods:
            cache.add_pod(pod_info.pod)
    scheduler = GenericScheduler(cache, made.snapshot, random=made.framework.handle.random)

    def attempt(preemptor: Pod) -> tuple[str, str]:
        """Where the pod is nominated to, and what its condition would say."""
        made.cluster.add(preemptor)
        state = made.state(preemptor)
        with pytest.raises(FitError) as raised:
            scheduler.schedule(made.framework, state, preemptor)
        diagnosis = raised.value.diagnosis
        result, status = made.framework.run_post_filter_plugins(state, preemptor, diagnosis.node_to_status)
        diagnosis.post_filter_message = status.message
        return ("" if result is None else result.nominated_node_name), str(raised.value)

    nominated, text = attempt(pod("too-low", 500))
    assert nominated == ""
    assert text == (
        "0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )
    preemptor = pod("p", 500, priority=5)
    assert attempt(preemptor) == ("n0", "0/2 nodes are available: 2 Insufficient cpu.")

    cache.remove_pod(pod("low", on="n0"))
    result = scheduler.schedule(made.framework, made.state(preemptor), preemptor)
    assert result.suggested_host == "n0"


class TestArgs:
    def test_the_defaults_are_kube_schedulers(self) -> None:
        assert plugin_args("DefaultPreemption", DefaultPreemptionArgs, None) == DefaultPreemptionArgs(10, 100)

    @pytest.mark.parametrize("given", [{"minCandidateNodesPercentage": 0}, {"minCandidateNodesAbsolute": 0}])
    def test_one_of_them_may_be_zero(self, given: Mapping[str, int]) -> None:
        args = plugin_args("DefaultPreemption", DefaultPreemptionArgs, given)
        assert isinstance(args, DefaultPreemptionArgs)
        assert 0 in attrs.astuple(args)

    @pytest.mark.parametrize(
        ("percentage", "absolute", "errors"),
        [
            (-1, 100, ["minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]"]),
            (101, 100, ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"]),
            (10, -1, ["minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"]),
            (
                0,
                0,
                [
                    f"{field}: Invalid value: 0: cannot be zero at the same time as {other}"
                    for field, other in (FIELDS, FIELDS[::-1])
                ],
            ),
        ],
    )
    def test_what_is_wrong_is_told_in_kube_schedulers_words(
        self, percentage: int, absolute: int, errors: list[str]
    ) -> None:
        given = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
        with pytest.raises(ArgsError) as raised:
            plugin_args("DefaultPreemption", DefaultPreemptionArgs, given)
        assert [str(error) for error in raised.value.errors] == errors


def test_the_default_profile_has_it_between_devices_and_balance() -> None:
    listed = [each.name for each in default_profile().multi_point]
    place = listed.index("DefaultPreemption")
    assert listed[place - 1 : place + 2] == [
        "DynamicResources",
        "DefaultPreemption",
        "NodeResourcesBalancedAllocation",
    ]


def test_it_makes_room_for_pods_and_groups_and_holds_back_whom_it_evicts_for() -> None:
    framework = full().framework
    points = [point for point in ExtensionPoint if "DefaultPreemption" in framework.plugins_at(point)]
    assert points == [
        ExtensionPoint.PRE_ENQUEUE,
        ExtensionPoint.POST_FILTER,
        ExtensionPoint.POD_GROUP_POST_FILTER,
    ]
