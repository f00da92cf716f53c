"""Gangs in questions: what is asked about a gang leaves no trace in the plugin, and the answers say who waits."""

from __future__ import annotations

import pytest
from kschedfw_coscheduling import Coscheduling
from tests.gang_stage import gang, group, node, pod, profile

from kschedfw import Registry, WhatIf
from kschedfw.api import Named
from kschedfw.what_if import Schedule, WhatIfError


def asked(*objects: Named) -> WhatIf:
    registry = Registry()
    registry.register(Coscheduling, replace=True)
    return WhatIf(objects, registry=registry, profiles=[profile()])


@pytest.fixture
def what_if() -> WhatIf:
    """Two of three pods of a gang fit."""
    return asked(group("g", 3), node("n1", 2), *gang("g", 3))


def states(found: Schedule) -> tuple[list[str], list[str], list[str]]:
    outcomes = found.placed, found.waiting, found.refused
    placed, waiting, refused = ([each.pod.name for each in several] for several in outcomes)
    return placed, waiting, refused


@pytest.mark.parametrize("preempt", [False, True])
def test_a_question_about_a_gang_that_fits_in_part_leaves_no_trace(what_if: WhatIf, preempt: bool) -> None:
    for _ in range(2):
        with what_if.transaction() as trial:
            found = trial.schedule(what_if.pending, preempt=preempt)
            assert "failed recently" not in " ".join(each.message for each in found.refused)
            assert not found
        with what_if.transaction() as trial:
            trial.add(node("n2", 2))
            assert trial.schedule(what_if.pending, preempt=preempt)


def test_the_same_question_in_one_transaction_has_the_same_answer_and_room_helps_at_once(
    what_if: WhatIf,
) -> None:
    with what_if.transaction() as trial:
        first, again = (
            [each.message for each in trial.schedule(what_if.pending, preempt=True).refused] for _ in range(2)
        )
        assert first == again
        assert first[0] == "0/1 nodes are available: 1 optimistic rejection in PostFilter."
        trial.add(node("n2", 2))
        assert trial.schedule(what_if.pending, preempt=True)


def test_members_of_an_incomplete_gang_wait_and_do_not_run(what_if: WhatIf) -> None:
    with what_if.transaction() as trial:
        found = trial.schedule(what_if.pending)
        assert not found
        assert states(found) == ([], ["g-0", "g-1"], ["g-2"])
        assert {each.message for each in found.waiting} == {
            "PodGroup default/g waits until 3 of its pods have a place"
        }
        trial.add(node("n2", 1))
        assert states(trial.schedule(what_if.pending)) == (["g-2"], [], [])
        assert not trial.waiting


def test_a_gang_that_a_nested_transaction_completes_waits_again_after_its_revert(what_if: WhatIf) -> None:
    with what_if.transaction() as trial:
        trial.schedule(what_if.pending)
        with trial.transaction() as nested:
            nested.add(node("n2", 1))
            assert nested.schedule(what_if.pending)
            assert not nested.waiting
        assert [each.pod.name for each in trial.waiting] == ["g-0", "g-1"]
        with pytest.raises(WhatIfError, match="2 of the pods with a place couldn't be bound"):
            trial.commit()


def test_a_gang_that_a_nested_transaction_gives_up_has_its_places_again_after_its_revert(
    what_if: WhatIf,
) -> None:
    with what_if.transaction() as trial:
        trial.schedule(what_if.pending)
        with trial.transaction() as nested:
            nested.evict(nested.waiting[0].pod)
            assert not nested.waiting
            assert len(what_if.pending) == 3
        assert [each.pod.name for each in trial.waiting] == ["g-0", "g-1"]
        trial.add(node("n2", 1))
        assert trial.schedule(what_if.pending)
        trial.commit()
    assert all(each.node_name for each in what_if.pods)


def test_all_or_none_places_a_whole_gang_or_changes_nothing(what_if: WhatIf) -> None:
    with what_if.transaction() as trial:
        found = trial.schedule([*what_if.pending, pod("single")], all_or_none=True)
        assert not found
        assert states(found)[:2] == ([], [])
        assert len(found.refused) == 4
        assert len(what_if.pending) == 3, "nothing is left of it, nor of the new pod"
        assert not trial.waiting
        trial.add(node("n2", 2))
        assert len(trial.schedule([*what_if.pending, pod("single")], all_or_none=True).placed) == 4


def test_replicas_that_complete_no_gang_do_not_count() -> None:
    what_if = asked(group("g", 3), node("n1", 9), *gang("g", 2))
    with what_if.transaction() as trial:
        trial.add(group("h", 9))
        alone = trial.schedule_as_many(pod("more", "g"), at_most=1)
        assert (alone.count, len(alone.waiting)) == (0, 1)
        assert trial.schedule(what_if.pending)
        assert not trial.waiting
