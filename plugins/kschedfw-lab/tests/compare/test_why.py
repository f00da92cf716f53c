"""What spoke against a node, in a line."""

from __future__ import annotations

import attrs
import numpy as np
from kschedfw_lab.compare import Against, Ground, Points
from kschedfw_lab.compare.why import against

from kschedfw import Status
from kschedfw.explain import Explanation, FilterStep, PreFilterStep, Refusals, Result, ScoreStep
from kschedfw.framework.outcome import PluginScores

TAINTED = Status.unschedulable("node(s) had untolerated taint(s)").with_plugin("TaintToleration")


def of(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def decision(scores: ScoreStep | None, *, node: str | None = "b") -> Explanation:
    """Of five nodes `a` was refused, `b`, `c` and `d` passed, and `e` wasn't looked at."""
    refusals = Refusals(np.array([1, 0, 0, 0, 0], dtype=np.int32), (Status.success(), TAINTED))
    return Explanation(
        pod="default/web",
        profile="default-scheduler",
        result=Result.PLACED,
        nodes=("a", "b", "c", "d", "e"),
        node=node,
        filter=FilterStep(
            plugins=("TaintToleration",),
            candidates=of(0, 1, 2, 3, 4),
            start=0,
            looked_at=4,
            wanted=3,
            refusals=refusals,
        ),
        score=scores,
    )


SCORES = ScoreStep(
    {
        "Spread": PluginScores(2, of(50, 50, 60), of(50, 50, 60)),
        "Fit": PluginScores(1, of(80, 80, 40), of(80, 80, 40)),
    },
    (),
    of(180, 180, 160),
)


def test_a_filter_refused_it() -> None:
    found = against(decision(SCORES), "a")
    assert found == Against(
        "a", "b", Ground.REFUSED, "TaintToleration", ("node(s) had untolerated taint(s)",)
    )
    assert str(found) == "a was refused by TaintToleration: node(s) had untolerated taint(s)"


def test_another_had_more_points_by_the_plugin_with_the_largest_weighted_lead() -> None:
    found = against(decision(SCORES), "d")
    assert found is not None
    assert (found.ground, found.plugin) == (Ground.OUTSCORED, "Fit")
    assert found.points == (Points("Spread", 2, 50, 60), Points("Fit", 1, 80, 40))
    assert sum(each.lead for each in found.points) == 20
    assert str(found) == "b rather than d, with 180 to 160 points, most by Fit: 80×1 to 40×1"


def test_extenders_points_are_no_plugins() -> None:
    found = against(decision(attrs.evolve(SCORES, plugins={}, totals=of(7, 6, 5))), "c")
    assert found is not None
    assert (found.plugin, str(found)) == ("", "b rather than c, with 7 to 6 points")


def test_another_was_drawn() -> None:
    found = against(decision(SCORES), "c")
    assert found is not None
    assert (found.ground, found.plugin) == (Ground.TIED, "")
    assert str(found) == "b rather than c, drawn from those with 180 points"


def test_it_was_not_looked_at() -> None:
    found = against(decision(SCORES), "e")
    assert str(found) == "e wasn't looked at before the search was over"


def test_nothing_spoke_against_the_node_that_was_chosen() -> None:
    assert against(decision(SCORES), "b") is None


def test_a_pod_that_never_got_as_far_as_the_nodes() -> None:
    gated = Explanation(pod="default/web", profile="default-scheduler", result=Result.GATED)
    assert against(gated, "a") is None


def test_pre_filter_refused_the_pod_as_such() -> None:
    refusal = Status.unresolvable("no such claim").with_plugin("VolumeBinding")
    refused = Explanation(
        pod="default/web",
        profile="default-scheduler",
        result=Result.UNSCHEDULABLE,
        nodes=("a",),
        pre_filter=PreFilterStep(refusal=refusal),
    )
    assert str(against(refused, "a")) == "a was refused by VolumeBinding: no such claim"


def test_as_json_it_has_every_plugins_points_and_the_line() -> None:
    found = against(decision(SCORES), "d")
    assert found is not None
    document = found.to_json()
    assert document["points"] == {
        "Spread": {"weight": 2, "chosen": 50, "other": 60},
        "Fit": {"weight": 1, "chosen": 80, "other": 40},
    }
    assert document["text"] == str(found)
