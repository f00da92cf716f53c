"""Whom a pod preempts, node by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import pytest
from kschedfw_capacity import CapacityScheduling, ElasticQuota
from tests.scenes import node, pod, quota, terminating

from kschedfw import Node, NodeToStatus, Pod, Status, read_manifests
from kschedfw.api.pod import PodCondition
from kschedfw.preemption import PreemptionPlan
from kschedfw.testing import FrameworkHarness

BOTH = (quota("a", 4), quota("b", 4))
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget, namespace: b}
spec: {selector: {matchLabels: {app: protected}}}
status: {disruptionsAllowed: 0}
"""


def preempted(of: Pod) -> Pod:
    """Terminating, because a scheduler wanted it so."""
    condition = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    gone = terminating(of)
    return attrs.evolve(gone, status=attrs.evolve(gone.status, conditions=(condition,)))


def plan_of(
    waiting: Pod,
    *pods: Pod,
    quotas: Iterable[ElasticQuota] = BOTH,
    nodes: Iterable[Node] = (node(cpu=8),),
    manifests: Sequence[Path] = (),
) -> PreemptionPlan:
    objects = [*quotas, *read_manifests(*manifests).objects()]
    made = FrameworkHarness(CapacityScheduling, "NodeResourcesFit", nodes=nodes, pods=pods, objects=objects)
    made.pre_filter(waiting)
    plugin = made.framework.plugins["CapacityScheduling"]
    assert isinstance(plugin, CapacityScheduling)
    refused = NodeToStatus({info.name: Status.unschedulable("full") for info in made.snapshot.node_infos})
    return plugin.plan(made.state, waiting, refused)


def victims(
    waiting: Pod,
    *pods: Pod,
    quotas: Iterable[ElasticQuota] = BOTH,
    nodes: Iterable[Node] = (node(cpu=8),),
    manifests: Sequence[Path] = (),
) -> dict[str, list[str]]:
    """The keys of those whom the pod would preempt, by node; sorted."""
    candidates = plan_of(waiting, *pods, quotas=quotas, nodes=nodes, manifests=manifests).candidates
    return {each.node_name: sorted(pod.key for pod in each.victims.pods) for each in candidates}


class TestWithinItsMin:
    def test_it_takes_back_from_borrowers_as_much_as_it_needs(self) -> None:
        lent = [pod(f"b/{i}", 2, on="n") for i in range(4)]
        assert victims(pod("a/p", 2), *lent) == {"n": ["b/3"]}
        assert victims(pod("a/p", 4), *lent) == {"n": ["b/2", "b/3"]}

    def test_the_least_important_go_first(self) -> None:
        lent = [pod(f"b/{i}", 2, on="n", priority=10 - i % 2) for i in range(4)]
        assert victims(pod("a/p", 4), *lent) == {"n": ["b/1", "b/3"]}

    def test_those_who_keep_to_their_min_are_safe(self) -> None:
        within = [pod("b/0", 4, on="n"), pod("c/0", 4, on="n")]
        quotas = (*BOTH, quota("c", 4))
        assert victims(pod("a/p", 4, priority=100), *within, quotas=quotas) == {}

    def test_of_two_borrowers_neither_is_taken_below_its_min(self) -> None:
        quotas = (quota("a", 4), quota("b", 2), quota("c", 2))
        lent = [pod(f"{namespace}/{i}", 1, on="n") for namespace in "bc" for i in range(4)]
        assert victims(pod("a/p", 4), *lent, quotas=quotas) == {"n": ["b/2", "b/3", "c/2", "c/3"]}

    def test_its_own_pods_stay_however_unimportant(self) -> None:
        own = [pod("a/0", 2, on="n", priority=-5)]
        lent = [pod("b/0", 3, on="n"), pod("b/1", 3, on="n")]
        assert victims(pod("a/p", 2), *own, *lent) == {"n": ["b/1"]}

    def test_pods_without_quota_stay(self) -> None:
        assert victims(pod("a/p", 4, priority=1), pod("c/0", 8, on="n")) == {}

    def test_disruption_budgets_are_spared_where_others_will_do(self, tmp_path: Path) -> None:
        lent = [
            pod("b/0", 2, on="n", priority=1),
            pod("b/1", 2, on="n", labels={"app": "protected"}),
            pod("b/2", 2, on="n", priority=1),
            pod("b/3", 2, on="n", labels={"app": "protected"}),
        ]
        quotas = (quota("a", 8), quota("b", 0))
        file = tmp_path / "budget.yaml"
        file.write_text(BUDGET, encoding="utf-8")
        assert victims(pod("a/p", 4), *lent, quotas=quotas, manifests=[file]) == {"n": ["b/0", "b/2"]}

    def test_room_on_the_node_is_not_enough_if_the_quotas_are_used_up(self) -> None:
        lent = [pod(f"b/{i}", 2, on="n") for i in range(4)]
        assert victims(pod("a/p", 2), *lent, nodes=[node(cpu=100)]) == {"n": ["b/3"]}

    def test_nor_are_the_quotas_if_there_is_no_room_on_the_node(self) -> None:
        lent = [pod(f"b/{i}", 2, on="n") for i in range(4)]
        assert victims(pod("a/p", 4), *lent, nodes=[node(cpu=9)]) == {"n": ["b/2", "b/3"]}
        assert victims(pod("a/p", 4), *lent, nodes=[node("m", 3), node(cpu=8)]) == {"n": ["b/2", "b/3"]}

    def test_several_nodes_can_not_make_room_together(self) -> None:
        lent = [pod("b/0", 4, on="m"), pod("b/1", 2, on="n"), pod("b/2", 2, on="n")]
        nodes = [node("m", 4), node("n", 4)]
        assert victims(pod("a/p", 3), *lent, nodes=nodes) == {"m": ["b/0"], "n": ["b/1", "b/2"]}
        assert victims(pod("a/p", 4), *lent, nodes=[node("m", 3), node("n", 3)]) == {}


class TestBeyondItsMin:
    def test_it_preempts_less_important_pods_of_its_own(self) -> None:
        own = [pod("a/0", 4, on="n"), pod("a/1", 2, on="n", priority=1)]
        assert victims(pod("a/p", 2, priority=1), *own, pod("b/0", 2, on="n")) == {"n": ["a/0"]}

    def test_equally_important_ones_are_safe(self) -> None:
        assert victims(pod("a/p", 2, priority=1), pod("a/0", 8, on="n", priority=1)) == {}

    def test_borrowers_are_safe_from_other_borrowers(self) -> None:
        assert victims(pod("a/p", 5, priority=9), pod("b/0", 6, on="n")) == {}

    def test_its_max_can_be_kept_by_its_own_victims(self) -> None:
        quotas = (quota("a", 2, 4), quota("b", 6))
        own = [pod("a/0", 2, on="n"), pod("a/1", 2, on="n")]
        nodes = [node(cpu=100)]
        assert victims(pod("a/p", 2, priority=1), *own, quotas=quotas, nodes=nodes) == {"n": ["a/1"]}
        assert victims(pod("a/p", 5, priority=1), *own, quotas=quotas, nodes=nodes) == {}


class TestWithoutQuota:
    def test_it_preempts_less_important_pods_without_quota(self) -> None:
        others = [pod("c/0", 4, on="n"), pod("b/0", 4, on="n")]
        assert victims(pod("d/p", 4, priority=1), *others) == {"n": ["c/0"]}

    def test_pods_with_a_quota_are_safe(self) -> None:
        assert victims(pod("d/p", 4, priority=1), pod("b/0", 8, on="n")) == {}


class TestPodsThatAreBeingDeleted:
    """They leave in any case, so that nobody else has to for what they leave."""

    @pytest.mark.parametrize("going", range(4))
    def test_they_are_the_first_to_leave(self, going: int) -> None:
        lent = [pod(f"b/{i}", 2, on="n", priority=i) for i in range(4)]
        lent[going] = terminating(lent[going])
        assert victims(pod("a/p", 2), *lent) == {"n": [f"b/{going}"]}
        least = next(f"b/{i}" for i in range(4) if i != going)
        assert victims(pod("a/p", 4), *lent) == {"n": sorted([f"b/{going}", least])}

    def test_also_if_a_disruption_budget_covers_them(self, tmp_path: Path) -> None:
        lent = [pod("b/0", 4, on="n"), terminating(pod("b/1", 4, on="n", labels={"app": "protected"}))]
        file = tmp_path / "budget.yaml"
        file.write_text(BUDGET, encoding="utf-8")
        plan = plan_of(pod("a/p", 4), *lent, manifests=[file])
        assert plan.chosen is not None
        assert [each.key for each in plan.chosen.victims.pods] == ["b/1"]
        assert plan.chosen.victims.num_pdb_violations == 0

    def test_also_if_their_namespace_keeps_to_its_min(self) -> None:
        within, borrower = terminating(pod("b/0", 4, on="n")), pod("c/0", 4, on="n")
        quotas = (*BOTH, quota("c", 0))
        assert victims(pod("a/p", 4), within, borrower, quotas=quotas) == {"n": ["b/0"]}

    def test_also_if_it_would_keep_to_its_min_without_some_of_them(self) -> None:
        going = [terminating(pod(f"b/{i}", 3, on="n")) for i in range(3)]
        quotas = (quota("a", 9), quota("b", 4), quota("c", 0))
        found = victims(pod("a/p", 9), *going, pod("c/0", 4, on="n"), quotas=quotas, nodes=[node(cpu=13)])
        assert found == {"n": ["b/0", "b/1", "b/2"]}

    def test_also_for_who_exceeds_its_min_or_has_no_quota(self) -> None:
        own, others = pod("a/0", 4, on="n"), terminating(pod("b/0", 4, on="n", priority=9))
        assert victims(pod("a/p", 4, priority=1), own, others) == {"n": ["b/0"]}
        free = pod("c/0", 4, on="n")
        assert victims(pod("d/p", 4, priority=1), free, others) == {"n": ["b/0"]}

    def test_where_they_suffice_is_the_best_node(self) -> None:
        cheap, going = pod("b/0", 4, on="m", priority=-9), terminating(pod("b/1", 4, on="n", priority=9))
        plan = plan_of(pod("a/p", 4), cheap, going, nodes=[node("m", 4), node("n", 4)])
        assert plan.chosen is not None
        assert plan.chosen.node_name == "n"

    def test_where_they_do_not_the_others_decide(self) -> None:
        there = [
            terminating(pod("b/0", 2, on="m", priority=9)),
            pod("b/1", 2, on="m", priority=1),
            pod("b/2", 4, on="n", priority=2),
        ]
        quotas = (quota("a", 8), quota("b", 0))
        plan = plan_of(pod("a/p", 4), *there, quotas=quotas, nodes=[node("m", 4), node("n", 4)])
        assert plan.chosen is not None
        assert [each.key for each in plan.chosen.victims.pods] == ["b/1", "b/0"]

    def test_a_pod_waits_for_its_own_victims_and_for_nobody_else(self) -> None:
        waiting = pod("a/p", 4, nominated="n")
        there = [pod("b/0", 2, on="n"), pod("b/1", 4, on="n")]
        plan = plan_of(waiting, preempted(pod("b/2", 2, on="n")), *there)
        assert plan.status.message == "not eligible due to a terminating pod on the nominated node."
        plan = plan_of(waiting, terminating(pod("b/2", 2, on="n")), *there)
        assert plan.chosen is not None
        assert [each.key for each in plan.chosen.victims.pods] == ["b/1", "b/2"]
