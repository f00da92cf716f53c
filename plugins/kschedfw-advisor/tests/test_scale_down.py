"""Which nodes can go, and which cheaper ones take the place of others."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_advisor.node_groups import NodeGroup, NodeGroupError
from kschedfw_advisor.scale_down import (
    CONTROL_PLANE,
    SAFE_TO_EVICT,
    SAFE_VOLUMES,
    SCALE_DOWN_DISABLED,
    ScaleDown,
    plan_scale_down,
)
from small_clusters import REGISTRY, budget, node, owned, running, what_if

from kschedfw import InMemoryCluster, Node, Pod, Scheduler, make_pod
from kschedfw.api import EMPTY, PRICE, NodeSpec, PodDisruptionBudget, as_selector
from kschedfw.api.builders import NodeBuilder, PodBuilder
from kschedfw.api.meta import Named
from kschedfw.api.selectors import Selector
from kschedfw.framework.clock import VirtualClock
from kschedfw.scheduler import FirstByNameSelector
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import GPU, LABELS, DrawnCluster, clusters
from kschedfw.what_if.eviction import cordoned
from kschedfw.what_if.what_if import WhatIf


def priced(builder: NodeBuilder, price: str) -> Node:
    return builder.annotations({PRICE: price}).build()


def staying(name: str) -> Node:
    return node(name).annotations({SCALE_DOWN_DISABLED: "true"}).build()


def gone(found: ScaleDown) -> set[str]:
    return {name for removal in found.removals for name in removal.drain.nodes}


def why(found: ScaleDown, name: str) -> list[str]:
    return [str(reason) for reason in found.kept[name]]


class TestWhichNodesGo:
    def test_nodes_whose_pods_find_another_place_go_at_once(self) -> None:
        pods = [running("a", "n1"), running("b", "n2"), running("c", "n3", cpu=2)]
        cluster = what_if((node(name).build() for name in ("n1", "n2", "n3")), pods)
        found = plan_scale_down(cluster)
        (removal,) = found.removals
        assert removal.drain.nodes == ("n1", "n2"), "the emptiest"
        assert {step.to_node for step in removal.drain.steps} == {"n3"}
        assert [each.name for each in cluster.nodes] == ["n3"]
        assert {pod.node_name for pod in cluster.pods} == {"n3"}

    def test_of_nodes_with_prices_the_dearest_go(self) -> None:
        """Only one can go: six CPUs are requested, and a node has four. The emptiest is n1."""
        group = NodeGroup("none", node("none").build())  # instead of cheaper ones like those of the cluster
        nodes = priced(node("n1"), "1"), priced(node("n2"), "5"), priced(node("n3"), "1")
        pods = [running("a", "n1", cpu=2), *(running(f"b{n}", "n2") for n in "12"), running("c", "n3", cpu=2)]
        found = plan_scale_down(what_if(nodes, pods, running("d", "n2", cpu="100m")), [group])
        assert gone(found) == {"n2"}
        assert (found.cost, found.saved) == (Decimal(7), Decimal(5))

    def test_daemons_go_with_their_node(self) -> None:
        daemon = owned(make_pod("agent").node("n1"), "agent", "DaemonSet")
        cluster = what_if(node("n1", cpu=1).build(), node("n2").build(), daemon, running("a", "n2"))
        (removal,) = plan_scale_down(cluster).removals
        assert (removal.drain.nodes, [pod.name for pod in removal.drain.staying]) == (("n1",), ["agent"])
        assert [pod.name for pod in cluster.pods] == ["a"]

    def test_a_budget_lets_pods_go_in_rounds(self) -> None:
        pods = [running(f"web-{number}", "n1") for number in range(2)]
        cluster = what_if(node("n1").build(), staying("n2"), pods, budget("web", maxUnavailable=1))
        (removal,) = plan_scale_down(cluster).removals
        assert removal.drain.rounds == 2

    def test_no_fewer_nodes_of_a_group_than_its_min(self) -> None:
        nodes = [node(name).labels(pool="a").build() for name in ("n1", "n2", "n3")]
        group = NodeGroup("pool-a", nodes[0], min=2, selector=Selector.from_labels({"pool": "a"}))
        found = plan_scale_down(what_if(nodes), [group])
        assert len(gone(found)) == 1
        (kept, _) = found.kept
        assert why(found, kept) == ["its group must not shrink: pool-a has its min of 2"]

    def test_a_pending_pod_without_a_place_stays_pending_and_nothing_else_becomes_so(self) -> None:
        large = owned(make_pod("large").requests(cpu=64))
        cluster = what_if(node("n1").build(), node("n2").build(), running("a", "n1"), large)
        plan_scale_down(cluster)
        assert [pod.name for pod in cluster.pending] == ["large"]


class TestWhatStays:
    @pytest.mark.parametrize(
        ("pod", "reason"),
        [
            (make_pod("p"), "has no controller: nothing would make it anew"),
            (
                make_pod("p").volume("cache", {"emptyDir": {}}),
                "has data on its node, in volumes cache (emptyDir)",
            ),
            (
                make_pod("p").volume("host", {"hostPath": {"path": "/var/lib"}}),
                "has data on its node, in volumes host (hostPath)",
            ),
            (make_pod("p").annotations({SAFE_TO_EVICT: "false"}), f"its annotation {SAFE_TO_EVICT} is false"),
        ],
        ids=["naked", "emptyDir", "hostPath", "annotation"],
    )
    def test_a_pod_that_must_not_be_evicted_keeps_its_node(self, pod: PodBuilder, reason: str) -> None:
        built = pod.node("n1").build() if "no controller" in reason else owned(pod.node("n1"))
        found = plan_scale_down(what_if(node("n1").build(), node("n2").build(), built))
        assert gone(found) == {"n2"}
        assert why(found, "n1") == [f"default/p: {reason}"]

    @pytest.mark.parametrize(
        "pod",
        [
            owned(make_pod("p").node("n1").volume("fast", {"emptyDir": {"medium": "Memory"}})),
            owned(make_pod("p").node("n1").volume("c", {"emptyDir": {}}).annotations({SAFE_VOLUMES: "b,c"})),
            owned(
                make_pod("p").node("n1").volume("c", {"emptyDir": {}}).annotations({SAFE_TO_EVICT: "true"})
            ),
            make_pod("p").node("n1").annotations({SAFE_TO_EVICT: "true"}).build(),
        ],
        ids=["in memory", "safe volume", "safe pod", "safe naked pod"],
    )
    def test_a_pod_that_is_declared_safe_does_not_keep_its_node(self, pod: Pod) -> None:
        assert gone(plan_scale_down(what_if(node("n1").build(), staying("n2"), pod))) == {"n1"}

    def test_data_of_empty_dirs_may_be_given_up(self) -> None:
        pod = owned(make_pod("p").node("n1").volume("cache", {"emptyDir": {}}))
        cluster = what_if(node("n1").build(), staying("n2"), pod)
        assert gone(plan_scale_down(cluster, delete_emptydir_data=True)) == {"n1"}

    def test_nodes_that_are_declared_to_stay_and_those_of_the_control_plane(self) -> None:
        tainted = node("n2").taint(CONTROL_PLANE).build()
        found = plan_scale_down(what_if(staying("n1"), tainted, node("n3").build()))
        assert gone(found) == {"n3"}
        assert why(found, "n1") == [f"its annotation {SCALE_DOWN_DISABLED} is true"]
        assert why(found, "n2") == ["it is of the control plane"]

    def test_budgets_and_pods_without_another_place_are_told(self) -> None:
        pods = [running("a", "n1", cpu=4), running("b", "n2", app="db")]
        cluster = what_if(node("n1").build(), node("n2").build(), pods, budget("db", "db", minAvailable=1))
        found = plan_scale_down(cluster)
        assert not found.removals
        (reason,) = why(found, "n1")
        assert reason.startswith(
            "default/a: finds no other place: 0/2 nodes are available: 1 Insufficient cpu, "
        )
        assert why(found, "n2") == ["default/b: its eviction would violate PodDisruptionBudget db"]

    def test_nobody_is_preempted_to_save_a_node(self) -> None:
        important = owned(make_pod("important").requests(cpu=4).priority(10).node("n1"), "important")
        cluster = what_if(node("n1").build(), node("n2").build(), important, running("a", "n2"))
        assert not gone(plan_scale_down(cluster))


class TestReplacement:
    def test_several_nodes_by_a_cheaper_one(self) -> None:
        nodes = [priced(node(name, cpu=2), "3") for name in ("n1", "n2")]
        pods = [running("a", "n1", cpu=2), running("b", "n2", cpu=2)]
        group = NodeGroup("large", node("large", cpu=4).build(), price=Decimal(4))
        cluster = what_if(nodes, pods)
        (removal,) = plan_scale_down(cluster, [group]).removals
        assert (removal.group, removal.added, removal.drain.nodes) == ("large", "large-1", ("n1", "n2"))
        assert removal.saved == Decimal(2)
        assert {pod.node_name for pod in cluster.pods} == {"large-1"}

    def test_without_groups_by_more_of_the_nodes_that_are_there(self) -> None:
        nodes = priced(node("big", cpu=16), "9"), priced(node("small", cpu=4), "2")
        cluster = what_if(nodes, running("a", "big", cpu=4), running("b", "small", cpu=4))
        (removal,) = plan_scale_down(cluster).removals
        assert (removal.group, removal.drain.nodes, removal.saved) == ("small", ("big",), Decimal(7))

    def test_a_node_is_not_replaced_by_one_that_costs_as_much(self) -> None:
        cluster = what_if(priced(node("n1"), "3"), running("a", "n1", cpu=4))
        assert not plan_scale_down(cluster).removals

    def test_no_more_than_the_group_may_have(self) -> None:
        nodes = [priced(node(name), "3") for name in ("n1", "n2")]
        pods = [running("a", "n1", cpu=4), running("b", "n2", cpu=4)]
        group = NodeGroup("cheap", node("cheap").build(), max=1, price=Decimal(1))
        found = plan_scale_down(what_if(nodes, pods), [group])
        assert (found.gone, found.added, found.saved) == (1, 1, Decimal(2))

    def test_a_price_that_is_none_is_named_with_its_node(self) -> None:
        cluster = what_if(priced(node("n1"), "cheap"))
        with pytest.raises(
            NodeGroupError, match=r"^node n1: metadata\.annotations\[kschedfw/price\]: Invalid"
        ):
            plan_scale_down(cluster)


# --- a fresh scheduler does as the answer says ---


class Replay:
    """Carries an answer out, round by round, each with a scheduler that has just started."""

    def __init__(self, objects: Iterable[Named]) -> None:
        self.objects = {(type(obj), obj.key): obj for obj in objects}

    def pods(self) -> list[Pod]:
        return [obj for obj in self.objects.values() if isinstance(obj, Pod)]

    def replace(self, obj: Named) -> None:
        self.objects[type(obj), obj.key] = obj

    def allowed(self, limit: PodDisruptionBudget) -> int:
        """By the rules of a budget with maxUnavailable; no controller of these pods is known."""
        assert isinstance(limit.spec.max_unavailable, int)
        covered = [pod for pod in self.pods() if covers(limit, pod)]
        return limit.spec.max_unavailable - sum(not pod.node_name for pod in covered)

    def carry_out(self, found: ScaleDown) -> None:
        for removal in found.removals:
            for name in removal.drain.nodes:
                old = self.objects[Node, name]
                assert isinstance(old, Node)
                self.replace(cordoned(old))
            for number in range(1, removal.drain.rounds + 1):
                steps = [step for step in removal.drain.steps if step.round == number]
                self.evict([step.pod for step in steps])
                self.schedule()
                assert not [pod.key for pod in self.pods() if not pod.node_name]
            for name in removal.drain.nodes:
                assert not [pod.key for pod in self.pods() if pod.node_name == name]
                del self.objects[Node, name]

    def evict(self, pods: list[Pod]) -> None:
        for limit in [obj for obj in self.objects.values() if isinstance(obj, PodDisruptionBudget)]:
            assert sum(covers(limit, pod) for pod in pods) <= self.allowed(limit)
        for pod in pods:
            old = self.objects[Pod, pod.key]
            assert isinstance(old, Pod)
            self.replace(attrs.evolve(old, spec=attrs.evolve(old.spec, node_name="")))

    def schedule(self) -> None:
        cluster = InMemoryCluster(self.objects.values())
        Scheduler(
            cluster, registry=REGISTRY, clock=VirtualClock(), selector=FirstByNameSelector()
        ).run_until_idle()
        for pod in cluster.list(Pod):
            self.replace(pod)


def covers(limit: PodDisruptionBudget, pod: Pod) -> bool:
    return limit.namespace == pod.namespace and as_selector(limit.spec.selector).matches(pod.labels)


@st.composite
def emptiable_clusters(draw: st.DrawFn, most_nodes: int = 4, most_bound: int = 6) -> DrawnCluster:
    """Clusters of `kschedfw.testing` with less that ties a pod to its node: otherwise hardly one can move."""
    drawn = draw(clusters(most_nodes=most_nodes, most_bound=most_bound, most_pending=0))
    if draw(st.integers(0, 3)) == 0:
        return drawn
    room = draw(st.sampled_from([2, 4, 8]))
    roomy = node("n", room).capacity({"ephemeral-storage": "64Gi", GPU: 8}).build().status
    open_nodes = [attrs.evolve(each, spec=NodeSpec(), status=roomy) for each in drawn.nodes]
    return attrs.evolve(drawn, nodes=tuple(open_nodes), bound=tuple(map(_untied, drawn.bound)))


def _untied(pod: Pod) -> Pod:
    affinity = attrs.evolve(pod.spec.affinity, node_affinity=None)
    containers = tuple(attrs.evolve(each, restart_policy_rules=()) for each in pod.spec.containers)
    return attrs.evolve(
        pod, spec=attrs.evolve(pod.spec, node_selector=EMPTY, affinity=affinity, containers=containers)
    )


BUDGETS = st.dictionaries(st.sampled_from(LABELS["app"]), st.integers(0, 2), max_size=2)


@pytest.mark.slow
@given(emptiable_clusters(), BUDGETS)
@settings(max_examples=examples(200, usual=6))
def test_a_fresh_scheduler_carries_the_answer_out_without_a_pending_pod_and_within_every_budget(
    drawn: DrawnCluster, limits: dict[str, int]
) -> None:
    pods = [owned(pod, f"owner-{number}") for number, pod in enumerate(drawn.bound)]
    budgets = [budget(app, app, maxUnavailable=count) for app, count in limits.items()]
    objects = [*drawn.nodes, *pods, *budgets]
    found = plan_scale_down(WhatIf(objects, registry=REGISTRY, selector=FirstByNameSelector()))
    Replay(objects).carry_out(found)
    assert set(found.kept) == {each.name for each in drawn.nodes} - gone(found)
    assert all(found.kept.values()), "every node that stays has a reason"


def test_money_is_a_bound_where_a_price_is_missing() -> None:
    cheap, unknown = priced(node("cheap"), "3"), node("unknown").build()
    with what_if(cheap, unknown, node("kept").build(), running("web-1", "kept")) as cluster:
        found = plan_scale_down(cluster)
    assert (found.gone, found.saved, found.cost) == (2, None, None)
    assert (found.savings.at_least, found.savings.unpriced) == (Decimal(3), 1)
    assert (found.price.at_least, found.price.unpriced) == (Decimal(3), 2)
