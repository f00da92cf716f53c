"""InterPodAffinity: required terms."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kschedfw import IDLE
from kschedfw.api.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import LabelSelector, Operator, Requirement
from kschedfw.framework.cycle_state import CycleState, StateKeyError
from kschedfw.framework.events import EventResource
from kschedfw.framework.status import Code
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from kschedfw.plugins.inter_pod_affinity.plugin import REQUIRED
from tests.plugins.cycles import Cycle, make, make_node, make_pod

WEB = {"app": "web"}
DB = {"app": "db"}
REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def term(labels: dict[str, str] | None, key: str = "zone", **rest: Any) -> dict[str, Any]:
    """A term about pods with these labels; without labels it has no selector."""
    selector = {} if labels is None else {"labelSelector": {"matchLabels": labels}}
    return {"topologyKey": key, **selector, **rest}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED_TERMS: list(terms)}}


def far(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED_TERMS: list(terms)}}


def incoming(
    affinity: dict[str, Any], labels: dict[str, str] | None = None, namespace: str = "default"
) -> Pod:
    return make_pod("incoming", labels, namespace=namespace, affinity=affinity)


def cycle(nodes: list[Node], pods: list[Pod] = [], *objects: Any, **args: Any) -> Cycle:  # noqa: B006
    return Cycle.of(InterPodAffinity, InterPodAffinityArgs(**args), nodes, pods, objects)


@pytest.fixture
def nodes() -> list[Node]:
    """Two zones, one with two nodes, and a node in none."""
    return [
        make_node("a1", zone="a", host="a1"),
        make_node("a2", zone="a", host="a2"),
        make_node("b1", zone="b", host="b1"),
        make_node("bare", host="bare"),
    ]


class TestAffinity:
    def test_wants_a_matching_pod_in_the_domain(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="a1")])
        assert run.filter(incoming(near(term(DB)))) == {
            "a1": "ok",
            "a2": "ok",
            "b1": "affinity",
            "bare": "affinity",
        }

    def test_is_no_use_to_evict_pods_for(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="a1")])
        run.pre_filter(incoming(near(term(DB))))
        status = run.plugin.filter(run.state, run.snapshot.get("b1"))
        assert status is not None
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def test_terms_must_be_met_by_one_pod(self, nodes: list[Node]) -> None:
        pod = incoming(near(term(DB), term({"tier": "back"})))
        apart = [make_pod("db", DB, on="a1"), make_pod("back", {"tier": "back"}, on="a1")]
        assert cycle(nodes, apart).fits(pod) == []
        assert cycle(nodes, [make_pod("both", {**DB, "tier": "back"}, on="a1")]).fits(pod) == ["a1", "a2"]

    def test_there_must_be_company_in_every_terms_domain(self, nodes: list[Node]) -> None:
        pod = incoming(near(term(DB), term(DB, "host")))
        assert cycle(nodes, [make_pod("db", DB, on="a1")]).fits(pod) == ["a1"]

    def test_matching_pod_outside_of_all_domains_is_no_company(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="bare")])
        assert run.fits(incoming(near(term(DB)))) == []

    def test_absent_selector_matches_nothing_and_an_empty_one_everything(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("any", on="b1")])
        assert run.fits(incoming(near(term(None)))) == []
        assert run.fits(incoming(near(term({})))) == ["b1"]

    def test_terminating_pods_still_are_company(self, nodes: list[Node]) -> None:
        leaving = make_pod("db", DB, on="b1", metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"})
        assert cycle(nodes, [leaving]).fits(incoming(near(term(DB)))) == ["b1"]


class TestFirstOfAGroup:
    """A pod that asks for pods like itself, when there are none."""

    def test_may_go_wherever_there_are_domains(self, nodes: list[Node]) -> None:
        pod = incoming(near(term(WEB), term(WEB, "host")), WEB)
        assert cycle(nodes).fits(pod) == ["a1", "a2", "b1"]

    def test_must_match_all_of_its_own_terms(self, nodes: list[Node]) -> None:
        assert cycle(nodes).fits(incoming(near(term(WEB), term(DB)), WEB)) == []
        assert cycle(nodes).fits(incoming(near(term(WEB, namespaces=["elsewhere"])), WEB)) == []

    def test_joins_the_others_if_there_are_any(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("web", WEB, on="b1")])
        assert run.fits(incoming(near(term(WEB)), WEB)) == ["b1"]

    def test_others_on_nodes_without_domain_are_not_there(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("web", WEB, on="bare")])
        assert run.fits(incoming(near(term(WEB)), WEB)) == ["a1", "a2", "b1"]

    def test_a_match_for_some_key_is_enough_to_have_others(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("web", WEB, on="bare")])
        assert run.fits(incoming(near(term(WEB), term(WEB, "host")), WEB)) == []


class TestAntiAffinity:
    def test_keeps_out_of_domains_with_matching_pods(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="a1")])
        assert run.filter(incoming(far(term(DB)))) == {
            "a1": "anti-affinity",
            "a2": "anti-affinity",
            "b1": "ok",
            "bare": "ok",
        }

    def test_each_term_counts_by_itself(self, nodes: list[Node]) -> None:
        pods = [make_pod("db", DB, on="a1"), make_pod("web", WEB, on="b1")]
        assert cycle(nodes, pods).fits(incoming(far(term(DB, "host"), term(WEB)))) == ["a2", "bare"]

    def test_evicting_pods_may_help(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="a1")])
        run.pre_filter(incoming(far(term(DB))))
        status = run.plugin.filter(run.state, run.snapshot.get("a1"))
        assert status is not None
        assert status.code is Code.UNSCHEDULABLE

    def test_a_pod_does_not_keep_away_from_itself(self, nodes: list[Node]) -> None:
        assert len(cycle(nodes).fits(incoming(far(term(WEB)), WEB))) == len(nodes)


class TestExistingAntiAffinity:
    def test_is_respected(self, nodes: list[Node]) -> None:
        run = cycle(nodes, [make_pod("db", DB, on="a1", affinity=far(term(WEB)))])
        assert run.filter(make_pod(labels=WEB)) == {
            "a1": "existing anti-affinity",
            "a2": "existing anti-affinity",
            "b1": "ok",
            "bare": "ok",
        }
        run.pre_filter(make_pod(labels=WEB))
        status = run.plugin.filter(run.state, run.snapshot.get("a1"))
        assert status is not None
        assert status.code is Code.UNSCHEDULABLE

    def test_any_term_is_enough(self, nodes: list[Node]) -> None:
        affinity = far(term({"app": "other"}), term(WEB, "host"))
        run = cycle(nodes, [make_pod("db", DB, on="a1", affinity=affinity)])
        assert run.fits(make_pod(labels=WEB)) == ["a2", "b1", "bare"]

    def test_namespaces_are_the_existing_pods(self, nodes: list[Node]) -> None:
        there = make_pod("db", DB, on="a1", namespace="there", affinity=far(term(WEB)))
        listed = make_pod(
            "db2", DB, on="b1", namespace="there", affinity=far(term(WEB, namespaces=["default"]))
        )
        run = cycle(nodes, [there, listed])
        assert run.fits(make_pod(labels=WEB)) == ["a1", "a2", "bare"]

    def test_reasons_are_looked_for_in_this_order(self, nodes: list[Node]) -> None:
        existing = make_pod("db", DB, on="a1", affinity=far(term(WEB)))
        run = cycle(nodes, [existing, make_pod("x", {"app": "x"}, on="b1")])
        both = {**near(term({"app": "x"})), **far(term(DB))}
        assert run.filter(incoming(both, WEB)) == {
            "a1": "affinity",
            "a2": "affinity",
            "b1": "ok",
            "bare": "affinity",
        }
        assert run.filter(incoming(far(term(DB)), WEB)) == {
            "a1": "anti-affinity",
            "a2": "anti-affinity",
            "b1": "ok",
            "bare": "ok",
        }


_BLUE = {"matchLabels": {"team": "blue"}}
_WITHOUT_TEAM = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}


def all_but(team: str, *expressions: dict[str, Any]) -> dict[str, Any]:
    """The part of a term that leaves out the namespaces of a team."""
    without = {"key": "team", "operator": "NotIn", "values": [team]}
    return {"namespaceSelector": {"matchExpressions": [without, *expressions]}}


class TestNamespaces:
    """Which namespaces a term is about."""

    @pytest.fixture
    def spaces(self) -> list[Any]:
        return [
            make("Namespace", "blue", labels={"team": "blue"}),
            make("Namespace", "azure", labels={"team": "blue"}),
            make("Namespace", "red", labels={"team": "red"}),
            make("Namespace", "default"),
        ]

    @pytest.fixture
    def pods(self) -> list[Pod]:
        return [
            make_pod("one", DB, on="a1", namespace="blue"),
            make_pod("two", DB, on="b1", namespace="red"),
            make_pod("three", DB, on="bare"),
        ]

    @pytest.mark.parametrize(
        ("about", "avoided"),
        [
            ({}, ["bare"]),
            ({"namespaces": ["red"]}, ["b1"]),
            ({"namespaceSelector": {"matchLabels": {"team": "blue"}}}, ["a1"]),
            (
                {"namespaceSelector": {"matchLabels": {"team": "blue"}}, "namespaces": ["default"]},
                ["a1", "bare"],
            ),
            ({"namespaceSelector": {}}, ["a1", "b1", "bare"]),
            ({"namespaceSelector": {"matchLabels": {"team": "green"}}}, []),
            (all_but("blue"), ["a1", "b1", "bare"]),
            ({"namespaceSelector": _WITHOUT_TEAM}, ["a1", "b1", "bare"]),
            ({**all_but("blue"), "namespaces": ["red"]}, ["a1", "b1", "bare"]),
            (all_but("red", {"key": "team", "operator": "Exists"}), ["a1"]),
        ],
    )
    def test_of_the_pods_own_terms(
        self, nodes: list[Node], pods: list[Pod], spaces: list[Any], about: dict[str, Any], avoided: list[str]
    ) -> None:
        run = cycle(nodes, pods, *spaces)
        fits = run.fits(incoming(far(term(DB, "host", **about))))
        assert [node.name for node in nodes if node.name not in fits] == avoided

    @pytest.mark.parametrize(
        ("selector", "namespace", "expected"),
        [
            ({"matchLabels": {"team": "blue"}}, "azure", "existing anti-affinity"),
            ({"matchLabels": {"team": "blue"}}, "red", "ok"),
            ({}, "red", "existing anti-affinity"),
            (
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                "new",
                "existing anti-affinity",
            ),
        ],
    )
    def test_of_existing_pods_terms(
        self, nodes: list[Node], spaces: list[Any], selector: dict[str, Any], namespace: str, expected: str
    ) -> None:
        affinity = far(term(WEB, namespaceSelector=selector))
        other = make_pod(
            "other",
            {"app": "x"},
            on="b1",
            namespace="blue",
            affinity=far(term(WEB, "host", namespaceSelector={})),
        )
        run = cycle(nodes, [make_pod("db", DB, on="a1", namespace="blue", affinity=affinity), other], *spaces)
        verdicts = run.filter(make_pod(labels=WEB, namespace=namespace))
        assert isinstance(verdicts, dict)
        assert verdicts["a1"] == expected

    def test_of_existing_pods_terms_that_leave_a_namespace_out(
        self, nodes: list[Node], spaces: list[Any]
    ) -> None:
        """Only the pod's own negative selectors select every namespace, not those of existing pods."""
        shy = make_pod("shy", DB, on="a1", namespace="red", affinity=far(term(WEB, **all_but("blue"))))
        run = cycle(nodes, [shy], *spaces)
        assert run.filter(make_pod(labels=WEB, namespace="blue")) == "skip"
        assert run.fits(make_pod(labels=WEB, namespace="red")) == ["b1", "bare"]

    def test_group_across_namespaces_may_start(self, nodes: list[Node], spaces: list[Any]) -> None:
        about_blue = term(WEB, namespaceSelector={"matchLabels": {"team": "blue"}})
        run = cycle(nodes, [], *spaces)
        assert run.fits(incoming(near(about_blue), WEB, "azure")) == ["a1", "a2", "b1"]
        assert run.fits(incoming(near(about_blue), WEB, "red")) == []


class TestSkip:
    def test_when_nobody_has_required_terms(self, nodes: list[Node]) -> None:
        assert cycle(nodes, [make_pod("db", DB, on="a1")]).filter(make_pod(labels=WEB)) == "skip"

    def test_when_existing_terms_are_about_others_or_outside_of_all_domains(self, nodes: list[Node]) -> None:
        about_others = make_pod("db", DB, on="a1", affinity=far(term(DB)))
        outside = make_pod("db2", DB, on="bare", affinity=far(term(WEB)))
        assert cycle(nodes, [about_others, outside]).filter(make_pod(labels=WEB)) == "skip"

    def test_not_with_own_terms_even_without_matches(self, nodes: list[Node]) -> None:
        assert len(cycle(nodes).fits(incoming(far(term(DB))))) == len(nodes)

    def test_filter_without_pre_filter_is_an_error(self, nodes: list[Node]) -> None:
        run = cycle(nodes)
        with pytest.raises(StateKeyError, match=r"InterPodAffinity\.required"):
            run.plugin.filter(CycleState(), run.snapshot.get("a1"))


class TestMalformedSelectors:
    """The API server lets none of them pass, so they are built by hand."""

    BAD_VALUE = LabelSelector(FrozenDict({"app": "{web}"}))

    @staticmethod
    def reason(near: PodAffinity | None = None, far: PodAffinity | None = None) -> str:
        pod = make_pod()
        pod = attrs.evolve(
            pod, spec=attrs.evolve(pod.spec, affinity=Affinity(pod_affinity=near, pod_anti_affinity=far))
        )
        status = cycle([make_node("a1")]).pre_filter(pod)
        assert status is not None
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return status.message

    def test_bad_label_value(self) -> None:
        assert self.reason(near=PodAffinity((PodAffinityTerm("zone", self.BAD_VALUE),))).startswith(
            'parsing pod: requiredAffinityTerms: values[0][app]: Invalid value: "{web}": '
            "a valid label must be an empty string or consist of alphanumeric characters"
        )

    def test_lists_of_terms_are_named(self) -> None:
        bad = PodAffinityTerm("zone", self.BAD_VALUE)
        spaces = PodAffinityTerm("zone", LabelSelector(), namespace_selector=self.BAD_VALUE)
        reason = self.reason(
            near=PodAffinity(preferred=(WeightedPodAffinityTerm(1, bad),)),
            far=PodAffinity((spaces,), (WeightedPodAffinityTerm(1, bad),)),
        )
        assert reason.startswith("parsing pod: [requiredAntiAffinityTerms: values[0][app]")
        assert ", preferredAffinityTerms: values" in reason
        assert ", preferredAntiAffinityTerms: values" in reason

    @pytest.mark.parametrize(
        ("requirement", "why"),
        [
            (Requirement("app", Operator.GT, ("1",)), '"Gt" is not a valid label selector operator'),
            (
                Requirement("app", Operator.IN),
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ),
            (
                Requirement("app", Operator.EXISTS, ("a", "b")),
                'values: Invalid value: ["a","b"]: values set must be empty for exists and does not exist',
            ),
        ],
    )
    def test_bad_expressions(self, requirement: Requirement, why: str) -> None:
        selector = LabelSelector(match_expressions=(requirement,))
        reason = self.reason(far=PodAffinity((PodAffinityTerm("zone", selector),)))
        assert reason == f"parsing pod: requiredAntiAffinityTerms: {why}"

    def test_bad_key(self) -> None:
        selector = LabelSelector(match_expressions=(Requirement("a b", Operator.EXISTS),))
        assert "key: Invalid value: " in self.reason(near=PodAffinity((PodAffinityTerm("zone", selector),)))


class TestWhatIf:
    """pre_filter_add_pod and pre_filter_remove_pod."""

    def test_each_kind_of_term_follows(self, nodes: list[Node]) -> None:
        pod = incoming({**near(term(DB)), **far(term({"app": "loud"}, "host"))}, WEB)
        db, loud = make_pod("db", DB), make_pod("loud", {"app": "loud"})
        shy = make_pod("shy", {"app": "shy"}, affinity=far(term(WEB, "host")))
        run = cycle(nodes)
        assert run.fits(pod) == []

        run.add(pod, db, "a1")
        assert run.verdicts() == {"a1": "ok", "a2": "ok", "b1": "affinity", "bare": "affinity"}
        run.add(pod, loud, "a1")
        run.add(pod, shy, "a2")
        assert run.verdicts()["a1"] == "anti-affinity"
        assert run.verdicts()["a2"] == "existing anti-affinity"

        run.remove(pod, loud, "a1")
        run.remove(pod, shy, "a2")
        assert run.verdicts() == {"a1": "ok", "a2": "ok", "b1": "affinity", "bare": "affinity"}

    def test_the_last_of_a_group_leaves_the_field_to_the_next_first(self, nodes: list[Node]) -> None:
        pod, web = incoming(near(term(WEB)), WEB), make_pod("web", WEB, on="b1")
        run = cycle(nodes, [web])
        assert run.fits(pod) == ["b1"]
        run.remove(pod, web, "b1")
        assert run.verdicts() == {"a1": "ok", "a2": "ok", "b1": "ok", "bare": "affinity"}

    def test_a_clone_is_independent(self, nodes: list[Node]) -> None:
        pod = incoming(far(term(DB)), WEB)
        run = cycle(nodes)
        run.pre_filter(pod)
        original, run.state = run.state, run.state.clone()
        run.add(pod, make_pod("db", DB, affinity=far(term(WEB))), "a1")
        table = run.snapshot.table
        assert run.state.read(REQUIRED).verdicts(table).of(table.node_infos[0]) is not None
        assert original.read(REQUIRED).verdicts(table).of(table.node_infos[0]) is None


class TestSignature:
    def test_pods_without_terms_are_none_of_its_business_where_no_pod_has_any(
        self, nodes: list[Node]
    ) -> None:
        plugin = cycle(nodes, [make_pod("db", DB, on="a1")]).plugin
        assert plugin.sign(make_pod(labels=WEB)) is IDLE
        assert plugin.sign(incoming(far(term(DB)), WEB)) is None

    def test_terms_of_other_pods_concern_every_pod(self, nodes: list[Node]) -> None:
        plugin = cycle(nodes, [make_pod("shy", on="a1", affinity=far(term(WEB)))]).plugin
        assert plugin.sign(make_pod()) is None


@pytest.mark.parametrize(("weight", "valid"), [(-1, False), (0, True), (100, True), (101, False)])
def test_hard_weight_is_limited(weight: int, valid: bool) -> None:
    errors = [str(error) for error in InterPodAffinityArgs(hard_pod_affinity_weight=weight).validate()]
    assert errors == (
        [] if valid else [f"hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]"]
    )


def nominated(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    """A pod that waits for room on the node a1."""
    pod = make_pod(name, labels, **spec)
    return attrs.evolve(pod, status=attrs.evolve(pod.status, nominated_node_name="a1"))


def hint(
    resource: EventResource, pod: Pod, old: object | None, new: object | None, *, complete: bool = False
) -> str:
    blue = make("Namespace", "blue", labels={"team": "blue"})
    events = cycle([], [], blue, complete_hints=complete).plugin.events_to_register()
    (ask,) = [event.hint for event in events if event.resource is resource]
    assert ask is not None
    return ask(pod, old, new).value


class TestPodHints:
    pod = incoming({**near(term(DB), term({"tier": "back"})), **far(term({"app": "loud"}, "host"))}, WEB)
    company = make_pod("company", {**DB, "tier": "back"}, on="a1")
    half = make_pod("company", DB, on="a1")
    loud = make_pod("loud", {"app": "loud"}, on="a1")
    quiet = make_pod("loud", {"app": "quiet"}, on="a1")
    shy = make_pod("shy", on="a1", affinity=far(term(WEB)))

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, company, "queue"),
            (None, half, "skip"),
            (None, make_pod("company", {**DB, "tier": "back"}), "skip"),
            (None, loud, "skip"),
            (loud, None, "queue"),
            (shy, None, "queue"),
            (nominated("loud", {"app": "loud"}), None, "queue"),
            (nominated("shy", affinity=far(term(WEB))), None, "queue"),
            (nominated("half", DB), None, "skip"),
            (make_pod("loud", {"app": "loud"}), None, "skip"),
            (half, None, "skip"),
            (half, company, "queue"),
            (company, half, "skip"),
            (loud, quiet, "queue"),
            (quiet, loud, "skip"),
        ],
    )
    def test_company_that_comes_and_trouble_that_goes_counts(
        self, old: Pod | None, new: Pod | None, expected: str
    ) -> None:
        assert hint(EventResource.POD, self.pod, old, new) == expected

    def test_labels_of_namespaces_count_in_complete_hints_alone(self) -> None:
        """kube-scheduler doesn't look them up for a hint: "has no label" selects all namespaces, "has one" none."""
        blue, other = make_pod("web", WEB, on="a1", namespace="blue"), make_pod("web", WEB, on="a1")
        for selector, come, expected in (
            (_BLUE, blue, "skip"),
            (_WITHOUT_TEAM, blue, "queue"),
            (_WITHOUT_TEAM, other, "queue"),
        ):
            pod = incoming(near(term(WEB, namespaceSelector=selector)))
            assert hint(EventResource.POD, pod, None, come) == expected
        shy = make_pod("shy", on="a1", affinity=far(term(WEB, namespaceSelector=_BLUE)))
        assert hint(EventResource.POD, make_pod(labels=WEB, namespace="blue"), shy, None) == "skip"
        assert (
            hint(EventResource.POD, make_pod(labels=WEB, namespace="blue"), shy, None, complete=True)
            == "queue"
        )
        assert hint(EventResource.POD, make_pod(labels=WEB), shy, None, complete=True) == "skip"

    def test_a_pod_that_goes_must_match_all_terms_of_an_anti_affinity(self) -> None:
        """As in kube-scheduler, though one of them suffices to refuse a pod; complete hints know."""
        pod = incoming(far(term(WEB), term({"app": "loud"}, "host")))
        shy = make_pod("shy", on="a1", affinity=far(term(WEB), term({"app": "loud"}, "host")))
        for other, old, new in (
            (pod, self.loud, None),
            (pod, self.loud, self.quiet),
            (incoming({}, WEB), shy, None),
        ):
            assert hint(EventResource.POD, other, old, new) == "skip"
            assert hint(EventResource.POD, other, old, new, complete=True) == "queue"

    def test_the_pods_own_labels_count(self) -> None:
        """They decide about terms of existing pods, and whether it may be the first of a group."""
        for affinity in (near(term(DB)), {}):
            before, after = incoming(affinity, WEB), incoming(affinity, DB)
            assert hint(EventResource.POD, after, before, after) == "queue"
            assert hint(EventResource.POD, after, after, after) == "skip"

    def test_complete_hints_notice_when_the_pod_may_be_first(self) -> None:
        pod, last = incoming(near(term(WEB)), WEB), make_pod("last", WEB, on="a1")
        for gone in (None, make_pod("last", DB, on="a1")):
            assert hint(EventResource.POD, pod, last, gone) == "skip"
            assert hint(EventResource.POD, pod, last, gone, complete=True) == "queue"
            stranger = incoming(near(term(WEB)), DB)
            assert hint(EventResource.POD, stranger, last, gone, complete=True) == "skip"


class TestNodeHints:
    @pytest.mark.parametrize(
        ("old", "new", "for_affinity", "for_anti_affinity"),
        [
            (None, make_node("n", zone="a"), "queue", "queue"),
            (None, make_node("n"), "skip", "queue"),
            (make_node("n"), make_node("n", zone="a"), "queue", "skip"),
            (make_node("n", zone="a"), make_node("n"), "skip", "queue"),
            (make_node("n", zone="a"), make_node("n", zone="b"), "queue", "queue"),
            (make_node("n", zone="a"), make_node("n", zone="a", disk="ssd"), "skip", "skip"),
            (make_node("n", zone="a"), None, "skip", "skip"),
        ],
    )
    def test_nodes_that_change_domains_count(
        self, old: Node | None, new: Node | None, for_affinity: str, for_anti_affinity: str
    ) -> None:
        assert hint(EventResource.NODE, incoming({}), old, new, complete=True) == "queue"
        assert hint(EventResource.NODE, incoming({}), old, new) == "skip"
        assert hint(EventResource.NODE, incoming(near(term(DB))), old, new) == for_affinity
        assert hint(EventResource.NODE, incoming(far(term(DB))), old, new) == for_anti_affinity
