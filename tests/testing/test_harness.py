"""The harness runs a plugin's hooks as a scheduler would."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kschedfw import Code, Handle, Node, NodeInfo, Plugin, Pod, PodInfo, PreFilterResult, Status, hookimpl
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.workloads import Namespace
from kschedfw.testing import FakeClock, FrameworkHarness, make_node, make_pod
from tests.framework.support import PluginClass, answering, nodes, plugin, pod

POD = pod()


class Rack(Plugin):
    """Keeps pods in their racks, and books one pod per reservation."""

    name = "Rack"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.booked: list[str] = []

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        if node_info.node.labels.get("rack") not in pod.labels.get("racks", "").split("."):
            return Status.unschedulable("node(s) were in the wrong rack")
        return None

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return 100 - len(node_info.pods)

    @hookimpl
    def reserve(self, pod: Pod) -> None:
        self.booked.append(pod.name)

    @hookimpl
    def unreserve(self, pod: Pod) -> None:
        self.booked.remove(pod.name)


NODES = [make_node("a").labels(rack="r1").build(), make_node("b").labels(rack="r2").build()]


class TestFilter:
    def test_each_node_has_its_verdict(self) -> None:
        harness = FrameworkHarness(Rack, nodes=NODES)
        verdicts = harness.filter(make_pod().labels(racks="r2.r3").build())
        assert verdicts["a"].reasons == ("node(s) were in the wrong rack",)
        assert verdicts["a"].plugin == "Rack"
        assert verdicts["b"].is_success

    def test_what_pre_filter_rejects_is_rejected_everywhere(self) -> None:
        no = Status.unresolvable("no claim")
        harness = FrameworkHarness(plugin("A", pre_filter=answering(no), filter=answering(None)), nodes=NODES)
        assert harness.filter(POD) == dict.fromkeys("ab", no.with_plugin("A"))
        assert harness.pre_filter(POD) == (None, no.with_plugin("A"))

    def test_nodes_that_pre_filter_leaves_out_are_told_apart(self) -> None:
        only_b = PreFilterResult.of(["b"])
        harness = FrameworkHarness(
            plugin("A", pre_filter=answering(only_b), filter=answering(None)), nodes=NODES
        )
        verdicts = harness.filter(POD)
        assert verdicts["a"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert verdicts["b"].is_success
        assert harness.pre_filter(POD)[0] == only_b

    def test_nominated_pods_count(self) -> None:
        crowded = plugin(
            "A", filter=lambda node_info: Status.unschedulable("full") if node_info.pods else None
        )
        harness = FrameworkHarness(crowded, nodes=NODES)
        harness.nominator.add(PodInfo.of(pod("preemptor", priority=1)), "a")
        assert [status.is_success for status in harness.filter(POD).values()] == [False, True]


class TestScore:
    def test_pods_lie_on_their_nodes(self) -> None:
        pods = [make_pod(name).node("a").build() for name in ("p", "q")]
        harness = FrameworkHarness(Rack, nodes=NODES, pods=pods)
        assert harness.score(make_pod().build()) == {"a": 98, "b": 100}

    @pytest.mark.parametrize("hook", ["pre_score", "score"])
    def test_a_failure_fails_the_test(self, hook: str) -> None:
        hooks = {"score": answering(1), hook: answering(ValueError("no disk"))}
        harness = FrameworkHarness(plugin("A", **hooks), nodes=NODES)
        with pytest.raises(AssertionError, match="no disk"):
            harness.score(POD)


class TestReserveAndBind:
    def test_the_plugin_keeps_its_books(self) -> None:
        harness = FrameworkHarness(Rack, nodes=NODES)
        rack = harness.framework.plugins["Rack"]
        assert isinstance(rack, Rack)
        assert harness.reserve(POD, "a").is_success
        assert rack.booked == ["pod"]
        harness.unreserve(POD, "a")
        assert rack.booked == []

    def test_the_other_points_give_their_statuses(self) -> None:
        no = Status.unschedulable("no")
        hooks = dict.fromkeys(("pre_enqueue", "reserve", "permit", "pre_bind", "bind"), answering(no))
        harness = FrameworkHarness(plugin("A", **hooks), nodes=NODES)
        expected = no.with_plugin("A")
        assert harness.pre_enqueue(POD) == expected
        assert harness.reserve(POD, "a") == expected
        assert harness.permit(POD, "a") == expected
        assert harness.pre_bind(POD, "a") == expected
        assert harness.bind(POD, "a") == expected

    def test_points_that_can_not_fail_fail_the_test_if_they_do(self) -> None:
        broken = plugin("A", unreserve=answering(ValueError("lost")), post_bind=answering(ValueError("gone")))
        harness = FrameworkHarness(broken, nodes=NODES)
        with pytest.raises(AssertionError, match='running Unreserve plugin "A": lost'):
            harness.unreserve(POD, "a")
        with pytest.raises(AssertionError, match='running PostBind plugin "A": gone'):
            harness.post_bind(POD, "a")
        fine = FrameworkHarness(plugin("A", unreserve=answering(None), post_bind=answering(None)))
        fine.unreserve(POD, "a")
        fine.post_bind(POD, "a")

    def test_time_is_the_tests(self) -> None:
        clock = FakeClock()
        harness = FrameworkHarness(plugin("A", permit=answering(Status.wait(10))), clock=clock)
        assert harness.permit(POD, "a").is_wait
        clock.advance(10)
        assert harness.framework.wait_on_permit(POD).message == (
            "rejected due to timeout after waiting 10s at plugin A"
        )


class TestSurroundings:
    def test_installed_plugins_go_by_their_names_and_with_others(self) -> None:
        harness = FrameworkHarness("NodeName", Rack, nodes=NODES)
        incoming = make_pod().labels(racks="r1.r2").node("b").build()
        assert [status.plugin for status in harness.filter(incoming).values()] == ["NodeName", ""]

    def test_plugins_get_their_arguments(self) -> None:
        harness = FrameworkHarness(
            "InterPodAffinity", args={"InterPodAffinity": {"hardPodAffinityWeight": 7}}
        )
        assert harness.framework.plugins["InterPodAffinity"].args.hard_pod_affinity_weight == 7

    def test_plugins_find_nodes_pods_and_other_objects_in_the_cluster(self) -> None:
        namespace = Namespace(metadata=ObjectMeta(name="team-a"))
        bound = make_pod("bound").node("a").build()
        harness = FrameworkHarness(nodes=NODES, pods=[bound], objects=[namespace])
        cluster = harness.framework.handle.cluster
        assert [node.name for node in cluster.list(Node)] == ["a", "b"]
        assert cluster.get(Pod, "default/bound") is not None
        assert cluster.get(Namespace, "team-a") is not None

    def test_what_lies_on_a_node_is_what_the_cluster_has(self) -> None:
        harness = FrameworkHarness(
            nodes=NODES, pods=[Pod(metadata=ObjectMeta(name=name)).bound_to("a") for name in "pq"]
        )
        on_node = [info.pod for info in harness.snapshot.get("a").pods]
        assert on_node == list(harness.cluster.list(Pod))
        assert len({each.uid for each in on_node}) == 2

    def test_everything_runs_on_the_callers_thread(self) -> None:
        assert FrameworkHarness(Rack, nodes=NODES).framework.handle.parallelizer.parallelism == 1

    def test_each_pod_starts_a_cycle_of_its_own(self) -> None:
        harness = FrameworkHarness(Rack, nodes=NODES)
        harness.pre_filter(POD)
        first = harness.state
        harness.filter(POD)
        assert harness.state is not first


def test_any_number_of_plugins_will_do() -> None:
    classes: Sequence[PluginClass] = [
        plugin("A", filter=answering(None)),
        plugin("B", filter=answering(None)),
    ]
    assert FrameworkHarness(*classes, nodes=nodes("n")).filter(POD)["n"].is_success
    assert FrameworkHarness(nodes=nodes("n")).filter(POD)["n"].is_success
