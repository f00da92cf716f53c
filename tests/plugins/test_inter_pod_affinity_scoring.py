"""InterPodAffinity: preferred terms, and existing pods' terms."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from kschedfw.api.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import LabelSelector
from kschedfw.framework.results import Normalizing
from kschedfw.framework.status import Code
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from tests.plugins.cycles import Cycle, make, make_node, make_pod

WEB = {"app": "web"}
DB = {"app": "db"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(labels: dict[str, str], key: str = "zone", **rest: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **rest}


def prefers(near: list[tuple[int, dict[str, Any]]] = [], far: list[tuple[int, dict[str, Any]]] = []) -> Any:  # noqa: B006
    return {
        "podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": its} for weight, its in near]},
        "podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": its} for weight, its in far]},
    }


def requires(*terms: dict[str, Any], kind: str = "podAffinity") -> dict[str, Any]:
    return {kind: {REQUIRED: list(terms)}}


def cycle(nodes: list[Node], pods: list[Pod] = [], *objects: Any, **args: Any) -> Cycle:  # noqa: B006
    return Cycle.of(InterPodAffinity, InterPodAffinityArgs(**args), nodes, pods, objects)


@pytest.fixture
def nodes() -> list[Node]:
    return [
        make_node("a1", zone="a", host="a1"),
        make_node("a2", zone="a", host="a2"),
        make_node("b1", zone="b", host="b1"),
        make_node("bare"),
    ]


class TestScoresByDomain:
    @pytest.mark.parametrize(
        ("other", "parts"),
        [(make_node("other", zone="a"), 0), (make_node("other", zone="b"), 1), (make_node("other"), 1)],
    )
    def test_leave_out_a_domain_that_all_nodes_are_in(self, other: Node, parts: int) -> None:
        run = cycle([make_node("a1", zone="a"), other], [make_pod("db", DB, on="a1")])
        run.score(make_pod(affinity=prefers(near=[(8, term(DB))])))
        assert isinstance(run.plugin, InterPodAffinity)
        found = run.plugin.domain_scores(run.state, run.snapshot.table)
        assert len(found.telling_apart().parts) == parts


class TestOwnTerms:
    def test_draw_and_repel_by_weight(self, nodes: list[Node]) -> None:
        pods = [make_pod("db", DB, on="a1"), make_pod("web", WEB, on="b1")]
        pod = make_pod(affinity=prefers(near=[(8, term(DB))], far=[(5, term(WEB))]))
        raw, scores = cycle(nodes, pods).score(pod)
        assert raw == [8, 8, -5, 0]
        assert scores == [100, 100, 0, 38]  # 100 × 5/13, cut off

    def test_every_matching_pod_and_term_adds_up(self, nodes: list[Node]) -> None:
        pods = [make_pod("db1", DB, on="a1"), make_pod("db2", DB, on="a2")]
        pod = make_pod(affinity=prefers(near=[(3, term(DB)), (10, term(DB, "host"))]))
        assert cycle(nodes, pods).score(pod)[0] == [2 * 3 + 10, 2 * 3 + 10, 0, 0]

    def test_namespaces_are_resolved(self, nodes: list[Node]) -> None:
        spaces = [make("Namespace", "blue", labels={"team": "blue"}), make("Namespace", "red")]
        pods = [make_pod("x", DB, on="a1", namespace="blue"), make_pod("y", DB, on="b1", namespace="red")]
        about_blue = term(DB, namespaceSelector={"matchLabels": {"team": "blue"}})
        pod = make_pod(affinity=prefers(near=[(1, about_blue)], far=[(1, term(DB, namespaceSelector={}))]))
        assert cycle(nodes, pods, *spaces).score(pod)[0] == [0, 0, -1, 0]

    def test_a_preference_that_leaves_a_namespace_out_counts_it_too(self, nodes: list[Node]) -> None:
        """As kube-scheduler v1.36, which matches NotIn with no labels in place of the namespace's."""
        blue = make("Namespace", "blue", labels={"team": "blue"})
        without = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]}
        pod = make_pod(affinity=prefers(near=[(5, term(DB, namespaceSelector=without))]))
        run = cycle(nodes, [make_pod("db", DB, on="b1", namespace="blue")], blue)
        assert run.score(pod)[0] == [0, 0, 5, 0]

    def test_infeasible_nodes_count_too(self, nodes: list[Node]) -> None:
        pod = make_pod(affinity=prefers(near=[(1, term(DB))]))
        run = cycle(nodes, [make_pod("db", DB, on="a1")])
        assert run.score(pod, ["a2", "b1"]) == ([1, 0], [100, 0])


class TestTermsOfExistingPods:
    def test_preferences_are_mutual(self, nodes: list[Node]) -> None:
        pods = [
            make_pod("fan", DB, on="a1", affinity=prefers(near=[(7, term(WEB))])),
            make_pod("foe", DB, on="b1", affinity=prefers(far=[(4, term(WEB))])),
        ]
        assert cycle(nodes, pods).score(make_pod(labels=WEB))[0] == [7, 7, -4, 0]

    def test_required_affinity_draws_with_the_hard_weight(self, nodes: list[Node]) -> None:
        pods = [make_pod("db", DB, on="a1", affinity=requires(term(WEB)))]
        assert cycle(nodes, pods).score(make_pod(labels=WEB))[0] == [1, 1, 0, 0]
        assert cycle(nodes, pods, hard_pod_affinity_weight=42).score(make_pod(labels=WEB))[0] == [
            42,
            42,
            0,
            0,
        ]
        assert cycle(nodes, pods, hard_pod_affinity_weight=0).skips_scoring(make_pod(labels=WEB))

    def test_required_anti_affinity_does_not_score(self, nodes: list[Node]) -> None:
        pods = [make_pod("db", DB, on="a1", affinity=requires(term(WEB), kind="podAntiAffinity"))]
        assert cycle(nodes, pods).skips_scoring(make_pod(labels=WEB))

    def test_their_namespace_selector_is_about_the_incoming_pods_namespace(self, nodes: list[Node]) -> None:
        about_blue = term(WEB, namespaceSelector={"matchLabels": {"team": "blue"}})
        pods = [make_pod("fan", DB, on="a1", affinity=prefers(near=[(7, about_blue)]))]
        run = cycle(nodes, pods, make("Namespace", "blue", labels={"team": "blue"}))
        assert run.score(make_pod(labels=WEB, namespace="blue"))[0] == [7, 7, 0, 0]
        assert run.skips_scoring(make_pod(labels=WEB))

    def test_can_be_ignored_for_pods_without_preferences(self, nodes: list[Node]) -> None:
        pods = [make_pod("fan", DB, on="a1", affinity=prefers(near=[(7, term(WEB))]))]
        run = cycle(nodes, pods, ignore_preferred_terms_of_existing_pods=True)
        assert run.skips_scoring(make_pod(labels=WEB))
        assert run.skips_scoring(make_pod(labels=WEB, affinity=requires(term(WEB))))
        choosy = make_pod(labels=WEB, affinity=prefers(near=[(1, term(DB, "host"))]))
        assert run.score(choosy)[0] == [8, 7, 0, 0]


class TestSkip:
    def test_nothing_matches(self, nodes: list[Node]) -> None:
        assert cycle(nodes).skips_scoring(make_pod())
        assert cycle(nodes, [make_pod("web", WEB, on="a1")]).skips_scoring(
            make_pod(affinity=prefers(near=[(1, term(DB))]))
        )

    def test_matches_outside_of_all_domains(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="bare")])
        assert run.skips_scoring(make_pod(affinity=prefers(near=[(1, term(DB))])))

    def test_not_when_weights_cancel_each_other_out(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="a1")])
        pod = make_pod(affinity=prefers(near=[(5, term(DB))], far=[(5, term(DB))]))
        assert run.score(pod) == ([0, 0, 0, 0], [0, 0, 0, 0])


class TestNormalize:
    def test_the_lowest_is_0_even_if_all_are_positive(self) -> None:
        assert Normalizing.STRETCHED.of(np.array([5, 6, 7])).tolist() == [0, 50, 100]

    def test_equal_scores_are_worth_nothing(self) -> None:
        assert Normalizing.STRETCHED.of(np.array([9, 9])).tolist() == [0, 0]

    def test_is_cut_off_in_floating_point(self) -> None:
        # 100.0 × (29.0 / 100.0) is a little less than 29 in float64
        assert Normalizing.STRETCHED.of(np.array([0, 29, 100])).tolist() == [0, 28, 100]


def test_malformed_selectors_are_errors(nodes: list[Node]) -> None:
    bad = PodAffinityTerm("zone", LabelSelector(FrozenDict({"app": "{web}"})))
    pod = make_pod()
    affinity = Affinity(pod_affinity=PodAffinity(preferred=(WeightedPodAffinityTerm(1, bad),)))
    status = cycle(nodes).pre_score(attrs.evolve(pod, spec=attrs.evolve(pod.spec, affinity=affinity)))
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.startswith(
        "failed to parse pod: preferredAffinityTerms: values[0][app]: Invalid value"
    )
