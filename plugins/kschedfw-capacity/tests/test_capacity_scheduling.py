"""CapacityScheduling, extension point by extension point."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_capacity import CapacityScheduling, ElasticQuota
from tests.scenes import node, pod, quota

from kschedfw import ActionType, CycleState, EventResource, Pod, PodInfo, QueueingHint, Status, make_pod
from kschedfw.testing import FrameworkHarness

OVER_MAX = "Pod a/p is rejected in PreFilter because ElasticQuota a is more than Max"
OVER_MINS = "Pod a/p is rejected in PreFilter because total ElasticQuota used is more than min"
GPU = "nvidia.com/gpu"


def harness(*quotas: ElasticQuota, pods: tuple[Pod, ...] = ()) -> FrameworkHarness:
    nodes = [node("n", 100), node("m", 100)]
    return FrameworkHarness(CapacityScheduling, nodes=nodes, pods=pods, objects=quotas)


def refusal(made: FrameworkHarness, pod: Pod) -> str:
    _, status = made.pre_filter(pod)
    return status.message


class TestPreFilter:
    def test_a_pod_may_use_up_what_is_left_to_the_last(self) -> None:
        made = harness(quota("a", 4, 6), quota("b", 4), pods=(pod("a/0", 3, on="n"),))
        assert refusal(made, pod("a/p", 3)) == ""
        assert refusal(made, pod("a/p", 4)) == OVER_MAX

    def test_it_may_borrow_what_others_do_not_use(self) -> None:
        made = harness(quota("a", 4), quota("b", 4), pods=(pod("b/0", 3, on="n"),))
        assert refusal(made, pod("a/p", 5)) == ""
        assert refusal(made, pod("a/p", 6)) == OVER_MINS

    def test_what_a_borrower_has_is_missing_even_to_who_is_within_its_min(self) -> None:
        made = harness(quota("a", 4), quota("b", 4), pods=(pod("b/0", 6, on="n"),))
        assert refusal(made, pod("a/p", 3)) == OVER_MINS

    def test_other_pods_may_make_room_for_it(self) -> None:
        _, status = harness(quota("a", 1, 1)).pre_filter(pod("a/p", 2))
        assert status.is_rejected
        assert status == Status.unschedulable(OVER_MAX).with_plugin("CapacityScheduling")

    def test_pods_without_quota_are_no_concern_of_it(self) -> None:
        made = harness(quota("a", 4, 4), pods=(pod("c/0", 50, on="n"),))
        assert refusal(made, pod("c/p", 40)) == ""
        assert "CapacityScheduling" in made.state.skip_filter_plugins
        assert refusal(made, pod("a/p", 4)) == ""

    def test_extended_resources_are_counted_too(self) -> None:
        made = harness(quota("a", {"cpu": 4, GPU: 1}, {GPU: 2}), quota("b", {"cpu": 4, GPU: 2}))
        assert refusal(made, make_pod("p").namespace("a").requests({GPU: 2}).build()) == ""
        assert refusal(made, make_pod("p").namespace("a").requests({GPU: 3}).build()) == OVER_MAX

    def test_nobody_can_borrow_what_no_min_names(self) -> None:
        made = harness(quota("a", 4))
        assert refusal(made, make_pod("p").namespace("a").requests(memory="1").build()) == OVER_MINS

    def test_of_two_quotas_in_a_namespace_the_older_counts(self) -> None:
        younger = attrs.evolve(quota("a", 9), metadata=attrs.evolve(quota("a", 9).metadata, name="younger"))
        assert refusal(harness(quota("a", 9, 1), younger), pod("a/p", 2)) == OVER_MAX

    def test_a_changed_quota_counts_from_the_next_pod_on(self) -> None:
        made = harness(quota("a", 4))
        assert refusal(made, pod("a/p", 4)) == ""
        made.cluster.update(quota("a", 4, 3))
        assert refusal(made, pod("a/p", 4)) == OVER_MAX


class TestNominatedPods:
    """They wait for their victims to go, and what these leave is theirs."""

    def made(self, *nominated: Pod) -> FrameworkHarness:
        made = harness(quota("a", 4, 4), quota("b", 4), pods=(pod("b/0", 1, on="n"),))
        for each in nominated:
            made.nominator.add(PodInfo.of(each))
        return made

    def test_of_the_same_namespace_and_importance_they_come_first(self) -> None:
        made = self.made(pod("a/0", 2, nominated="n"))
        assert refusal(made, pod("a/p", 2)) == ""
        assert refusal(made, pod("a/p", 3)) == OVER_MAX

    def test_less_important_ones_do_not(self) -> None:
        assert refusal(self.made(pod("a/0", 2, nominated="n")), pod("a/p", 3, priority=1)) == ""

    def test_of_a_namespace_within_its_min_they_come_first_whatever_their_importance(self) -> None:
        made = self.made(pod("b/1", 4, nominated="n", priority=-1))
        assert refusal(made, pod("a/p", 3)) == ""
        assert refusal(made, pod("a/p", 4)) == OVER_MINS

    def test_of_a_borrower_they_do_not(self) -> None:
        made = harness(quota("a", 4), quota("b", 4), pods=(pod("b/0", 5, on="n"),))
        made.nominator.add(PodInfo.of(pod("b/1", 3, nominated="n")))
        assert refusal(made, pod("a/p", 3)) == ""

    def test_the_pod_itself_is_counted_once(self) -> None:
        itself = pod("a/p", 3, nominated="n")
        assert refusal(self.made(itself), itself) == ""

    @pytest.mark.parametrize("where", ["n", "gone"])
    def test_those_on_nodes_that_are_gone_are_not_waited_for(self, where: str) -> None:
        made = self.made(pod("a/0", 4, nominated=where))
        assert refusal(made, pod("a/p", 1)) == (OVER_MAX if where == "n" else "")

    def test_they_are_not_counted_a_second_time_on_their_node(self) -> None:
        made = self.made(pod("a/0", 2, nominated="n"))
        assert all(status.is_success for status in made.filter(pod("a/p", 2)).values())

    def test_a_node_leaves_room_for_a_more_important_borrower_that_is_nominated_to_it(self) -> None:
        made = harness(quota("a", 4), quota("b", 4), pods=(pod("b/0", 5, on="n"),))
        made.nominator.add(PodInfo.of(pod("b/1", 1, nominated="n", priority=1)))
        verdicts = made.filter(pod("a/p", 3))
        assert verdicts["n"].message == "node(s) left no room within the elastic quotas"
        assert verdicts["m"].is_success


class TestWhatIf:
    """pre_filter_add_pod and pre_filter_remove_pod change a copy of the quotas."""

    def verdict(self, made: FrameworkHarness, state: CycleState, of: Pod) -> bool:
        return made.framework.run_filter_plugins(state, of, made.snapshot.get("n")).is_success

    def test_without_a_borrower_there_is_room(self) -> None:
        borrower = pod("b/0", 3, on="n")
        made = harness(quota("a", 4), quota("b", 1), pods=(borrower,))
        waiting, info = pod("a/p", 4), PodInfo.of(borrower)
        made.pre_filter(waiting)
        state, on = made.state.clone(), made.snapshot.get("n")
        assert not self.verdict(made, state, waiting)
        made.framework.run_pre_filter_remove_pod(state, waiting, info, on)
        assert self.verdict(made, state, waiting)
        assert not self.verdict(made, made.state, waiting)
        made.framework.run_pre_filter_add_pod(state, waiting, info, on)
        assert not self.verdict(made, state, waiting)


class TestReserving:
    def test_a_reserved_pod_is_in_the_books_of_the_next_cycle(self) -> None:
        """It is assumed on its node, where the plugin counts it; so the books can't differ from the scheduler's."""
        made = harness(quota("a", 4, 4))
        reserved = made.cluster.add(pod("a/0", 3, on="n"))
        assert refusal(made, pod("a/p", 2)) == ""
        assumed = made.snapshot.get("n").clone()
        assumed.add_pod(PodInfo.of(reserved))
        made.snapshot.update([assumed])
        assert refusal(made, pod("a/p", 2)) == OVER_MAX
        unreserved = assumed.clone()
        unreserved.remove_pod(reserved)
        made.snapshot.update([unreserved])
        assert refusal(made, pod("a/p", 2)) == ""


class TestComingBack:
    def hint(self, kind: str, old: object | None, new: object | None) -> QueueingHint:
        events = harness(quota("a", 4), quota("b", 4)).framework.events_to_register()["CapacityScheduling"]
        (event,) = (each for each in events if str(each.resource).lower().startswith(kind))
        assert event.hint is not None
        return event.hint(pod("a/p"), old, new)

    @pytest.mark.parametrize(
        ("resource", "action"),
        [
            (EventResource.ASSIGNED_POD, ActionType.DELETE),
            (EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN),
            (EventResource.NODE, ActionType.ADD),
            (EventResource.NODE, ActionType.DELETE),
            (EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE),
            (EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
            (EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
        ],
    )
    def test_whenever_preempting_may_be_enough(self, resource: EventResource, action: ActionType) -> None:
        events = harness(quota("a", 4)).framework.events_to_register()["CapacityScheduling"]
        (event,) = (each for each in events if each.resource == resource)
        assert action in event.action
        # Without a hint, each of these events wakes the pod, whichever pod or node it is about.
        assert event.hint is None

    def test_when_a_quota_comes_goes_or_changes(self) -> None:
        before, after = quota("b", 4).as_custom_object(), quota("b", 5).as_custom_object()
        assert self.hint("elasticquota", None, after) is QueueingHint.QUEUE
        assert self.hint("elasticquota", before, None) is QueueingHint.QUEUE
        assert self.hint("elasticquota", before, after) is QueueingHint.QUEUE

    def test_not_when_only_its_status_changes(self) -> None:
        before = quota("b", 4).as_custom_object()
        after = attrs.evolve(before, metadata=attrs.evolve(before.metadata, resource_version="2"))
        assert self.hint("elasticquota", before, after) is QueueingHint.SKIP
