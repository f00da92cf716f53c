"""What the commands pending, fit, drain and scale-up say of gangs that fit in part."""

from __future__ import annotations

from kschedfw_coscheduling import Coscheduling
from tests.gang_stage import gang, group, node, pod, profile

from kschedfw import Registry, WhatIf, make_pod
from kschedfw.api import Named
from kschedfw.what_if.drain_plan import plan_drain
from kschedfw.what_if.node_groups import NodeGroup
from kschedfw.what_if.pending import explain_pending
from kschedfw.what_if.scale_up import plan_scale_up
from kschedfw.what_if.settling import settle

WAITS = "fits, but waits: PodGroup default/g waits until 3 of its pods have a place"


def asked(*objects: Named) -> WhatIf:
    registry = Registry()
    registry.register(Coscheduling, replace=True)
    return WhatIf(objects, registry=registry, profiles=[profile()])


def test_pending_explains_who_of_a_gang_fits_what_it_waits_for_and_what_helps() -> None:
    what_if = asked(group("g", 3), node("n1", 2), *gang("g", 3))
    answer = explain_pending(what_if)
    told = {why.reasons: [pod.name for kind in why.kinds for pod in kind.pods] for why in answer.whys}
    assert told == {(WAITS,): ["g-0", "g-1"], ("Insufficient cpu",): ["g-2"]}
    waiting, refused = (why.kinds[0] for why in answer.whys)
    assert waiting.fits
    (remedy, *_) = refused.remedies
    assert (str(remedy), remedy.placed) == ("1 more node like n1", 1)


def test_pods_that_wait_in_vain_give_their_room_to_others() -> None:
    what_if = asked(group("g", 3), node("n1", 2), *gang("g", 3), pod("single", priority=-1))
    for preempt in (False, True):
        with what_if.transaction() as trial:
            settled = settle(what_if, trial, what_if.pending, preempt=preempt)
            assert [each.pod.name for each in settled.placed] == ["single"]
            assert sorted(each.pod.name for each in settled.refused) == ["g-0", "g-1", "g-2"]
            trial.commit()
        assert len(what_if.pending) == 3
        what_if = asked(group("g", 3), node("n1", 2), *gang("g", 3), pod("single", priority=-1))


def test_a_gang_that_needs_another_round_is_placed_as_a_whole() -> None:
    what_if = asked(group("g", 3), node("n1", 3), *gang("g", 3))
    with what_if.transaction() as trial:
        assert len(settle(what_if, trial, what_if.pending, preempt=True).placed) == 3


def test_scale_up_buys_nothing_that_only_lets_pods_wait() -> None:
    what_if = asked(group("g", 3), node("n1", 1), *gang("g", 3))
    too_few = plan_scale_up(what_if, [NodeGroup("small", node("small", 1), max=1)])
    assert (len(too_few.best.placed), too_few.best.nodes) == (0, 0)
    assert len(too_few.waiting) == 3
    enough = plan_scale_up(what_if, [NodeGroup("small", node("small", 1), max=5)])
    assert (len(enough.best.placed), enough.best.nodes) == (3, 2)


def test_a_node_is_drained_beside_a_gang_that_does_not_fit() -> None:
    bound = make_pod("on-1").requests(cpu="1").node("n1").build()
    what_if = asked(group("g", 3), node("n1", 2), node("n2", 2), *gang("g", 4, cpu=2), bound)
    with what_if.transaction() as trial:
        settle(what_if, trial, what_if.pending, preempt=True)
        trial.commit()
    with what_if.transaction() as trial:
        assert [step.pod.name for step in plan_drain(what_if, trial, ["n1"]).steps] == ["on-1"]
