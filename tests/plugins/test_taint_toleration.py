"""TaintToleration: nodes that repel pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.affinity import UnsatisfiableAction
from kschedfw.api.builders import PodBuilder
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.status import Code, Status
from kschedfw.plugins.pod_topology_spread.constraints import own_constraints
from kschedfw.plugins.pod_topology_spread.extents import NodeInclusion
from kschedfw.plugins.taint_toleration import TaintToleration
from kschedfw.testing import FrameworkHarness


def verdict(pod: PodBuilder, node: Node) -> Status:
    return FrameworkHarness(TaintToleration, nodes=[node]).filter(pod.build())[node.name]


def scores(pod: PodBuilder | Pod, *nodes: Node) -> dict[str, int]:
    return FrameworkHarness(TaintToleration, nodes=nodes).score(pod if isinstance(pod, Pod) else pod.build())


def dedicated(effect: str = "NoSchedule") -> Node:
    return make_node().taint("dedicated", value="gpu", effect=effect).build()


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_an_untolerated_taint_is_a_refusal_that_preemption_cannot_change(effect: str) -> None:
    status = verdict(make_pod(), dedicated(effect))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("node(s) had untolerated taint(s)",)


def test_prefer_no_schedule_refuses_nobody() -> None:
    assert verdict(make_pod(), dedicated("PreferNoSchedule")).is_success


@pytest.mark.parametrize(
    "pod",
    [
        make_pod().toleration("dedicated", value="gpu", effect="NoSchedule"),
        make_pod().toleration("dedicated", value="gpu"),
        make_pod().toleration("dedicated", effect="NoSchedule"),
        make_pod().toleration(),
        make_pod().toleration("other").toleration("dedicated"),
    ],
    ids=["exact", "any effect", "any value", "everything", "second toleration"],
)
def test_a_matching_toleration_lets_the_pod_in(pod: PodBuilder) -> None:
    assert verdict(pod, dedicated()).is_success


@pytest.mark.parametrize(
    "pod",
    [
        make_pod().toleration("dedicated", value="cpu", effect="NoSchedule"),
        make_pod().toleration("dedicated", value="gpu", effect="NoExecute"),
        make_pod().toleration("dedicated", value="gpu", effect="PreferNoSchedule"),
        make_pod().toleration("gpu"),
    ],
    ids=["other value", "other effect", "only the soft effect", "other key"],
)
def test_a_toleration_that_does_not_match_is_none(pod: PodBuilder) -> None:
    assert not verdict(pod, dedicated()).is_success


def test_every_taint_must_be_tolerated() -> None:
    node = make_node().taint("a").taint("b").build()
    assert not verdict(make_pod().toleration("a"), node).is_success
    assert verdict(make_pod().toleration("a").toleration("b"), node).is_success


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("value", ["1", "100"])
def test_comparisons_are_off_as_their_feature_gate_is(operator: str, value: str) -> None:
    hard = make_node().taint("sla", value="50").build()
    soft = make_node("soft").taint("sla", value="50", effect="PreferNoSchedule").build()
    pod = make_pod().toleration("sla", operator=operator, value=value)
    assert not verdict(pod, hard).is_success
    assert scores(pod, soft, make_node("plain").build()) == {"soft": 0, "plain": 100}


def test_fewer_untolerated_soft_taints_score_higher() -> None:
    none = make_node("none").build()
    one = make_node("one").taint("a", effect="PreferNoSchedule").build()
    three = make_node("three")
    for key in "abc":
        three.taint(key, effect="PreferNoSchedule")
    assert scores(make_pod(), none, one, three.build()) == {"none": 100, "one": 67, "three": 0}


def test_where_no_node_has_an_untolerated_soft_taint_all_are_best() -> None:
    tainted = make_node("tainted").taint("a", effect="PreferNoSchedule").build()
    plain = make_node("plain").build()
    assert scores(make_pod().toleration("a"), tainted, plain) == {"tainted": 100, "plain": 100}


def test_hard_taints_do_not_count_in_scores_nor_do_tolerations_of_hard_effects() -> None:
    soft = make_node("soft").taint("a", effect="PreferNoSchedule").build()
    hard = make_node("hard").taint("a", effect="NoExecute").build()
    pod = make_pod().toleration("a", effect="NoSchedule")
    assert scores(pod, soft, hard) == {"soft": 0, "hard": 100}


@given(st.lists(st.sets(st.sampled_from("abcde")), min_size=1, max_size=5), st.sets(st.sampled_from("abcde")))
def test_scores_are_within_bounds_and_fall_with_untolerated_taints(
    taints: list[set[str]], tolerated: set[str]
) -> None:
    nodes = []
    for index, keys in enumerate(taints):
        node = make_node(f"n{index}")
        for key in sorted(keys):
            node.taint(key, effect="PreferNoSchedule")
        nodes.append(node.build())
    pod = make_pod()
    for key in sorted(tolerated):
        pod.toleration(key)
    given_scores = scores(pod, *nodes)
    untolerated = {f"n{index}": len(keys - tolerated) for index, keys in enumerate(taints)}
    assert all(0 <= score <= 100 for score in given_scores.values())
    assert max(given_scores, key=lambda n: given_scores[n]) in {
        name for name, count in untolerated.items() if count == min(untolerated.values())
    }


def test_scoring_without_pre_score_is_an_error() -> None:
    harness = FrameworkHarness(TaintToleration, nodes=[dedicated("PreferNoSchedule")])
    nothing, status = harness.framework.run_score_plugins(
        harness.state, make_pod().build(), harness.snapshot.node_infos
    )
    assert nothing is None
    assert status.code is Code.ERROR


def test_a_node_change_helps_if_the_node_becomes_acceptable() -> None:
    node_change, _ = FrameworkHarness(TaintToleration).framework.events_to_register()["TaintToleration"]
    assert node_change.hint is not None
    pod, plain = make_pod().build(), make_node().build()
    assert node_change.hint(pod, dedicated(), plain) is QueueingHint.QUEUE
    assert node_change.hint(pod, None, plain) is QueueingHint.QUEUE
    assert node_change.hint(pod, None, dedicated()) is QueueingHint.SKIP
    assert node_change.hint(pod, plain, plain) is QueueingHint.SKIP


def test_a_new_toleration_helps_the_pod_that_got_it() -> None:
    _, change = FrameworkHarness(TaintToleration).framework.events_to_register()["TaintToleration"]
    assert change.hint is not None
    pod = make_pod().uid("a").build()
    assert change.hint(pod, pod, make_pod().uid("a").toleration("x").build()) is QueueingHint.QUEUE
    assert change.hint(pod, pod, make_pod().uid("b").toleration("x").build()) is QueueingHint.SKIP


class TestComparisons:
    """KEP-5471: the operators Gt and Lt, behind TaintTolerationComparisonOperators (alpha since v1.35)."""

    GATES = FeatureGates.of("TaintTolerationComparisonOperators")

    @staticmethod
    def pod(operator: str) -> Pod:
        toleration = {"key": "sla", "operator": operator, "value": "950", "effect": "NoSchedule"}
        spec = {"containers": [{"name": "main", "image": "app"}], "tolerations": [toleration]}
        return pod_from_manifest({"metadata": {"name": "pod"}, "spec": spec})

    @pytest.mark.parametrize(("operator", "accepted"), [("Gt", {"high"}), ("Lt", {"low"})])
    def test_decide_only_with_the_gate(self, operator: str, accepted: set[str]) -> None:
        nodes = [
            make_node(name).taint("sla", value=value, effect="NoSchedule").build()
            for name, value in (("low", "900"), ("same", "950"), ("high", "999"), ("text", "best"))
        ]

        def passing(gates: FeatureGates) -> set[str]:
            harness = FrameworkHarness(TaintToleration, nodes=nodes, feature_gates=gates)
            found = harness.filter(self.pod(operator))
            return {name for name, status in found.items() if status.is_success}

        assert passing(DEFAULT_GATES) == set()
        assert passing(self.GATES) == accepted

    def test_count_in_scores_and_in_spreading_too(self) -> None:
        soft = make_node("soft").taint("sla", value="999", effect="PreferNoSchedule").build()
        plain = make_node("plain").build()
        toleration = {"key": "sla", "operator": "Gt", "value": "950"}
        spec = {"containers": [{"name": "main", "image": "app"}], "tolerations": [toleration]}
        pod = pod_from_manifest({"metadata": {"name": "pod"}, "spec": spec})

        def scored(gates: FeatureGates) -> dict[str, int]:
            return FrameworkHarness(TaintToleration, nodes=[soft, plain], feature_gates=gates).score(pod)

        assert scored(DEFAULT_GATES) == {"soft": 0, "plain": 100}
        assert scored(self.GATES) == {"soft": 100, "plain": 100}
        hard = make_node("hard").taint("sla", value="999", effect="NoSchedule").build()
        spread = {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {},
        }
        pod = pod_from_manifest(
            {"metadata": {"name": "pod"}, "spec": {**spec, "topologySpreadConstraints": [spread]}}
        )
        (honoring,) = own_constraints(pod, UnsatisfiableAction.DO_NOT_SCHEDULE)
        found = [NodeInclusion(pod, compares).includes(hard, honoring) for compares in (False, True)]
        assert found == [False, True]
