"""NodeAffinity: nodes that a pod, or the configuration, asks for."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.affinity import Affinity
from kschedfw.api.affinity import NodeAffinity as Asked
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodSpec
from kschedfw.api.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    PreferredSchedulingTerm,
    Requirement,
)
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.status import Code, Status
from kschedfw.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from kschedfw.testing import FrameworkHarness
from tests.plugins.batches import Asked as BothForms

NOT_THE_PODS = "node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"

SSD = make_node("ssd").labels(disk="ssd", cores="16").build()
HDD = make_node("hdd").labels(disk="hdd", cores="4").build()
BARE = make_node("bare").build()
NODES = [SSD, HDD, BARE]


def harness(added: Asked | None = None, nodes: list[Node] = NODES) -> FrameworkHarness:
    plugin: Any = NodeAffinity
    return FrameworkHarness(plugin, nodes=nodes, args={"NodeAffinity": NodeAffinityArgs(added)})


def expression(key: str, operator: Operator, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(Requirement(key, operator, values),))


def named(*names: str, operator: Operator = Operator.IN) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(Requirement("metadata.name", operator, names),))


def requiring(*terms: NodeSelectorTerm) -> Asked:
    return Asked(required=NodeSelector(terms))


def preferring(*terms: tuple[int, NodeSelectorTerm]) -> Asked:
    return Asked(preferred=tuple(PreferredSchedulingTerm(weight, term) for weight, term in terms))


def asking(affinity: Asked) -> Pod:
    """Not from a manifest, because the API would refuse some of these."""
    return Pod(spec=PodSpec(affinity=Affinity(node_affinity=affinity)))


def fitting(pod: Pod, added: Asked | None = None) -> set[str]:
    return {name for name, status in harness(added).filter(pod).items() if status.is_success}


SSD_ONLY = expression("disk", Operator.IN, "ssd")


class TestPreFilter:
    def test_a_pod_that_asks_for_nothing_is_skipped(self) -> None:
        run = harness()
        run.pre_filter(make_pod().build())
        assert run.state.skip_filter_plugins == {"NodeAffinity"}

    def test_preferences_alone_are_skipped_too(self) -> None:
        run = harness()
        run.pre_filter(asking(preferring((1, SSD_ONLY))))
        assert run.state.skip_filter_plugins == {"NodeAffinity"}

    @pytest.mark.parametrize(
        "pod", [make_pod().node_selector(disk="ssd").build(), asking(requiring(SSD_ONLY))]
    )
    def test_labels_limit_nothing_yet(self, pod: Pod) -> None:
        run = harness()
        result, status = run.pre_filter(pod)
        assert result is None
        assert status.is_success
        assert not run.state.skip_filter_plugins

    def test_an_enforced_affinity_concerns_every_pod(self) -> None:
        run = harness(requiring(SSD_ONLY))
        run.pre_filter(make_pod().build())
        assert not run.state.skip_filter_plugins

    @pytest.mark.parametrize(
        ("terms", "names"),
        [
            ([named("ssd")], {"ssd"}),
            ([named("ssd"), named("hdd")], {"ssd", "hdd"}),
            ([named("ssd"), SSD_ONLY], None),
            ([named("ssd", operator=Operator.NOT_IN)], None),
            ([NodeSelectorTerm(SSD_ONLY.match_expressions, named("hdd").match_fields)], {"hdd"}),
            (
                [
                    named("ssd"),
                    NodeSelectorTerm(match_fields=(*named("a").match_fields, *named("b").match_fields)),
                ],
                {"ssd"},
            ),
            ([], None),
        ],
        ids=[
            "one",
            "either",
            "a term without names",
            "not in",
            "names beside labels",
            "one conflicting term",
            "no term",
        ],
    )
    def test_terms_that_all_name_nodes_leave_only_those(
        self, terms: list[NodeSelectorTerm], names: set[str] | None
    ) -> None:
        result, status = harness().pre_filter(asking(requiring(*terms)))
        assert status.is_success
        assert (None if result is None else set(result.node_names)) == names

    def test_terms_that_all_contradict_themselves_fit_nowhere(self) -> None:
        conflicting = NodeSelectorTerm(match_fields=(*named("ssd").match_fields, *named("hdd").match_fields))
        _, status = harness().pre_filter(asking(requiring(conflicting)))
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == ("pod affinity terms conflict",)


class TestFilter:
    def test_the_node_selector_wants_every_label(self) -> None:
        assert fitting(make_pod().node_selector(disk="ssd", cores="16").build()) == {"ssd"}
        assert fitting(make_pod().node_selector(disk="ssd", cores="4").build()) == set()

    def test_a_refusal_cannot_be_changed_by_preemption(self) -> None:
        status = harness().filter(make_pod().node_selector(disk="ssd").build())["hdd"]
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == (NOT_THE_PODS,)

    @pytest.mark.parametrize(
        ("term", "nodes"),
        [
            (expression("disk", Operator.IN, "ssd", "nvme"), {"ssd"}),
            (expression("disk", Operator.NOT_IN, "ssd"), {"hdd", "bare"}),
            (expression("disk", Operator.EXISTS), {"ssd", "hdd"}),
            (expression("disk", Operator.DOES_NOT_EXIST), {"bare"}),
            (expression("cores", Operator.GT, "8"), {"ssd"}),
            (expression("cores", Operator.LT, "8"), {"hdd"}),
            (expression("disk", Operator.GT, "8"), set()),
            (named("ssd", operator=Operator.NOT_IN), {"hdd", "bare"}),
            (NodeSelectorTerm(), set()),
        ],
    )
    def test_a_term(self, term: NodeSelectorTerm, nodes: set[str]) -> None:
        assert fitting(asking(requiring(term))) == nodes

    def test_terms_are_alternatives_and_what_is_in_one_belongs_together(self) -> None:
        assert fitting(asking(requiring(SSD_ONLY, expression("disk", Operator.DOES_NOT_EXIST)))) == {
            "ssd",
            "bare",
        }
        both = NodeSelectorTerm(SSD_ONLY.match_expressions, named("hdd").match_fields)
        assert fitting(asking(requiring(both))) == set()

    def test_no_term_at_all_fits_nowhere(self) -> None:
        assert fitting(asking(requiring())) == set()

    def test_node_selector_and_affinity_must_both_match(self) -> None:
        pod = make_pod().node_selector(cores="4").node_affinity_in("disk", "ssd").build()
        assert fitting(pod) == set()

    @pytest.mark.parametrize(
        "broken",
        [
            expression("disk", Operator.NOT_IN, "no label value!"),
            expression("disk", Operator.NOT_IN, "x" * 64),
            expression("disk", Operator.NOT_IN),
            expression("not a key", Operator.DOES_NOT_EXIST),
            expression("disk", Operator.EXISTS, "ssd"),
            expression("cores", Operator.GT, "one"),
            expression("cores", Operator.LT, "1", "2"),
            named("a", "b", operator=Operator.NOT_IN),
            named(operator=Operator.NOT_IN),
            named(operator=Operator.EXISTS),
        ],
    )
    def test_a_malformed_term_matches_nothing_and_leaves_the_others_alone(
        self, broken: NodeSelectorTerm
    ) -> None:
        assert fitting(asking(requiring(broken))) == set()
        assert fitting(asking(requiring(broken, SSD_ONLY))) == {"ssd"}

    def test_what_is_enforced_comes_first_and_has_its_own_reason(self) -> None:
        pod = make_pod().node_selector(disk="hdd").build()
        verdicts = harness(requiring(SSD_ONLY)).filter(pod)
        assert verdicts["hdd"] == Status.unresolvable(NOT_ENFORCED).with_plugin("NodeAffinity")
        assert verdicts["ssd"].reasons == (NOT_THE_PODS,)

    def test_it_works_without_its_pre_filter(self) -> None:
        run = harness()
        pod = make_pod().node_selector(disk="ssd").build()
        verdicts = [
            run.framework.run_filter_plugins(CycleState(), pod, info) for info in run.snapshot.node_infos
        ]
        assert [status.is_success for status in verdicts] == [True, False, False]


class TestScore:
    def test_without_preferences_it_is_skipped(self) -> None:
        run = harness()
        run.framework.run_pre_score_plugins(run.state, asking(requiring(SSD_ONLY)), run.snapshot.node_infos)
        assert run.state.skip_score_plugins == {"NodeAffinity"}

    def test_weights_of_matching_terms_add_up(self) -> None:
        pod = asking(
            preferring((3, SSD_ONLY), (2, expression("disk", Operator.EXISTS)), (9, named("nowhere")))
        )
        assert harness().score(pod) == {"ssd": 100, "hdd": 40, "bare": 0}

    def test_where_nothing_matches_all_get_nothing(self) -> None:
        assert set(harness().score(asking(preferring((5, named("nowhere"))))).values()) == {0}

    def test_empty_terms_match_nothing(self) -> None:
        assert set(harness().score(asking(preferring((5, NodeSelectorTerm())))).values()) == {0}

    def test_added_preferences_count_for_every_pod(self) -> None:
        added = preferring((4, SSD_ONLY))
        assert harness(added).score(make_pod().build()) == {"ssd": 100, "hdd": 0, "bare": 0}
        pod = asking(preferring((2, named("hdd"))))
        assert harness(added).score(pod) == {"ssd": 100, "hdd": 50, "bare": 0}

    def test_a_malformed_preference_is_an_error_that_says_where(self) -> None:
        run = harness()
        pod = asking(preferring((1, SSD_ONLY), (1, expression("cores", Operator.GT, "one"))))
        status = run.framework.run_pre_score_plugins(run.state, pod, run.snapshot.node_infos)
        assert status.code is Code.ERROR
        assert "[1].matchExpressions[0].values[0]: Invalid value" in status.message

    def test_several_malformed_preferences_are_all_named(self) -> None:
        run = harness()
        broken = expression("cores", Operator.GT, "one")
        pod = asking(preferring((1, broken), (2, broken)))
        status = run.framework.run_pre_score_plugins(run.state, pod, run.snapshot.node_infos)
        assert "[0].matchExpressions[0]" in status.message
        assert "[1].matchExpressions[0]" in status.message

    def test_a_preference_of_weight_0_is_not_even_looked_at(self) -> None:
        pod = asking(preferring((0, expression("cores", Operator.GT, "one")), (1, SSD_ONLY)))
        assert harness().score(pod)["ssd"] == 100

    def test_it_works_without_its_pre_score(self) -> None:
        run = harness()
        scores, _ = run.framework.run_score_plugins(
            CycleState(), asking(preferring((1, SSD_ONLY))), run.snapshot.node_infos
        )
        assert scores is not None
        assert list(scores.totals) == [100, 0, 0]

    @given(st.lists(st.tuples(st.integers(1, 100), st.sampled_from(["ssd", "hdd", "bare", "x"])), min_size=1))
    def test_scores_are_within_bounds_and_the_heaviest_node_is_best(
        self, wishes: list[tuple[int, str]]
    ) -> None:
        scores = harness().score(asking(preferring(*((weight, named(name)) for weight, name in wishes))))
        weights = {n.name: sum(weight for weight, name in wishes if name == n.name) for n in NODES}
        assert all(0 <= score <= 100 for score in scores.values())
        if any(weights.values()):
            assert scores[max(weights, key=lambda name: weights[name])] == 100


@pytest.mark.parametrize(
    "pod", [make_pod().build(), make_pod().node_selector(disk="hdd").build()], ids=["any", "selecting"]
)
def test_both_forms_refuse_and_score_alike_beside_an_added_affinity(pod: Pod) -> None:
    added = attrs.evolve(requiring(SSD_ONLY), preferred=preferring((4, SSD_ONLY)).preferred)
    both = BothForms.of(harness(added))
    assert both.batch(pod, np.arange(3)) == both.scalar(pod, range(3))


class TestArgs:
    def test_none_and_what_matches_nothing_are_fine(self) -> None:
        assert not [*NodeAffinityArgs().validate()]
        added = Asked(
            required=NodeSelector((NodeSelectorTerm(), SSD_ONLY)),
            preferred=(PreferredSchedulingTerm(0, expression("cores", Operator.GT, "one")),),
        )
        assert not [*NodeAffinityArgs(added).validate()]

    def test_every_bad_field_is_named(self) -> None:
        added = Asked(
            required=NodeSelector((SSD_ONLY, expression("disk", Operator.IN), named("a", "b"))),
            preferred=(PreferredSchedulingTerm(1, named(operator=Operator.EXISTS)),),
        )
        assert [error.path for error in NodeAffinityArgs(added).validate()] == [
            "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0].values",
            "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[2].matchFields[0].values",
            "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchFields[0].operator",
        ]


def test_pods_that_ask_the_same_share_their_answers() -> None:
    plugin = harness().framework.plugins["NodeAffinity"]
    assert plugin.sign(asking(requiring(SSD_ONLY))) == plugin.sign(asking(requiring(SSD_ONLY)))
    assert plugin.sign(asking(requiring(SSD_ONLY))) != plugin.sign(asking(preferring((1, SSD_ONLY))))
    assert plugin.sign(make_pod().node_selector(a="b").build()) != plugin.sign(make_pod().build())


def test_a_node_change_helps_if_the_node_comes_to_match() -> None:
    (event,) = harness().framework.events_to_register()["NodeAffinity"]
    assert event.hint is not None
    pod = make_pod().node_selector(disk="ssd").build()
    assert event.hint(pod, BARE, SSD) is QueueingHint.QUEUE
    assert event.hint(pod, None, SSD) is QueueingHint.QUEUE
    assert event.hint(pod, SSD, SSD) is QueueingHint.SKIP
    assert event.hint(pod, None, HDD) is QueueingHint.SKIP
    (event,) = harness(requiring(expression("cores", Operator.LT, "8"))).framework.events_to_register()[
        "NodeAffinity"
    ]
    assert event.hint is not None
    assert event.hint(pod, None, SSD) is QueueingHint.SKIP


def test_it_takes_part_where_it_should() -> None:
    framework = harness().framework
    points = [
        ExtensionPoint.PRE_FILTER,
        ExtensionPoint.FILTER,
        ExtensionPoint.PRE_SCORE,
        ExtensionPoint.SCORE,
    ]
    assert all(framework.plugins_at(point) == ("NodeAffinity",) for point in points)
