"""PodTopologySpread: soft constraints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from kschedfw.plugins.pod_topology_spread.scoring import _rounded
from tests.plugins.cycles import Cycle, make, make_node, make_pod

WEB = {"app": "web"}
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def soft(key: str = ZONE, max_skew: int = 1, **rest: Any) -> dict[str, Any]:
    return {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": WEB},
        **rest,
    }


def incoming(*constraints: dict[str, Any], **spec: Any) -> Pod:
    return make_pod("incoming", WEB, topologySpreadConstraints=list(constraints), **spec)


def web_pods(**per_node: int) -> list[Pod]:
    return [make_pod(f"{on}-{i}", WEB, on=on) for on, count in per_node.items() for i in range(count)]


def cycle(nodes: list[Node], pods: list[Pod] = [], *objects: Any, **args: Any) -> Cycle:  # noqa: B006
    return Cycle.of(PodTopologySpread, PodTopologySpreadArgs(**args), nodes, pods, objects)


@pytest.fixture
def nodes() -> list[Node]:
    """Two zones with two nodes each."""
    return [make_node(name, {ZONE: name[0], HOST: name}) for name in ("a1", "a2", "b1", "b2")]


class TestScore:
    def test_emptier_domains_are_better(self, nodes: list[Node]) -> None:
        raw, normalized = cycle(nodes, web_pods(a1=2, b2=1)).score(incoming(soft()))
        weight = math.log(2 + 2)  # two zones
        assert raw == [round(2 * weight), round(2 * weight), round(weight), round(weight)] == [3, 3, 1, 1]
        assert normalized == [100 * (3 + 1 - 3) // 3] * 2 + [100] * 2

    def test_hosts_are_counted_node_by_node(self, nodes: list[Node]) -> None:
        raw, normalized = cycle(nodes, web_pods(a1=2, b2=1)).score(incoming(soft(HOST)))
        weight = math.log(4 + 2)
        assert raw == [round(2 * weight), 0, 0, round(weight)] == [4, 0, 0, 2]
        assert normalized == [0, 100, 100, 50]

    def test_only_feasible_nodes_make_domains(self, nodes: list[Node]) -> None:
        # with zone a alone left over, the weight is that of one domain; pods on infeasible nodes still count
        run = cycle(nodes, web_pods(a1=1, a2=2, b1=5))
        assert run.score(incoming(soft()), ["a2"]) == ([round(3 * math.log(1 + 2))], [100])

    def test_greater_max_skew_waters_differences_down(self, nodes: list[Node]) -> None:
        raw, normalized = cycle(nodes, web_pods(a1=2)).score(incoming(soft(max_skew=5)))
        assert raw == [7, 7, 4, 4]
        assert normalized == [57, 57, 100, 100]

    def test_constraints_add_up(self, nodes: list[Node]) -> None:
        raw, _ = cycle(nodes, web_pods(a1=2, a2=1)).score(incoming(soft(), soft(HOST)))
        zone, host = math.log(4), math.log(6)
        assert raw == [round(3 * zone + 2 * host), round(3 * zone + host), 0, 0]

    def test_no_pods_at_all_is_best_everywhere(self, nodes: list[Node]) -> None:
        assert cycle(nodes).score(incoming(soft())) == ([0, 0, 0, 0], [100, 100, 100, 100])

    def test_only_pods_of_the_namespace_that_stay_count(self, nodes: list[Node]) -> None:
        pods = [
            make_pod("elsewhere", WEB, on="a1", namespace="elsewhere"),
            make_pod("leaving", WEB, on="a1", metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"}),
            make_pod("other", {"app": "db"}, on="a1"),
        ]
        raw, _ = cycle(nodes, pods).score(incoming(soft(), soft(HOST)))
        assert raw == [0, 0, 0, 0]

    def test_inclusion_policies_limit_what_counts(self) -> None:
        nodes = [
            make_node("a1", {ZONE: "a"}),
            make_node("a2", {ZONE: "a", "disk": "hdd"}),
            make_node("a3", {ZONE: "a"}, "x:NoSchedule"),
            make_node("b1", {ZONE: "b"}),
        ]
        run = cycle(nodes, web_pods(a1=1, a2=1, a3=1))
        not_hdd = {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}
        affinity = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [not_hdd]}
            }
        }
        for constraint, counted in (
            (soft(), 2),
            (soft(nodeTaintsPolicy="Honor"), 1),
            (soft(nodeAffinityPolicy="Ignore"), 3),
        ):
            pod = incoming(constraint, affinity=affinity)
            assert run.score(pod, ["a1", "b1"])[0] == [round(counted * math.log(4)), 0]


class TestIgnoredNodes:
    def test_nodes_that_lack_a_label_are_worst_and_count_for_nothing(self, nodes: list[Node]) -> None:
        bare = make_node("bare", {ZONE: "a"})
        run = cycle([*nodes, bare], [*web_pods(a1=1, bare=5)])
        raw, normalized = run.score(incoming(soft(), soft(HOST)))
        assert raw == [round(math.log(4) + math.log(6)), round(math.log(4)), 0, 0, 0]
        assert normalized[2:] == [100, 100, 0]

    def test_even_if_all_others_are_equally_good(self, nodes: list[Node]) -> None:
        assert cycle([*nodes, make_node("bare")]).score(incoming(soft()))[1] == [100, 100, 100, 100, 0]

    def test_when_there_are_no_others(self) -> None:
        assert cycle([make_node("bare")], web_pods(bare=1)).score(incoming(soft())) == ([0], [0])


class TestSkip:
    def test_pods_without_soft_constraints(self, nodes: list[Node]) -> None:
        assert cycle(nodes).skips_scoring(make_pod())
        assert cycle(nodes).skips_scoring(incoming(soft(whenUnsatisfiable="DoNotSchedule")))

    def test_no_nodes(self) -> None:
        assert cycle([]).skips_scoring(incoming(soft()))


class TestDefaults:
    @pytest.fixture
    def service(self) -> Any:
        return make("Service", "web", "default", spec={"selector": WEB})

    def test_system_defaults_spread_over_hosts_and_zones(self, nodes: list[Node], service: Any) -> None:
        raw, normalized = cycle(nodes, web_pods(a1=2, b1=1), service).score(make_pod(labels=WEB))
        host, zone = math.log(6), math.log(4)
        assert raw == [
            round(2 * host + 2 + 2 * zone + 4),
            round(2 + 2 * zone + 4),
            round(host + 2 + zone + 4),
            round(2 + zone + 4),
        ]
        assert normalized[3] == 100

    def test_system_defaults_do_not_ignore_nodes_without_zone(self, service: Any) -> None:
        nodes = [
            make_node("x", {HOST: "x"}),
            make_node("y", {HOST: "y"}),
            make_node("z", {HOST: "z", ZONE: "z"}),
        ]
        raw, normalized = cycle(nodes, web_pods(x=1, z=1), service).score(make_pod(labels=WEB))
        # having no zone is like being in a zone of its own when domains are numbered, but it costs nothing
        assert raw == [round(math.log(5) + 2), 2, round(math.log(5) + 2 + math.log(4) + 4)]
        assert normalized == [77, 100, 22]

    def test_listed_defaults_do(self, service: Any) -> None:
        defaults = incoming({key: value for key, value in soft().items() if key != "labelSelector"})
        constraints = defaults.spec.topology_spread_constraints
        nodes = [make_node("x"), make_node("z", {ZONE: "z"})]
        run = cycle(nodes, [], service, default_constraints=constraints, defaulting_type="List")
        assert run.score(make_pod(labels=WEB)) == ([0, 0], [0, 100])

    def test_pods_that_nothing_selects_are_not_scored(self, nodes: list[Node], service: Any) -> None:
        assert cycle(nodes, [], service).skips_scoring(make_pod(labels={"app": "db"}))


@pytest.mark.parametrize(
    ("score", "rounded"),
    [
        (0.0, 0),
        (math.log(2), 1),
        (1.4, 1),
        (2.5, 3),
        *((math.nextafter(whole + 0.5, 0.0), whole) for whole in (1, 2, 3, 1023, 1024, 2**40)),
    ],
)
def test_halves_are_rounded_up(score: float, rounded: int) -> None:
    assert _rounded(np.array([score])).tolist() == [rounded]
