"""How many replicas fit, of one kind and of several."""

from __future__ import annotations

from kschedfw_advisor.turns import fit, fit_in_turns

from kschedfw import make_pod
from tests.what_if.builders import node, running, what_if

WEB = make_pod("web").requests(cpu=1).build()
DB = make_pod("db").requests(cpu=2).build()


def test_as_many_as_fit_and_what_stops_the_next() -> None:
    cluster = what_if(node("n1").build(), node("n2", cpu=2).build(), running("a", "n1"))
    with cluster.transaction() as trial:
        found = fit(trial, WEB, at_most=1000)
        assert dict(found.by_node) == {"n1": 3, "n2": 2}
        assert found.refusal is not None
        assert found.refusal.message == "0/2 nodes are available: 2 Insufficient cpu."
        assert trial.can_schedule(WEB), "nothing is left of it"


def test_no_more_than_are_wanted() -> None:
    told: list[tuple[int, int]] = []
    cluster = what_if(node("n1", cpu=9).build())
    with cluster.transaction() as trial:
        found = fit(trial, WEB, 3, lambda done, most: told.append((done, most)))
    assert (found.count, found.refusal, told) == (3, None, [(3, 3)])


def test_many_replicas_are_placed_in_parts() -> None:
    large = node("n1").capacity(cpu=500, memory="8Gi", pods=1000).build()
    cluster = what_if(large)
    with cluster.transaction() as trial:
        found = fit(trial, WEB, at_most=1000)
    assert found.count == 500
    assert len({each.pod.name for each in found.placed}) == 500


def test_several_kinds_take_turns_and_one_that_is_refused_drops_out() -> None:
    cluster = what_if(node("n1", cpu=8).build())
    with cluster.transaction() as trial:
        web, db = fit_in_turns(trial, [WEB, DB], at_most=1000)
        assert (web.count, db.count) == (4, 2), (
            "two turns of three CPUs, then web alone has one more, and one more"
        )
        assert trial.can_schedule(WEB)
    assert web.refusal is not None
    assert db.refusal is not None
