"""What must hold of groups of pods, whatever happens: one function per property, as in `properties.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroup, group_key
from kschedfw.framework.gate_table import WORKLOAD_AWARE_PREEMPTION
from kschedfw.framework.groups import MemberStates, QueuedGroup
from kschedfw.framework.versions.v1_37 import GROUP_ENTITY
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.groups.cycle import turn
from kschedfw.scheduler.groups.preemption import plan_preemption
from kschedfw.scheduler.groups.trial import AffinityLists, GroupResult
from kschedfw.scheduler.queue.cluster_events import ASSIGNED_POD_DELETE
from kschedfw.scheduler.queue.hints import QueueingHints, Requeue
from kschedfw.scheduler.queue.in_flight import Occurrence
from tests.scheduler.invariants import properties
from tests.scheduler.invariants.plugins import fingerprint
from tests.scheduler.invariants.properties import Property, nothing_fits
from tests.scheduler.invariants.views import full_snapshot

if TYPE_CHECKING:
    from tests.scheduler.invariants.group_world import GroupWorld, WatchedCluster
    from tests.scheduler.invariants.world import World


def _groups(world: World) -> GroupWorld:
    return cast("GroupWorld", world)


def _members(pods: Iterable[Pod]) -> Mapping[str, Sequence[Pod]]:
    found: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if key := group_key(pod):
            found[key].append(pod)
    return found


def trials_leave_nothing_behind(world: World) -> None:
    """The scheduler's own snapshot, in which trials put members and take victims away, is that of its cache."""
    world.scheduler.cache.update_snapshot(world.scheduler.snapshot)
    assert fingerprint(world.scheduler.snapshot) == fingerprint(full_snapshot(world)), "a trial is left in it"


def members_are_counted(world: World) -> None:
    """Of each group as many members count as scheduled as the cache has on nodes."""
    dump, handle = world.scheduler.cache.dump(), world.frameworks[0].handle
    placed = {key: {pod.uid for pod in pods} for key, pods in _members(dump.pods).items()}
    from tests.scheduler.invariants.group_world import GROUP_NAMES

    for name in GROUP_NAMES:
        key = f"default/{name}"
        states = handle.groups.get(key) or MemberStates()
        scheduled = {pod.uid for pod in states.scheduled}
        assert states.number_scheduled == len(scheduled), f"{key}: {states.number_scheduled} counted"
        assert scheduled == placed.get(key, set()), f"{key}: {scheduled ^ placed.get(key, set())}"
        assert states.assumed <= dump.assumed, f"{key}: assumed {states.assumed - dump.assumed}"


def in_part(world: GroupWorld) -> set[str]:
    """The gangs that have members on nodes, but fewer than they need."""
    bound = _members(world.pods(lambda pod: bool(pod.node_name) and not pod.is_terminal))
    return {
        group.key
        for group in world.cluster.truth.list(PodGroup)
        if group.min_count is not None and 0 < len(bound.get(group.key, ())) < group.min_count
    }


def no_gang_is_bound_in_part(world: World) -> None:
    """At rest a gang runs with as many members as it needs, or with none.

    That is, unless members went, or weren't bound after all, since it was last at rest.
    """
    groups = _groups(world)
    assert (partial := in_part(groups) - groups.disturbed) == set(), f"bound in part: {partial}"
    bound = _members(world.pods(lambda pod: bool(pod.node_name) and not pod.is_terminal))
    for group in world.cluster.truth.list(PodGroup):
        if group.min_count is not None and group.min_count > 1 and group.key not in in_part(groups):
            groups.whole.update([group.uid] if bound.get(group.key) else [])


def no_group_starves(world: World) -> None:
    """At rest no group is pending whose cycle would give it a place: nothing else runs, so it has had its turn."""
    for group, try_group in _pending_groups(world):
        found = try_group()
        placed = [each.attempt.pod.name for each in found.members if each.node_name]
        assert not found.status.is_success, f"{group.key}: {placed} would have a place"


def no_group_could_make_room(world: World) -> None:
    """At rest no group is pending that would find victims: it has had its turn, and they went."""
    if not world.frameworks[0].handle.feature_gates.enabled(WORKLOAD_AWARE_PREEMPTION):
        return
    for group, try_group in _pending_groups(world):
        plan = plan_preemption(world.frameworks[0].handle, group, try_group)
        victims = [pod.name for unit in plan.victims for pod in unit.pods]
        assert not plan.status.is_success, f"{group.key} would have a place without {victims}"


def no_member_is_gated_in_vain(world: World) -> None:
    """Once all events are known, no pod is held back by a gate that would let it pass now.

    Unless victims of its group are still there, whose end will bring it back.
    """
    passed_over = _passed_over(world) | _held_back_by_fellows(world)
    for pod, info in properties.gated_in_vain(world):
        assert pod.uid in passed_over, f"{pod.key} is held back by {info.gating_plugin}"


def _held_back_by_fellows(world: World) -> set[str]:
    """The members of groups with a gated pod: since v1.37 it holds all of them back."""
    if not world.frameworks[0].handle.feature_gates.follows(GROUP_ENTITY):
        return set()
    groups = _members(world.pending()).values()
    return {pod.uid for pods in groups if any(each.spec.scheduling_gates for each in pods) for pod in pods}


def _passed_over(world: World) -> set[str]:
    """The members that v1.36 leaves gated until a member with another refusal is tried, or until the flush.

    They were held back while victims of their group went, and by the hints of their own refusal that made no room for
    them. Also those with a victim that still terminates, or whose binding is still to be given up.
    """
    cluster = cast("WatchedCluster", world.cluster)
    hints = QueueingHints(
        {name: each.events_to_register() for name, each in world.scheduler.frameworks.items()}
    )
    placed = {pod.uid for pod in world.scheduler.cache.dump().pods}
    found = set()
    for pod, info in properties.gated_in_vain(world):
        group = world.cluster.truth.get(PodGroup, group_key(pod))
        victims = [*cluster.victims[pod.uid], *(cluster.victims[group.uid] if group else ())]
        went = [Occurrence(ASSIGNED_POD_DELETE, victim, None) for victim in victims]
        is_to_come = any(victim.uid in placed for victim in victims)
        if is_to_come or (group_key(pod) and hints.judge_all(info, went) is Requeue.SKIP):
            found.add(pod.uid)
    return found


def _pending_groups(world: World) -> Iterator[tuple[QueuedGroup, Callable[[], GroupResult]]]:
    """The pending groups whose members pass their gates, each with a trial of its cycle."""
    scheduler, truth = world.scheduler, world.cluster.truth
    cycle, framework = scheduler.group_cycle, world.frameworks[0]
    assert cycle is not None
    pending = [pod for pod in world.pending() if not pod.spec.scheduling_gates]
    passed_over = _passed_over(world)
    held = _held_back_by_fellows(world)
    for key, pods in _members(pending).items():
        if held.issuperset(pod.uid for pod in pods):
            continue
        # A fellow member that is popped takes them along.
        if passed_over.issuperset(pod.uid for pod in pods):
            continue
        if any(not framework.run_pre_enqueue_plugins(pod).is_success for pod in pods):
            continue
        infos = [info for pod in pods if (info := scheduler.queue.get(pod.uid)) is not None]
        attempts = [Attempt(info, framework, 0.0) for info in sorted(infos, key=turn)]
        group = QueuedGroup(key, truth.get(PodGroup, key), tuple(attempt.pod for attempt in attempts))
        states = framework.handle.groups.get(key) or MemberStates()
        scheduler.cache.update_snapshot(scheduler.snapshot)
        lists = AffinityLists.of(scheduler.snapshot)
        run = partial(cycle.algorithm.run, framework, group, states, lists, attempts)
        yield group, partial(run, makes_room=False)


def no_feasible_pod_is_left(world: World) -> None:
    """At rest no pending pod outside of groups, and without gates, fits anywhere."""
    nothing_fits(world.scheduler, [pod for pod in world.pending() if not group_key(pod)])


ALWAYS: Sequence[Property] = (
    properties.reservations_end_once,
    properties.handlers_take_every_event,
    properties.no_hook_saw_a_violation,
    properties.requested_is_the_sum_of_pods,
    properties.incremental_snapshot_is_a_full_one,
    properties.every_assume_ends,
    properties.allocatable_is_never_exceeded,
    properties.bound_at_most_once,
    properties.in_exactly_one_place,
    properties.in_flight_only_while_bound,
    trials_leave_nothing_behind,
    members_are_counted,
)
AT_REST: Sequence[Property] = (
    properties.gauges_equal_sizes,
    properties.nothing_left_over,
    properties.nothing_is_assumed,
    properties.nominations_are_for_pending_pods,
    no_feasible_pod_is_left,
    no_gang_is_bound_in_part,
    no_group_starves,
)
