"""Whom a pod preempts, node by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
from kschedfw_capacity import CapacityScheduling, ElasticQuota
from tests.scenes import node, pod, quota

from kschedfw import Node, NodeToStatus, Pod, Status, read_manifests
from kschedfw.testing import FrameworkHarness

BOTH = (quota("a", 4), quota("b", 4))
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget, namespace: b}
spec: {selector: {matchLabels: {app: protected}}}
status: {disruptionsAllowed: 0}
"""


def terminating(of: Pod) -> Pod:
    gone = attrs.evolve(of.metadata, deletion_timestamp=datetime.fromtimestamp(0, UTC))
    return of.with_metadata(gone)


def victims(
    waiting: Pod,
    *pods: Pod,
    quotas: Iterable[ElasticQuota] = BOTH,
    nodes: Iterable[Node] = (node(cpu=8),),
    manifests: Sequence[Path] = (),
) -> dict[str, list[str]]:
    """The keys of those whom the pod would preempt, by node; sorted."""
    objects = [*quotas, *read_manifests(*manifests).objects()]
    made = FrameworkHarness(CapacityScheduling, "NodeResourcesFit", nodes=nodes, pods=pods, objects=objects)
    made.pre_filter(waiting)
    plugin = made.framework.plugins["CapacityScheduling"]
    assert isinstance(plugin, CapacityScheduling)
    refused = NodeToStatus({info.name: Status.unschedulable("full") for info in made.snapshot.node_infos})
    plan = plugin.plan(made.state, waiting, refused)
    return {each.node_name: sorted(pod.key for pod in each.victims.pods) for each in plan.candidates}


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

    def test_what_goes_anyway_is_counted_first(self) -> None:
        lent = [pod("b/0", 3, on="n"), terminating(pod("b/1", 3, on="n", priority=5))]
        assert victims(pod("a/p", 3), *lent) == {"n": ["b/1"]}

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
