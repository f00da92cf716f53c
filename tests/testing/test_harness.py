"""The harness runs a plugin's hooks as a scheduler would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kschedfw import (
    ActionType,
    ClusterEvent,
    Code,
    EventResource,
    Handle,
    KschedfwError,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    PodInfo,
    PreFilterResult,
    QueueingHint,
    Status,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.workloads import Namespace
from kschedfw.explain import Score
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.testing import FakeClock, FrameworkHarness
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
        with pytest.raises(AssertionError, match='running Unreserve plugin "A": ValueError: lost'):
            harness.unreserve(POD, "a")
        with pytest.raises(AssertionError, match='running PostBind plugin "A": ValueError: gone'):
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

    @pytest.mark.parametrize(
        ("args", "text"),
        [
            (
                {"racks": [1]},
                "args: no plugin has the name 'racks'.*; .* by their plugin's name: args={'Rack': …}",
            ),
            ({"Rakc": None}, r"no plugin has the name 'Rakc' \(did you mean Rack\?\)"),
            (["Rack"], "args: expected a mapping from names of plugins, found list"),
        ],
    )
    def test_arguments_are_those_of_plugins(self, args: Any, text: str) -> None:
        FrameworkHarness(Rack, nodes=NODES, args={"NodeResourcesFit": {}, "Rack": None})
        with pytest.raises(ProfileError, match=text):
            FrameworkHarness(Rack, nodes=NODES, args=args)

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


class Choosy(Plugin):
    """Has an opinion at every point, and says it in its own words."""

    name = "Choosy"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        if node_info.name == "odd":
            return Status.from_error("this node is odd")
        return Status.unschedulable("node(s) were full") if node_info.pods else None

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return len(node_info.name) * 1000

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        return scores // 50

    @hookimpl
    def reserve(self, node_name: str) -> Status | None:
        if node_name == "odd":
            raise LookupError("no books on it")
        return Status.from_error("the books are closed") if node_name == "closed" else None

    @hookimpl
    def permit(self) -> Status:
        return Status.wait(30, "for its siblings")

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.NODE, ActionType.ADD),
            ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL, self._relabelled),
            ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE),
        ]

    def _relabelled(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        assert isinstance(new, Node)
        return QueueingHint.QUEUE if new.labels.get("for") == pod.name else QueueingHint.SKIP


class TestOwnStatus:
    """What the plugin says, and not what the framework makes of it."""

    harness = FrameworkHarness(Choosy, nodes=[make_node("odd").build(), make_node("fine").build()])

    def test_an_error_is_without_a_prefix(self) -> None:
        assert self.harness.filter(POD)["odd"].message == 'running "Choosy" filter plugin: this node is odd'
        assert self.harness.own_status("filter", POD, "odd") == Status.from_error("this node is odd")
        assert self.harness.own_status("reserve", POD, "closed").message == "the books are closed"

    def test_none_is_success(self) -> None:
        assert self.harness.own_status("filter", POD, "fine") == Status.success()

    def test_a_wait_has_its_timeout(self) -> None:
        assert self.harness.own_status("permit", POD, "fine") == Status.wait(30, "for its siblings")

    def test_what_it_raises_comes_out(self) -> None:
        with pytest.raises(LookupError, match="no books on it"):
            self.harness.own_status("reserve", POD, "odd")

    def test_what_is_no_status_is_refused(self) -> None:
        harness = FrameworkHarness(plugin("A", filter=answering(True)), nodes=NODES)
        with pytest.raises(TypeError, match="filter must return None or a Status, not True"):
            harness.own_status("filter", POD, "a")
        with pytest.raises(KschedfwError, match="node 'nowhere' not found"):
            harness.own_status("filter", POD, "nowhere")

    def test_it_must_be_clear_whose_it_is(self) -> None:
        harness = FrameworkHarness(Choosy, Rack, nodes=NODES)
        with pytest.raises(
            ValueError, match=r"one is needed that has the hook 'filter'; those are: Choosy, Rack"
        ):
            harness.own_status("filter", POD, "a")
        assert harness.own_status("filter", POD, "a", plugin="Choosy").is_success
        with pytest.raises(ValueError, match=r"'score' gives no status alone; these hooks do: bind, filter"):
            harness.own_status("score", POD, "a")


def test_scores_are_there_raw_and_normalised_by_plugin() -> None:
    harness = FrameworkHarness(Choosy, Rack, nodes=[make_node("a").build(), make_node("bb").build()])
    assert harness.scores(POD) == {
        "Choosy": {"a": Score(1000, 20, 1), "bb": Score(2000, 40, 1)},
        "Rack": {"a": Score(100, 100, 1), "bb": Score(100, 100, 1)},
    }
    assert harness.score(POD) == {"a": 120, "bb": 140}


class TestHint:
    """Whether a change brings a refused pod back."""

    harness = FrameworkHarness(Choosy, nodes=[make_node("a").build()])
    before, bound = make_node("a").build(), make_pod("b").node("a").build()

    @pytest.mark.parametrize(
        ("old", "new", "hint"),
        [
            (None, before, QueueingHint.QUEUE),
            (before, make_node("a").labels({"for": "pod"}).build(), QueueingHint.QUEUE),
            (before, make_node("a").labels({"for": "another"}).build(), QueueingHint.SKIP),
            (before, make_node("a").taint("new").build(), QueueingHint.SKIP),
            (before, before, QueueingHint.SKIP),
            (before, None, QueueingHint.SKIP),
            (bound, None, QueueingHint.QUEUE),
            (None, bound, QueueingHint.SKIP),
            (make_pod("b").build(), None, QueueingHint.SKIP),
        ],
    )
    def test_it_is_what_the_scheduler_would_make_of_the_change(
        self, old: Node | Pod | None, new: Node | Pod | None, hint: QueueingHint
    ) -> None:
        assert self.harness.hint(make_pod("pod").build(), old, new) is hint

    def test_a_plugin_that_names_no_events_is_asked_again_after_each(self) -> None:
        assert FrameworkHarness(Rack).hint(POD, self.before, None) is QueueingHint.QUEUE
        harness = FrameworkHarness(Rack, Choosy)
        assert harness.hint(POD, self.before, None) is QueueingHint.QUEUE
        assert harness.hint(POD, self.before, None, plugin="Choosy") is QueueingHint.SKIP

    def test_what_makes_no_sense_is_refused(self) -> None:
        with pytest.raises(ValueError, match="plugin='Chosy': the harness has Choosy"):
            self.harness.hint(POD, None, self.before, plugin="Chosy")
        with pytest.raises(ValueError, match="nobody can subscribe to changes of Namespace"):
            self.harness.hint(POD, None, Namespace(ObjectMeta(name="default")))


class TestMistaken:
    """What is no pod, or no node's name, is refused before a hook gets it."""

    harness = FrameworkHarness(Choosy, nodes=[make_node("a").build()])

    @pytest.mark.parametrize(
        "hook",
        [
            *("pre_enqueue", "pre_filter", "filter", "score", "scores", "own_status", "hint", "reserve"),
            *("unreserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind", "post_bind"),
        ],
    )
    def test_a_builder_is_no_pod(self, hook: str) -> None:
        before = ["filter"] if hook == "own_status" else []
        after: dict[str, Sequence[object]] = {
            **dict.fromkeys(("pre_enqueue", "pre_filter", "filter", "score", "scores"), ()),
            "hint": (None, make_node("a").build()),
        }
        with pytest.raises(
            TypeError, match=r"^pod: expected a Pod, found PodBuilder; PodBuilder\.build\(\) makes it"
        ):
            getattr(self.harness, hook)(*before, make_pod(), *after.get(hook, ["a"]))

    def test_other_mistakes(self) -> None:
        harness: Any = self.harness
        with pytest.raises(
            TypeError, match=r"pod: expected a Pod, found a mapping; harness\.pod\(…\) makes one"
        ):
            harness.filter({"metadata": {"name": "p"}})
        with pytest.raises(TypeError, match=r"node_name: expected the name of a node, found Node$"):
            harness.reserve(POD, make_node("a").build())
        with pytest.raises(
            TypeError, match=r"new: expected an object of the API, found NodeBuilder; NodeBuilder\.b"
        ):
            harness.hint(POD, None, make_node("a"))


class TestManifests:
    """Nodes and pods as they stand in tests."""

    def test_they_are_read_as_from_a_file(self) -> None:
        spec = {"nodeName": "a", "containers": [{"name": "main", "image": "app"}]}
        there = {"metadata": {"name": "there"}, "spec": spec}
        harness = FrameworkHarness(Choosy, nodes=[make_node("a").manifest()], pods=[there])
        assert harness.filter(POD)["a"].message == "node(s) were full"
        with pytest.raises(KschedfwError, match=r"spec\.containers: Required value"):
            FrameworkHarness(Choosy, pods=[{"metadata": {"name": "a"}, "spec": {"nodeName": "a"}}])

    def test_or_leniently(self) -> None:
        same = {"metadata": {"name": "same"}, "spec": {"nodeName": "a"}}
        bare = {"spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
        harness = FrameworkHarness(
            Choosy,
            nodes=[{"metadata": {"name": "a"}}, {}],
            pods=[same, same, bare, {"spec": {"nodeName": "a"}}],
            lenient=True,
        )
        on_a, empty = harness.snapshot.node_infos
        assert [info.pod.name for info in on_a.pods] == ["same", "same", "pod-5", "pod-6"]
        assert len({info.pod.uid for info in on_a.pods}) == 4
        assert on_a.requested.milli_cpu == 1000
        assert [pod.name for pod in harness.cluster.list(Pod)] == ["same", "pod-5", "pod-6"]
        assert harness.own_status("filter", harness.pod({}), empty.name).is_success
        assert same == {"metadata": {"name": "same"}, "spec": {"nodeName": "a"}}, "it isn't written to"
