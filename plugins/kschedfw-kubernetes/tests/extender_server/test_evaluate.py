"""What the server says is what the plugins say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
from extender_server.asgi import post
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_kubernetes.extender_server import ExtenderApp
from one_line_plugins import PluginClass, answering, plugin

from kschedfw import make_node, make_pod
from kschedfw.api.manifests import to_manifest
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodPhase
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.results import PreFilterResult
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.testing.properties import examples

POD = make_pod("web").build()
NAMES = ("a", "b", "c")


@contextmanager
def serving(
    *plugins: PluginClass | str,
    cluster: InMemoryCluster | None = None,
    weights: Mapping[str, int] | None = None,
) -> Iterator[ExtenderApp]:
    registry = Registry()
    names = [each if isinstance(each, str) else registry.register(each).name for each in plugins]
    profile = Profile([EnabledPlugin(name, (weights or {}).get(name, 1)) for name in names])
    app = ExtenderApp(profile, registry=registry, cluster=cluster, parallelism=2)
    try:
        yield app
    finally:
        app.close()


def args(*nodes: Any, pod: Pod = POD, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    manifests = [to_manifest(node if isinstance(node, Named) else make_node(node).build()) for node in nodes]
    return {
        "Pod": to_manifest(pod),
        "Nodes": None if names is not None else {"items": manifests},
        "NodeNames": names,
    }


def passed(result: Any) -> list[str]:
    return [node["metadata"]["name"] for node in result["Nodes"]["items"]]


def priorities(app: ExtenderApp, *nodes: Any, **more: Any) -> dict[str, int]:
    reply = post(app, "/prioritize", args(*nodes, **more))
    assert reply.status == 200
    return {entry["Host"]: entry["Score"] for entry in reply.json}


def by_name(answers: Mapping[str, object]) -> Callable[..., Any]:
    def hook(node_info: NodeInfo) -> Any:
        return answers[node_info.name]

    return hook


class _EndsBefore:
    """A lock of turns; the given event happens when a turn has just ended."""

    def __init__(self, event: Callable[[], None]) -> None:
        self._event = event

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._event()


class TestFilter:
    def test_refusals_say_why_and_whether_preemption_may_help(self) -> None:
        answers = {
            "a": Status.unschedulable("too hot", "too small"),
            "b": Status.unresolvable("elsewhere"),
            "c": None,
        }
        with serving(plugin("Picky", filter=by_name(answers))) as app:
            result = post(app, "/filter", args(*NAMES)).json
        assert passed(result) == ["c"]
        assert result["FailedNodes"] == {"a": "too hot, too small"}
        assert result["FailedAndUnresolvableNodes"] == {"b": "elsewhere"}
        assert (result["NodeNames"], result["Error"]) == (None, "")

    @pytest.mark.parametrize(
        ("status", "where"),
        [
            (Status.unschedulable("not now"), "FailedNodes"),
            (Status.unresolvable("not now"), "FailedAndUnresolvableNodes"),
        ],
    )
    def test_a_pod_that_pre_filter_rejects_fits_nowhere(self, status: Status, where: str) -> None:
        with serving(plugin("Strict", pre_filter=answering(status))) as app:
            result = post(app, "/filter", args(*NAMES)).json
        assert passed(result) == []
        assert result[where] == dict.fromkeys(NAMES, "not now")

    def test_pre_filter_may_narrow_the_choice(self) -> None:
        narrow = plugin("Narrow", pre_filter=answering(PreFilterResult(frozenset({"a", "c"}))))
        picky = plugin("Picky", filter=by_name({"a": None, "c": Status.unschedulable("no")}))
        with serving(narrow, picky) as app:
            result = post(app, "/filter", args(*NAMES)).json
        assert passed(result) == ["a"]
        assert result["FailedNodes"] == {"c": "no"}
        assert result["FailedAndUnresolvableNodes"] == {"b": "node(s) didn't satisfy plugin(s) [Narrow]"}

    @pytest.mark.parametrize("hook", ["pre_filter", "filter"])
    def test_a_failure_is_in_the_error(self, hook: str, caplog: pytest.LogCaptureFixture) -> None:
        with (
            caplog.at_level(logging.ERROR, "kschedfw_kubernetes.extender_server"),
            serving(plugin("Broken", **{hook: answering(RuntimeError("out of order"))})) as app,
        ):
            reply = post(app, "/filter", args(*NAMES))
        assert reply.status == 200
        assert "Broken" in reply.json["Error"]
        assert "out of order" in reply.json["Error"]
        assert (reply.json["Nodes"], reply.json["NodeNames"]) == (None, None)
        assert "out of order" in caplog.text  # with the traceback, which the scheduler doesn't get

    def test_one_failure_does_not_spoil_the_next_request(self) -> None:
        answers: dict[str, object] = {"a": Status.from_error("broken")}
        with serving(plugin("Moody", filter=by_name(answers))) as app:
            assert "broken" in post(app, "/filter", args("a")).json["Error"]
            answers["a"] = None
            assert passed(post(app, "/filter", args("a")).json) == ["a"]

    def test_no_nodes_are_no_nodes(self) -> None:
        with serving("NodeUnschedulable") as app:
            assert passed(post(app, "/filter", args()).json) == []
            assert post(app, "/prioritize", args()).json == []


class TestPrioritize:
    @settings(max_examples=examples(30))
    @given(st.integers(0, 100))
    def test_scores_are_rounded_to_tenths(self, score: int) -> None:
        with serving(plugin("Score", score=answering(score))) as app:
            assert priorities(app, "a") == {"a": (score + 5) // 10}

    @settings(max_examples=examples(30))
    @given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 100)), min_size=1, max_size=4))
    def test_the_weighted_mean_counts(self, plugins: list[tuple[int, int]]) -> None:
        """So an extender whose weight is the sum of the plugins' weighs as much as they do in the scheduler."""
        made = [plugin(f"S{i}", score=answering(score)) for i, (_, score) in enumerate(plugins)]
        weights = {f"S{i}": weight for i, (weight, _) in enumerate(plugins)}
        with serving(*made, weights=weights) as app:
            priority = priorities(app, "a")["a"]
        total = sum(weight * score for weight, score in plugins)
        assert abs(10 * sum(weights.values()) * priority - total) <= 5 * sum(weights.values())

    def test_who_skips_says_nothing(self) -> None:
        """It doesn't make the others louder."""
        one = plugin("One", score=answering(100))
        skipping = plugin("Skipping", pre_score=answering(Status.skip()), score=answering(100))
        with serving(one, skipping) as app:
            assert priorities(app, "a") == {"a": 5}

    def test_without_score_plugins_all_are_equal(self) -> None:
        with serving("NodeUnschedulable") as app:
            assert priorities(app, "a", "b") == {"a": 0, "b": 0}

    def test_refusals_are_the_filter_s_business(self) -> None:
        rejecting = plugin("Strict", pre_filter=answering(Status.unschedulable("no")), score=answering(100))
        with serving(rejecting) as app:
            assert priorities(app, "a") == {"a": 10}

    @pytest.mark.parametrize("hook", ["pre_filter", "pre_score", "score"])
    def test_a_failure_is_another_status(self, hook: str) -> None:
        """There is no field for it; kube-scheduler goes on without these priorities."""
        hooks = {"score": answering(1), hook: answering(RuntimeError("out of order"))}
        with serving(plugin("Broken", **hooks)) as app:
            reply = post(app, "/prioritize", args("a"))
        assert reply.status == 500
        assert reply.text.startswith("/prioritize failed: ")
        assert "out of order" in reply.text


class TestCluster:
    """Pods, and nodes that only their names are sent of."""

    @pytest.fixture
    def cluster(self) -> InMemoryCluster:
        cluster = InMemoryCluster()
        for name in NAMES:
            cluster.add(make_node(name).capacity(cpu=4, memory="8Gi").image("app:1", size=500 << 20).build())
        return cluster

    def pods_on(self, app: ExtenderApp) -> dict[str, str]:
        """What a plugin sees, by way of its refusals."""
        return dict(post(app, "/filter", args(names=NAMES)).json["FailedNodes"])

    @pytest.fixture
    def telling(self) -> PluginClass:
        def hook(node_info: NodeInfo) -> Status:
            return Status.unschedulable(" ".join(sorted(info.pod.name for info in node_info.pods)))

        return plugin("Telling", filter=hook)

    def test_names_are_looked_up(self, cluster: InMemoryCluster) -> None:
        cluster.update(make_node("b").unschedulable().build())
        with serving("NodeUnschedulable", cluster=cluster) as app:
            result = post(app, "/filter", args(names=("c", "b", "a"))).json
        assert result["NodeNames"] == ["c", "a"]
        assert result["Nodes"] is None
        assert result["FailedAndUnresolvableNodes"] == {"b": "node(s) were unschedulable"}

    def test_a_node_that_is_not_known_yet_fails_alone(self, cluster: InMemoryCluster) -> None:
        with serving(plugin("Score", score=answering(100)), cluster=cluster) as app:
            result = post(app, "/filter", args(names=("a", "new"))).json
            assert result["NodeNames"] == ["a"]
            assert result["FailedAndUnresolvableNodes"] == {"new": "node(s) not known to the extender"}
            assert priorities(app, names=("a", "new")) == {"a": 10, "new": 0}

    def test_names_are_of_no_use_without_a_cluster(self) -> None:
        with serving("NodeUnschedulable") as app:
            refused = post(app, "/filter", args(names=("a",)))
        assert refused.status == 400
        assert refused.text.endswith("configure it with nodeCacheCapable: false\n")

    def test_pods_are_seen_while_they_are_there(self, cluster: InMemoryCluster, telling: PluginClass) -> None:
        early = cluster.add(make_pod("early").node("a").build())
        with serving(telling, cluster=cluster) as app:
            assert self.pods_on(app) == {"a": "early", "b": "", "c": ""}
            late = cluster.add(make_pod("late").build())
            assert self.pods_on(app) == {"a": "early", "b": "", "c": ""}
            cluster.bind(late, "a")
            assert self.pods_on(app) == {"a": "early late", "b": "", "c": ""}
            cluster.delete(early)
            assert self.pods_on(app) == {"a": "late", "b": "", "c": ""}
            (bound,) = cluster.list(Pod)
            cluster.update(attrs.evolve(bound, status=attrs.evolve(bound.status, phase=PodPhase.SUCCEEDED)))
            assert self.pods_on(app) == {"a": "", "b": "", "c": ""}

    def test_nodes_come_and_go(self, cluster: InMemoryCluster, telling: PluginClass) -> None:
        node = make_node("late").build()
        with serving(telling, cluster=cluster) as app:
            cluster.add(make_pod("waiting").node("late").build())
            cluster.add(node)
            assert post(app, "/filter", args(names=("late",))).json["FailedNodes"] == {"late": "waiting"}
            cluster.delete(node)
            assert "late" in post(app, "/filter", args(names=("late",))).json["FailedAndUnresolvableNodes"]

    def test_nothing_is_followed_after_the_end(self, cluster: InMemoryCluster, telling: PluginClass) -> None:
        with serving(telling, cluster=cluster) as app:
            state, snapshot = app._evaluator._state, app._evaluator._framework.handle.snapshot
        cluster.add(make_node("late").build())
        state.show()
        assert [info.name for info in snapshot.node_infos] == list(NAMES)

    def test_whole_nodes_get_the_pods_of_the_cluster(
        self, cluster: InMemoryCluster, telling: PluginClass
    ) -> None:
        cluster.add(make_pod("there").node("b").build())
        with serving(telling, cluster=cluster) as app:
            result = post(app, "/filter", args("b", "unknown")).json
        assert result["FailedNodes"] == {"b": "there", "unknown": ""}

    def test_whole_nodes_are_fresher_than_the_cluster_s_but_count_once(
        self, cluster: InMemoryCluster
    ) -> None:
        with serving("NodeUnschedulable", "ImageLocality", cluster=cluster) as app:
            before = priorities(app, names=NAMES)
            cordoned = make_node("b").unschedulable().build()
            assert passed(post(app, "/filter", args("a", cordoned)).json) == ["a"]
            assert post(app, "/filter", args(names=NAMES)).json["NodeNames"] == ["a", "b", "c"]
            assert priorities(app, names=NAMES) == before

    @pytest.mark.parametrize("is_by_name", [True, False], ids=["names", "whole nodes"])
    def test_an_answer_names_the_nodes_of_its_own_turn(
        self, cluster: InMemoryCluster, is_by_name: bool
    ) -> None:
        """The next request rewrites the snapshot as soon as this one's turn is over."""
        asked: dict[str, Any] = {"names": NAMES} if is_by_name else {}
        nodes = () if is_by_name else NAMES
        with serving("NodeUnschedulable", plugin("Score", score=answering(100)), cluster=cluster) as app:

            def next_request() -> None:
                for node in list(cluster.list(Node)):
                    cluster.delete(node)
                cluster.add(make_node(f"other-{len(made)}").build())
                made.append(app)
                app._evaluator._state.show()

            made: list[object] = []
            app._evaluator._lock = _EndsBefore(next_request)  # type: ignore[assignment]
            assert priorities(app, *nodes, **asked) == dict.fromkeys(NAMES, 10)
            assert made
            result = post(app, "/filter", args("a", "b")).json
            assert passed(result) == ["a", "b"]

    def test_plugins_see_all_nodes_of_the_cluster(self, cluster: InMemoryCluster) -> None:
        def hook(nodes: Any) -> Status:
            return Status.unschedulable(f"{len(nodes)} nodes")

        with serving(plugin("Counting", pre_filter=hook), cluster=cluster) as app:
            assert post(app, "/filter", args(names=("a",))).json["FailedNodes"] == {"a": "3 nodes"}


class TestPreemption:
    """After kube-scheduler has found victims, the filters may say that it would be for nothing."""

    hungry = make_pod("hungry").requests(cpu=3).priority(10).build()

    @pytest.fixture
    def cluster(self) -> InMemoryCluster:
        cluster = InMemoryCluster()
        for name in NAMES:
            cluster.add(make_node(name).capacity(cpu=4).build())
            for size in (1, 2):
                cluster.add(
                    make_pod(f"{name}{size}").uid(f"u-{name}{size}").requests(cpu=size).node(name).build()
                )
        return cluster

    def ask(self, app: ExtenderApp, victims: Mapping[str, list[str]], **more: Any) -> Any:
        meta = {
            node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": len(uids)}
            for node, uids in victims.items()
        }
        pod = more.get("pod", self.hungry)
        reply = post(app, "/preempt", {"Pod": to_manifest(pod), "NodeNameToMetaVictims": meta})
        assert reply.status == 200
        return reply.json["NodeNameToMetaVictims"]

    def test_candidates_that_will_do_come_back(self, cluster: InMemoryCluster) -> None:
        with serving("NodeResourcesFit", cluster=cluster) as app:
            agreed = self.ask(app, {"a": ["u-a2"], "b": ["u-b1"], "c": ["u-c1", "u-c2"], "gone": []})
        assert agreed == {
            "a": {"Pods": [{"UID": "u-a2"}], "NumPDBViolations": 1},
            "c": {"Pods": [{"UID": "u-c1"}, {"UID": "u-c2"}], "NumPDBViolations": 2},
        }

    def test_whole_pods_are_understood_too(self, cluster: InMemoryCluster) -> None:
        victims = {
            name: {
                "Pods": [to_manifest(pod) for pod in cluster.list(Pod) if pod.name == victim],
                "NumPDBViolations": 1,
            }
            for name, victim in (("a", "a2"), ("b", "b1"))
        }
        with serving("NodeResourcesFit", cluster=cluster) as app:
            reply = post(app, "/preempt", {"Pod": to_manifest(self.hungry), "NodeNameToVictims": victims})
        assert reply.json == {
            "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u-a2"}], "NumPDBViolations": 1}}
        }

    def test_victims_that_have_gone_are_no_reason(self, cluster: InMemoryCluster) -> None:
        victim = cluster.get(Pod, "default/a2")
        assert victim is not None
        cluster.delete(victim)
        with serving("NodeResourcesFit", cluster=cluster) as app:
            assert set(self.ask(app, {"a": ["u-a2"]})) == {"a"}

    def test_plugins_with_state_are_told_who_goes(self, cluster: InMemoryCluster) -> None:
        for name in NAMES:
            cluster.update(make_node(name).zone(name).capacity(cpu=4).build())
        foe = make_pod("foe").uid("u-foe").labels(app="foe").node("a").build()
        cluster.add(foe)
        pod = make_pod("shy").pod_anti_affinity("topology.kubernetes.io/zone", {"app": "foe"}).build()
        with serving("InterPodAffinity", cluster=cluster) as app:
            assert set(self.ask(app, {"a": ["u-foe"], "b": []}, pod=pod)) == {"a", "b"}
            assert set(self.ask(app, {"a": ["u-a1"], "b": []}, pod=pod)) == {"b"}

    @pytest.mark.parametrize(
        ("answer", "agreed"),
        [
            (Status.unresolvable("never"), set()),
            (Status.unschedulable("not now"), {"a", "b"}),
            (PreFilterResult(frozenset({"b"})), {"b"}),
        ],
    )
    def test_what_pre_filter_says(self, cluster: InMemoryCluster, answer: Any, agreed: set[str]) -> None:
        with serving(plugin("First", pre_filter=answering(answer)), cluster=cluster) as app:
            assert set(self.ask(app, {"a": [], "b": []})) == agreed

    @pytest.mark.parametrize("hook", ["pre_filter", "filter", "pre_filter_remove_pod"])
    def test_a_failure_is_another_status(self, cluster: InMemoryCluster, hook: str) -> None:
        hooks = {
            "pre_filter": answering(None),
            "filter": answering(None),
            hook: answering(RuntimeError("broken")),
        }
        hooks.setdefault("pre_filter_add_pod", answering(None))
        body = {"Pod": to_manifest(POD), "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u-a1"}]}}}
        with serving(plugin("Broken", **hooks), cluster=cluster) as app:
            reply = post(app, "/preempt", body)
        assert reply.status == 500
        assert "broken" in reply.text

    def test_needs_a_cluster(self) -> None:
        body = {"Pod": to_manifest(POD), "NodeNameToMetaVictims": {"a": None}}
        with serving("NodeResourcesFit") as app:
            refused = post(app, "/preempt", body)
        assert refused.status == 400
        assert refused.text.endswith("this extender knows no cluster\n")
