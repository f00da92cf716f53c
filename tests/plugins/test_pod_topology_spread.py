"""PodTopologySpread: hard constraints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import IDLE
from kschedfw import make_node as node_builder
from kschedfw import make_pod as pod_builder
from kschedfw.api.affinity import TopologySpreadConstraint, UnsatisfiableAction
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import LabelSelector
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState, StateKeyError
from kschedfw.framework.events import EventResource
from kschedfw.framework.status import Code
from kschedfw.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from kschedfw.plugins.pod_topology_spread.plugin import HARD
from kschedfw.scheduler.queue import pod_change_events
from kschedfw.testing import FrameworkHarness
from tests.plugins.cycles import Cycle, make, make_node, make_pod

WEB = {"app": "web"}
LIST = "List"


def controller(kind: str, selector: dict[str, Any], labels: dict[str, str]) -> Any:
    container = {"name": "main", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return make(kind, "web", "default", spec={"selector": selector, "template": template})


def hard(key: str = "zone", max_skew: int = 1, **rest: Any) -> dict[str, Any]:
    """A DoNotSchedule constraint over pods of the app web, unless `rest` says otherwise."""
    constraint = {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **rest,
    }
    return {name: value for name, value in constraint.items() if value is not None}


def incoming(*constraints: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    return make_pod(
        "incoming", WEB if labels is None else labels, topologySpreadConstraints=list(constraints), **spec
    )


def with_constraints(*constraints: TopologySpreadConstraint) -> Pod:
    """A pod of the app web with constraints that the API server need not accept."""
    pod = make_pod("incoming", WEB)
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, topology_spread_constraints=constraints))


def web_pods(**per_node: int) -> list[Pod]:
    """That many pods of the app web on each node."""
    return [make_pod(f"{on}-{i}", WEB, on=on) for on, count in per_node.items() for i in range(count)]


def counted(run: Cycle) -> list[tuple[dict[str, int], int]]:
    """For each hard constraint the count of every domain, and what count it allows."""
    return [
        (
            {value: domains.count(value) for value in domains.extent.column.values if value is not None},
            domains.allowed(),
        )
        for domains in run.state.read(HARD).domains
    ]


def cycle(nodes: list[Node], pods: list[Pod] = [], *objects: Any, **args: Any) -> Cycle:  # noqa: B006
    return Cycle.of(PodTopologySpread, PodTopologySpreadArgs(**args), nodes, pods, objects)


@pytest.fixture
def nodes() -> list[Node]:
    """Two zones with two nodes each."""
    return [
        make_node("a1", zone="a", host="a1"),
        make_node("a2", zone="a", host="a2"),
        make_node("b1", zone="b", host="b1"),
        make_node("b2", zone="b", host="b2"),
    ]


class TestSkew:
    def test_counts_pods_per_domain_and_not_per_node(self, nodes: list[Node]) -> None:
        assert cycle(nodes, web_pods(a1=1, a2=1, b1=1)).fits(incoming(hard())) == ["b1", "b2"]

    def test_greater_max_skew_allows_more(self, nodes: list[Node]) -> None:
        pods = web_pods(a1=1, a2=1, b1=1)
        assert cycle(nodes, pods).fits(incoming(hard(max_skew=2))) == ["a1", "a2", "b1", "b2"]

    def test_pod_that_does_not_match_itself_adds_nothing(self, nodes: list[Node]) -> None:
        pods = web_pods(a1=1, a2=1, b1=1)
        assert cycle(nodes, pods).fits(incoming(hard(), labels={})) == ["a1", "a2", "b1", "b2"]

    def test_every_constraint_must_hold(self, nodes: list[Node]) -> None:
        pods = web_pods(a1=2, b1=1)
        assert cycle(nodes, pods).filter(incoming(hard(), hard("host"))) == {
            "a1": "skew",
            "a2": "skew",
            "b1": "skew",
            "b2": "ok",
        }

    def test_no_node_can_satisfy_contradicting_constraints(self, nodes: list[Node]) -> None:
        front = hard("host", labelSelector={"matchLabels": {"tier": "front"}})
        fronts = [make_pod(f"front-{name}", {"tier": "front"}, on=name) for name in ("b1", "b2")]
        pod = incoming(hard(), front, labels={**WEB, "tier": "front"})
        assert cycle(nodes, [*web_pods(a1=1), *fronts]).fits(pod) == []

    def test_only_pods_of_the_same_namespace_count(self, nodes: list[Node]) -> None:
        pods = [make_pod("other", WEB, on="a1", namespace="elsewhere")]
        assert cycle(nodes, pods).fits(incoming(hard())) == ["a1", "a2", "b1", "b2"]

    def test_pods_on_their_way_out_do_not_count(self, nodes: list[Node]) -> None:
        leaving = make_pod("leaving", WEB, on="a1", metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"})
        assert cycle(nodes, [leaving]).fits(incoming(hard())) == ["a1", "a2", "b1", "b2"]

    def test_empty_selector_counts_no_existing_pod_but_the_incoming_one(self, nodes: list[Node]) -> None:
        pods = web_pods(a1=5)
        assert cycle(nodes, pods).fits(incoming(hard(labelSelector={}))) == ["a1", "a2", "b1", "b2"]

    def test_absent_selector_matches_nothing(self, nodes: list[Node]) -> None:
        pods = web_pods(a1=5)
        assert cycle(nodes, pods).fits(incoming(hard(labelSelector=None))) == ["a1", "a2", "b1", "b2"]


class TestTopology:
    def test_node_without_the_label_is_refused_for_good(self) -> None:
        verdict = cycle([make_node("bare")])
        assert verdict.filter(incoming(hard())) == {"bare": "no label"}
        status = verdict.plugin.filter(verdict.state, verdict.snapshot.get("bare"))
        assert status is not None
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def test_skew_can_be_helped_by_preemption(self, nodes: list[Node]) -> None:
        run = cycle(nodes, web_pods(a1=1))
        run.pre_filter(incoming(hard()))
        status = run.plugin.filter(run.state, run.snapshot.get("a1"))
        assert status is not None
        assert status.code is Code.UNSCHEDULABLE

    def test_empty_label_value_is_a_domain_like_any_other(self) -> None:
        run = cycle([make_node("x", zone=""), make_node("y", zone="a")], web_pods(x=1))
        assert run.fits(incoming(hard())) == ["y"]

    def test_node_that_lacks_another_constraints_label_counts_for_neither(self, nodes: list[Node]) -> None:
        # c is an empty zone, but its node has no host label: the emptiest zone that counts is b, with one pod
        nodes = [*nodes, make_node("c1", zone="c")]
        run = cycle(nodes, web_pods(a1=1, a2=1, b1=1))
        assert run.fits(incoming(hard())) == ["c1"]
        assert run.filter(incoming(hard(), hard("host", max_skew=9))) == {
            "a1": "skew",
            "a2": "skew",
            "b1": "ok",
            "b2": "ok",
            "c1": "no label",
        }

    def test_domains_without_a_counted_node_have_no_minimum(self, nodes: list[Node]) -> None:
        # nobody is admitted by the node selector, so there's no domain to be emptier than
        run = cycle(nodes, web_pods(a1=3))
        assert run.fits(incoming(hard(), nodeSelector={"disk": "ssd"})) == ["a1", "a2", "b1", "b2"]


class TestMinDomains:
    def test_fewer_domains_than_wanted_count_as_if_one_were_empty(self, nodes: list[Node]) -> None:
        run = cycle(nodes, web_pods(a1=1, b1=1))
        assert run.fits(incoming(hard(minDomains=3))) == []
        assert run.fits(incoming(hard(minDomains=2))) == ["a1", "a2", "b1", "b2"]

    def test_a_greater_skew_still_leaves_room(self, nodes: list[Node]) -> None:
        run = cycle(nodes, web_pods(a1=2, b1=1))
        assert run.fits(incoming(hard(max_skew=2, minDomains=3))) == ["b1", "b2"]


class TestInclusionPolicies:
    """a is crowded, b has one pod, c is empty but in some way out of bounds."""

    @pytest.fixture
    def pods(self) -> list[Pod]:
        return web_pods(a1=2, b1=1)

    def test_nodes_outside_of_the_node_selector_do_not_count(self, pods: list[Pod]) -> None:
        nodes = [make_node(f"{zone}1", zone=zone, disk="hdd" if zone == "c" else "ssd") for zone in "abc"]
        run = cycle(nodes, pods)
        assert run.fits(incoming(hard(), nodeSelector={"disk": "ssd"})) == ["b1", "c1"]
        ignoring = hard(nodeAffinityPolicy="Ignore")
        assert run.fits(incoming(ignoring, nodeSelector={"disk": "ssd"})) == ["c1"]

    def test_nor_do_nodes_outside_of_required_node_affinity(self, pods: list[Pod]) -> None:
        nodes = [make_node(f"{zone}1", zone=zone) for zone in "abc"]
        not_c = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["c"]}]}
        affinity = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [not_c]}}
        }
        assert cycle(nodes, pods).fits(incoming(hard(), affinity=affinity)) == ["b1", "c1"]

    @pytest.mark.parametrize(
        ("policy", "fits"), [(None, ["c1"]), ("Ignore", ["c1"]), ("Honor", ["b1", "c1"])]
    )
    def test_untolerated_taints_count_only_if_honoured(
        self, pods: list[Pod], policy: str | None, fits: list[str]
    ) -> None:
        nodes = [
            make_node("a1", zone="a"),
            make_node("b1", zone="b"),
            make_node("c1", {"zone": "c"}, "x:NoExecute"),
        ]
        assert cycle(nodes, pods).fits(incoming(hard(nodeTaintsPolicy=policy))) == fits

    def test_tolerated_or_soft_taints_exclude_nothing(self, pods: list[Pod]) -> None:
        nodes = [
            make_node("a1", zone="a"),
            make_node("b1", {"zone": "b"}, "y:PreferNoSchedule"),
            make_node("c1", {"zone": "c"}, "x:NoSchedule"),
        ]
        constraint = hard(nodeTaintsPolicy="Honor")
        run = cycle(nodes, pods)
        assert run.fits(incoming(constraint)) == ["b1", "c1"]
        assert run.fits(incoming(constraint, tolerations=[{"key": "x", "operator": "Exists"}])) == ["c1"]

    def test_policies_apply_to_each_constraint_by_itself(self, nodes: list[Node]) -> None:
        nodes = [
            make_node("a1", zone="a", host="a1"),
            make_node("b1", {"zone": "b", "host": "b1"}, "x:NoSchedule"),
        ]
        run = cycle(nodes, web_pods(a1=1))
        pod = incoming(hard(nodeTaintsPolicy="Honor"), hard("host"))
        assert run.filter(pod) == {"a1": "skew", "b1": "ok"}
        assert run.fits(incoming(hard(nodeTaintsPolicy="Honor"), hard("host", nodeTaintsPolicy="Honor"))) == [
            "a1",
            "b1",
        ]


class TestMatchLabelKeys:
    def test_narrow_the_selector_to_the_pods_own_values(self, nodes: list[Node]) -> None:
        pods = [make_pod(f"old-{i}", {**WEB, "rev": "1"}, on="a1") for i in range(3)]
        constraint = hard(matchLabelKeys=["rev", "missing"])
        run = cycle(nodes, pods)
        assert run.fits(incoming(constraint, labels={**WEB, "rev": "2"})) == ["a1", "a2", "b1", "b2"]
        assert run.fits(incoming(constraint, labels={**WEB, "rev": "1"})) == ["b1", "b2"]

    def test_do_not_make_an_absent_selector_match(self, nodes: list[Node]) -> None:
        constraint = TopologySpreadConstraint(
            1, "zone", UnsatisfiableAction.DO_NOT_SCHEDULE, match_label_keys=("app",)
        )
        pod = with_constraints(constraint)
        assert cycle(nodes, web_pods(a1=3)).fits(pod) == ["a1", "a2", "b1", "b2"]


class TestSkip:
    def test_pods_without_hard_constraints(self, nodes: list[Node]) -> None:
        run = cycle(nodes)
        assert run.filter(make_pod()) == "skip"
        assert run.filter(incoming(hard(whenUnsatisfiable="ScheduleAnyway"))) == "skip"

    def test_filter_without_pre_filter_is_an_error(self, nodes: list[Node]) -> None:
        run = cycle(nodes)
        with pytest.raises(StateKeyError, match=r"PodTopologySpread\.hard"):
            run.plugin.filter(CycleState(), run.snapshot.get("a1"))


class TestMalformedSelectors:
    """They can't come through the API server, but through a builder."""

    @pytest.mark.parametrize(
        ("hard", "hook", "said"),
        [
            (True, "pre_filter", "obtaining pod's hard topology spread constraints: "),
            (
                False,
                "pre_score",
                "calculating preScoreState: obtaining pod's soft topology spread constraints: ",
            ),
        ],
    )
    def test_they_are_an_error(self, hard: bool, hook: str, said: str) -> None:
        pod = pod_builder().spread("zone", {"app": "{{bad}}"}, hard=hard).build(check=False)
        harness = FrameworkHarness(PodTopologySpread, nodes=[node_builder("a").labels(zone="z").build()])
        if hook == "pre_filter":
            _, status = harness.pre_filter(pod)
            assert status.code is Code.ERROR
            assert said in status.message
            assert "{{bad}}" in status.message
        else:
            with pytest.raises(AssertionError, match="calculating preScoreState: obtaining pod's soft"):
                harness.score(pod)


class TestDefaults:
    """Constraints of the arguments, for pods without any."""

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        constraint = incoming(hard(labelSelector=None)).spec.topology_spread_constraints[0]
        return {"defaulting_type": LIST, "default_constraints": (constraint,)}

    @pytest.fixture
    def service(self) -> Any:
        return make("Service", "web", "default", spec={"selector": WEB})

    def test_apply_to_pods_that_a_service_selects(
        self, nodes: list[Node], args: dict[str, Any], service: Any
    ) -> None:
        run = cycle(nodes, web_pods(a1=1), service, **args)
        assert run.fits(make_pod(labels=WEB)) == ["b1", "b2"]

    def test_not_to_pods_that_nothing_selects(
        self, nodes: list[Node], args: dict[str, Any], service: Any
    ) -> None:
        run = cycle(nodes, web_pods(a1=1), service, **args)
        assert run.filter(make_pod(labels={"app": "db"})) == "skip"
        assert run.filter(make_pod(labels=WEB, namespace="elsewhere")) == "skip"

    def test_not_to_pods_with_constraints_of_either_kind(
        self, nodes: list[Node], args: dict[str, Any], service: Any
    ) -> None:
        run = cycle(nodes, web_pods(a1=1), service, **args)
        assert run.filter(incoming(hard(whenUnsatisfiable="ScheduleAnyway"))) == "skip"

    def test_service_without_selector_selects_nothing(self, nodes: list[Node], args: dict[str, Any]) -> None:
        service = make("Service", "external", "default", spec={})
        assert cycle(nodes, [], service, **args).filter(make_pod(labels=WEB)) == "skip"

    @pytest.mark.parametrize(
        ("kind", "api_version", "selector"),
        [
            ("ReplicationController", "v1", WEB),
            ("ReplicaSet", "apps/v1", {"matchLabels": WEB}),
            ("StatefulSet", "apps/v1", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        ],
    )
    def test_apply_to_pods_of_a_controller(
        self, nodes: list[Node], args: dict[str, Any], kind: str, api_version: str, selector: dict[str, Any]
    ) -> None:
        run = cycle(nodes, web_pods(a1=1), controller(kind, selector, WEB), **args)
        owner = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": True}
        assert run.fits(make_pod(labels=WEB, metadata={"ownerReferences": [owner]})) == ["b1", "b2"]

        for changed in ({"controller": False}, {"apiVersion": "example.com/v1"}, {"name": "gone"}):
            pod = make_pod(labels=WEB, metadata={"ownerReferences": [{**owner, **changed}]})
            assert run.filter(pod) == "skip"

    def test_service_and_controller_must_both_agree(
        self, nodes: list[Node], args: dict[str, Any], service: Any
    ) -> None:
        replica_set = controller("ReplicaSet", {"matchLabels": {"rev": "2"}}, {"rev": "2"})
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        pod = make_pod(labels={**WEB, "rev": "2"}, metadata={"ownerReferences": [owner]})
        # the pods on a1 are the service's but not the controller's
        run = cycle(nodes, web_pods(a1=3), service, replica_set, **args)
        assert run.fits(pod) == ["a1", "a2", "b1", "b2"]

    def test_services_and_controllers_may_come_change_and_go(
        self, nodes: list[Node], args: dict[str, Any], service: Any
    ) -> None:
        replica_set = controller("ReplicaSet", {"matchLabels": WEB}, WEB)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        owned = make_pod(labels=WEB, metadata={"ownerReferences": [owner]})
        run = cycle(nodes, web_pods(a1=1), **args)
        cluster = run.plugin.handle.cluster
        assert isinstance(cluster, InMemoryCluster)
        for obj, pod in ((service, make_pod(labels=WEB)), (replica_set, owned)):
            assert run.filter(pod) == "skip"
            stored = cluster.add(obj)
            assert run.fits(pod) == ["b1", "b2"]
            other = FrozenDict({"app": "db"}) if obj is service else LabelSelector(FrozenDict({"app": "db"}))
            changed = cluster.update(attrs.evolve(stored, spec=attrs.evolve(stored.spec, selector=other)))
            assert run.fits(pod) == ["a1", "a2", "b1", "b2"]
            cluster.delete(changed)
            assert run.filter(pod) == "skip"

    def test_system_defaults_never_filter(self, nodes: list[Node], service: Any) -> None:
        assert cycle(nodes, web_pods(a1=9), service).filter(make_pod(labels=WEB)) == "skip"


class TestWhatIf:
    """pre_filter_add_pod and pre_filter_remove_pod."""

    def test_removing_pods_makes_room(self, nodes: list[Node]) -> None:
        pods = web_pods(a1=1, b1=1, b2=1)
        pod = incoming(hard())
        run = cycle(nodes, pods)
        assert run.fits(pod) == ["a1", "a2"]
        run.remove(pod, pods[1], "b1")
        assert run.verdicts() == {"a1": "ok", "a2": "ok", "b1": "ok", "b2": "ok"}

    def test_the_minimum_follows(self, nodes: list[Node]) -> None:
        pod = incoming(hard())
        run = cycle(nodes, web_pods(a1=1))
        assert run.fits(pod) == ["b1", "b2"]
        run.add(pod, make_pod("new", WEB), "b1")
        assert run.verdicts() == {"a1": "ok", "a2": "ok", "b1": "ok", "b2": "ok"}
        run.add(pod, make_pod("newer", WEB), "b1")
        assert run.verdicts() == {"a1": "ok", "a2": "ok", "b1": "skew", "b2": "skew"}

    def test_pods_that_are_none_of_its_business_change_nothing(self, nodes: list[Node]) -> None:
        pod = incoming(hard(), nodeSelector={"zone": "a"})
        run = cycle([*nodes, make_node("bare")], web_pods(a1=1))
        run.pre_filter(pod)
        before = counted(run)
        run.add(pod, make_pod("elsewhere", WEB, namespace="elsewhere"), "a1")
        run.add(pod, make_pod("other", {"app": "db"}), "a1")
        run.add(pod, make_pod("on-excluded", WEB), "b1")
        run.add(pod, make_pod("on-bare", WEB), "bare")
        assert counted(run) == before

    def test_a_node_that_came_later_adds_its_domain(self, nodes: list[Node]) -> None:
        pod = incoming(hard())
        run = cycle(nodes, web_pods(a1=1, b1=1))
        run.pre_filter(pod)
        late = Cycle.of(PodTopologySpread, PodTopologySpreadArgs(), [make_node("c1", zone="c")])
        late.state = run.state
        late.add(pod, make_pod("first", WEB), "c1")
        late.remove(pod, make_pod("first", WEB), "c1")
        assert run.verdicts() == {"a1": "skew", "a2": "skew", "b1": "skew", "b2": "skew"}

    def test_a_clone_is_independent(self, nodes: list[Node]) -> None:
        pod = incoming(hard())
        run = cycle(nodes)
        run.pre_filter(pod)
        original, run.state = run.state, run.state.clone()
        run.add(pod, make_pod("new", WEB), "a1")
        assert run.verdicts()["a1"] == "skew"
        run.state = original
        assert run.verdicts()["a1"] == "ok"


NODE_NAMES = ("a1", "a2", "b1", "b2", "c1")
LABELS = st.sampled_from([{}, WEB, {"app": "db"}, {**WEB, "rev": "1"}])
CONSTRAINTS = st.lists(
    st.builds(
        hard,
        st.sampled_from(["zone", "host"]),
        st.integers(1, 2),
        labelSelector=st.sampled_from(
            [{"matchLabels": WEB}, {"matchExpressions": [{"key": "rev", "operator": "DoesNotExist"}]}]
        ),
        nodeAffinityPolicy=st.sampled_from(["Honor", "Ignore"]),
        minDomains=st.sampled_from([None, 3]),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda constraint: constraint["topologyKey"],
)
PLACES = st.lists(st.tuples(st.sampled_from(NODE_NAMES), LABELS), max_size=8)


def some_nodes() -> list[Node]:
    return [make_node(name, zone=name[0], host=name) for name in NODE_NAMES]


class TestProperties:
    @given(CONSTRAINTS, PLACES, st.sampled_from(NODE_NAMES), LABELS)
    def test_removing_undoes_adding(
        self,
        constraints: list[dict[str, Any]],
        places: list[tuple[str, dict[str, str]]],
        node_name: str,
        labels: dict[str, str],
    ) -> None:
        pods = [make_pod(f"p{i}", its, on=on) for i, (on, its) in enumerate(places)]
        pod, other = incoming(*constraints, nodeSelector={"zone": "a"}), make_pod("other", labels)
        run = cycle(some_nodes(), pods)
        run.pre_filter(pod)
        before = counted(run)
        run.add(pod, other, node_name)
        run.remove(pod, other, node_name)
        assert counted(run) == before

    @given(CONSTRAINTS, PLACES, PLACES)
    def test_adding_gives_what_counting_afresh_gives(
        self,
        constraints: list[dict[str, Any]],
        places: list[tuple[str, dict[str, str]]],
        more: list[tuple[str, dict[str, str]]],
    ) -> None:
        pods = [make_pod(f"p{i}", its, on=on) for i, (on, its) in enumerate(places)]
        added = [make_pod(f"q{i}", its, on=on) for i, (on, its) in enumerate(more)]
        pod = incoming(*constraints)
        run = cycle(some_nodes(), pods)
        run.pre_filter(pod)
        for other in added:
            run.add(pod, other, other.node_name)
        fresh = cycle(some_nodes(), [*pods, *added])
        fresh.pre_filter(pod)
        assert counted(run) == counted(fresh)


class TestSignature:
    def test_pods_without_constraints_and_siblings_are_none_of_its_business(self, nodes: list[Node]) -> None:
        plugin = cycle(nodes).plugin
        assert plugin.sign(make_pod()) is IDLE
        assert plugin.sign(make_pod(labels=WEB)) is IDLE

    @pytest.mark.parametrize("unsatisfiable", ["DoNotSchedule", "ScheduleAnyway"])
    def test_pods_with_constraints_have_none(self, nodes: list[Node], unsatisfiable: str) -> None:
        assert cycle(nodes).plugin.sign(incoming(hard(whenUnsatisfiable=unsatisfiable))) is None

    def test_pods_with_malformed_selectors_have_none(self, nodes: list[Node]) -> None:
        pod = pod_builder().spread("zone", {"app": "{{bad}}"}).build(check=False)
        assert cycle(nodes).plugin.sign(pod) is None


class TestArgs:
    @staticmethod
    def errors(**args: Any) -> list[str]:
        return [str(error) for error in PodTopologySpreadArgs(**args).validate()]

    def test_defaults_are_valid(self) -> None:
        assert PodTopologySpreadArgs().defaulting_type == "System"
        assert self.errors() == []
        assert self.errors(defaulting_type=LIST) == []

    def test_system_defaulting_excludes_a_list(self) -> None:
        constraint = TopologySpreadConstraint(1, "zone", UnsatisfiableAction.SCHEDULE_ANYWAY)
        assert self.errors(default_constraints=(constraint,)) == [
            'defaultingType: Invalid value: "System": when .defaultConstraints are not empty'
        ]
        assert self.errors(default_constraints=(constraint,), defaulting_type=LIST) == []

    def test_unknown_defaulting(self) -> None:
        assert self.errors(defaulting_type="Sytem") == [
            'defaultingType: Unsupported value: "Sytem": supported values: "System", "List"'
        ]

    def test_every_bad_constraint_is_named(self) -> None:
        soft = UnsatisfiableAction.SCHEDULE_ANYWAY
        deduced = "constraint must not define a selector, as they deduced for each pod"
        constraints = (
            TopologySpreadConstraint(0, "zone", soft),
            TopologySpreadConstraint(1, "", soft),
            TopologySpreadConstraint(1, "host", soft, LabelSelector()),
            TopologySpreadConstraint(2, "zone", soft),
            TopologySpreadConstraint(2, "zone", UnsatisfiableAction.DO_NOT_SCHEDULE),
        )
        assert self.errors(default_constraints=constraints, defaulting_type=LIST) == [
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
            "defaultConstraints[1].topologyKey: Required value: can not be empty",
            f"defaultConstraints[2].labelSelector: Forbidden: {deduced}",
            'defaultConstraints[3]: Duplicate value: "{zone, ScheduleAnyway}"',
        ]

    def test_topology_key_must_be_a_label_name(self) -> None:
        constraint = TopologySpreadConstraint(1, "a/b/c", UnsatisfiableAction.SCHEDULE_ANYWAY)
        (error,) = self.errors(default_constraints=(constraint,), defaulting_type=LIST)
        assert error.startswith(
            'defaultConstraints[0].topologyKey: Invalid value: "a/b/c": a valid label key must consist of'
        )


def nominated(pod: Pod) -> Pod:
    return attrs.evolve(pod, status=attrs.evolve(pod.status, nominated_node_name="a1"))


def terminating(pod: Pod) -> Pod:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, deletion_timestamp=moment))


def hint(
    resource: EventResource, pod: Pod, old: object | None, new: object | None, *, complete: bool = False
) -> str:
    events = cycle([], complete_hints=complete).plugin.events_to_register()
    (ask,) = [event.hint for event in events if event.resource is resource]
    assert ask is not None
    return ask(pod, old, new).value


class TestPodHints:
    pod = incoming(hard(), hard("host", labelSelector={"matchLabels": {"tier": "front"}}))

    @pytest.mark.parametrize(
        ("other", "expected"),
        [
            (make_pod("bound", WEB, on="a1"), "queue"),
            (make_pod("bound", {"tier": "front"}, on="a1"), "queue"),
            (make_pod("bound", {"app": "db"}, on="a1"), "skip"),
            (make_pod("pending", WEB), "skip"),
            (nominated(make_pod("nominated", WEB)), "queue"),
            (nominated(make_pod("nominated", {"app": "db"})), "skip"),
            (make_pod("elsewhere", WEB, on="a1", namespace="elsewhere"), "skip"),
        ],
    )
    def test_added_and_deleted_pods_count_if_a_constraint_counts_them(
        self, other: Pod, expected: str
    ) -> None:
        assert hint(EventResource.POD, self.pod, None, other) == expected
        assert hint(EventResource.POD, self.pod, other, None) == expected

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            (WEB, {}, "queue"),
            ({}, WEB, "queue"),
            (WEB, {**WEB, "tier": "front"}, "queue"),
            (WEB, {**WEB, "rev": "2"}, "skip"),
            ({}, {"app": "db"}, "skip"),
        ],
    )
    def test_changed_labels_count_if_a_selector_notices(
        self, before: dict[str, str], after: dict[str, str], expected: str
    ) -> None:
        old, new = make_pod("bound", before, on="a1"), make_pod("bound", after, on="a1")
        assert hint(EventResource.POD, self.pod, old, new) == expected

    def test_new_tolerations_count_if_taints_do(self) -> None:
        tolerations = [{"key": "x", "operator": "Exists"}]
        for policy, expected in (("Honor", "queue"), ("Ignore", "skip")):
            constraint = hard(nodeTaintsPolicy=policy)
            old, new = incoming(constraint), incoming(constraint, tolerations=tolerations)
            assert hint(EventResource.POD, old, old, new) == expected

    def test_complete_hints_notice_pods_that_cease_to_count(self) -> None:
        web, other = make_pod("bound", WEB, on="a1"), make_pod("bound", {"app": "db"}, on="a1")
        assert hint(EventResource.POD, self.pod, web, terminating(web)) == "skip"
        assert hint(EventResource.POD, self.pod, web, terminating(web), complete=True) == "queue"
        assert hint(EventResource.POD, self.pod, web, web, complete=True) == "skip"
        assert hint(EventResource.POD, self.pod, other, terminating(other), complete=True) == "skip"

    def test_complete_hints_hear_of_every_update(self) -> None:
        """That a pod terminates is none of the changes that have a name of their own."""
        web = make_pod("bound", WEB, on="a1")
        (event,) = pod_change_events(web, terminating(web))
        for complete in (False, True):
            subscriptions = cycle([], complete_hints=complete).plugin.events_to_register()
            assert any(each.matches(event) for each in subscriptions) is complete


class TestNodeHints:
    pod = incoming(hard(), hard("host"))

    def test_complete_hints_notice_other_labels_of_nodes_that_count(self) -> None:
        """They may be what the pod's node affinity is about, and so decide whether a node counts."""
        here = {"zone": "a", "host": "h"}
        old, new = make_node("n", here), make_node("n", here, disk="ssd")
        assert hint(EventResource.NODE, self.pod, old, new) == "skip"
        assert hint(EventResource.NODE, self.pod, old, new, complete=True) == "queue"
        outside = make_node("n"), make_node("n", disk="ssd")
        assert hint(EventResource.NODE, self.pod, *outside, complete=True) == "skip"

    @pytest.mark.parametrize(
        ("labels", "expected"), [({"zone": "a", "host": "h"}, "queue"), ({"zone": "a"}, "skip")]
    )
    def test_nodes_that_come_or_go_count_if_they_have_all_labels(
        self, labels: dict[str, str], expected: str
    ) -> None:
        node = make_node("n", labels)
        assert hint(EventResource.NODE, self.pod, None, node) == expected
        assert hint(EventResource.NODE, self.pod, node, None) == expected

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (make_node("n", zone="a"), make_node("n", zone="a", host="h"), "queue"),
            (make_node("n", zone="a", host="h"), make_node("n", zone="a"), "queue"),
            (make_node("n", zone="a", host="h"), make_node("n", zone="b", host="h"), "queue"),
            (make_node("n", zone="a", host="h"), make_node("n", zone="a", host="h", disk="ssd"), "skip"),
            (make_node("n", zone="a"), make_node("n", zone="b"), "skip"),
            (
                make_node("n", {"zone": "a", "host": "h"}, "x:NoSchedule"),
                make_node("n", zone="a", host="h"),
                "queue",
            ),
        ],
    )
    def test_changes_of_domains_or_taints_count(self, old: Node, new: Node, expected: str) -> None:
        assert hint(EventResource.NODE, self.pod, old, new) == expected
