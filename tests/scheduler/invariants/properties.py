"""What must hold in any scheduler, whatever happens to it: one function per property.

Each takes a world and raises AssertionError if the property doesn't hold there. What is seen only from inside of
a cycle is in `inside.py`; `no_hook_saw_a_violation` brings it here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedfw.api.volume_matching import is_bound_to, is_fully_bound
from kschedfw.api.volumes import claim_name
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.nodes.pod_info import QueuedPodInfo, affinity_terms
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.waiting_pods import MAX_PERMIT_TIMEOUT
from kschedfw.plugins.default_preemption import DefaultPreemption
from kschedfw.plugins.volume_binding import VolumeBinding
from kschedfw.scheduler.queue.protocol import Place
from tests.scheduler.invariants.plugins import fingerprint
from tests.scheduler.invariants.views import contents, differing, full_snapshot, holds

if TYPE_CHECKING:
    from kschedfw.cluster import Cluster
    from kschedfw.scheduler.scheduler import Scheduler
    from tests.scheduler.invariants.world import World

Property = Callable[["World"], None]
_RESERVED = ["reserve First", "reserve Last"]
_QUEUED = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)


def check(world: World, properties: Sequence[Property]) -> None:
    """Check one after the other; the first that doesn't hold is named in the error."""
    for each in properties:
        try:
            each(world)
        except AssertionError as error:
            raise AssertionError(f"{each.__name__}: {error}") from error


# Cache and snapshot


def requested_is_the_sum_of_pods(world: World) -> None:
    """What a node has requested (and its affinities and images) is what its bound and assumed pods amount to.

    Host ports are left out: as in kube-scheduler, a port that two pods have is free as soon as one of them goes.
    """
    dump = world.scheduler.cache.dump()
    expected = {info.name: info for info in Snapshot.of(dump.nodes, dump.pods).node_infos}
    for info in full_snapshot(world).node_infos:
        assert contents(info) == contents(expected[info.name]), f"node {info.name}"


def incremental_snapshot_is_a_full_one(world: World) -> None:
    """A snapshot that followed the changes equals one that is made from scratch."""
    if world.random.random() < 0.3:
        world.scheduler.cache.update_snapshot(world.shadow)
        assert fingerprint(world.shadow) == fingerprint(full_snapshot(world)), "they differ"


def cache_equals_a_rebuild(world: World) -> None:
    """After a new list the cache has the cluster's nodes and bound pods, and besides only pods that are being bound."""
    dump, truth = world.scheduler.cache.dump(), world.cluster.truth
    assert {node.name: node for node in dump.nodes} == {node.name: node for node in truth.list(Node)}, "nodes"
    bound = {pod.uid: pod for pod in world.pods(lambda pod: bool(pod.node_name) and not pod.is_terminal)}
    confirmed = {pod.uid: pod for pod in dump.pods if pod.uid not in dump.assumed}
    assert confirmed == bound, f"confirmed pods {differing(confirmed, bound)}"
    assert dump.assumed <= _binding(world), f"assumed, but not being bound: {dump.assumed - _binding(world)}"
    rebuilt = {info.name: contents(info) for info in Snapshot.of(truth.list(Node), dump.pods).node_infos}
    assert {info.name: contents(info) for info in full_snapshot(world).node_infos} == rebuilt, "sums"
    assert not world.scheduler.debugger.compare(), str(world.scheduler.debugger.compare())


def every_assume_ends(world: World) -> None:
    """A pod stays assumed while it waits or is being bound, or until the cluster confirms its binding; no longer."""
    binding, cluster = _binding(world), world.cluster
    for uid in world.scheduler.cache.dump().assumed - binding:
        assert uid in cluster.confirmed, f"{uid} is assumed for ever"


def allocatable_is_never_exceeded(world: World) -> None:
    """No node was given more than it has.

    That is, unless it shrank, another scheduler bound a pod there, or a binding's answer got lost.
    """
    if world.ttl:
        return  # what has expired isn't counted, though it may be there
    excused = world.excused | world.cluster.lost_answers
    assert (over := overfull(world.cluster.truth) - excused) == set(), f"too much on {over}"


def overfull(truth: Cluster) -> set[str]:
    """The nodes where the pods of the cluster want more than there is."""
    return {
        info.name for info in Snapshot.of(truth.list(Node), truth.list(Pod)).node_infos if not holds(info)
    }


# Volumes


def a_volume_has_one_claim(world: World) -> None:
    """No volume is bound to two claims, and no claim to two volumes."""
    truth = world.cluster.truth
    claims = [claim for claim in truth.list(PersistentVolumeClaim) if claim.spec.volume_name]
    of_volume: dict[str, str] = {}
    for claim in claims:
        name = claim.spec.volume_name
        other = of_volume.setdefault(name, claim.key)
        assert other == claim.key, f"{name} is bound to {other} and to {claim.key}"
        volume = truth.get(PersistentVolume, name)
        mutual = volume is not None and is_bound_to(volume, claim)
        assert mutual, f"{claim.key} thinks that it has {name}"


def pods_are_bound_after_their_volumes(world: World) -> None:
    """What the scheduler bound has its claims, all of them bound."""
    truth = world.cluster.truth
    for pod in world.pods(lambda pod: pod.uid in world.cluster.bound):
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is not None:
                claim = truth.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
                bound = claim is not None and is_fully_bound(claim)
                assert bound, f"{pod.key} runs without {name}"


def reserved_volumes_are_for_pods_being_bound(world: World) -> None:
    """What is assumed of volumes is confirmed or given up with the binding cycle of the pod that needed it."""
    assumed = [
        obj.key
        for framework in world.frameworks
        if isinstance(plugin := framework.plugins["VolumeBinding"], VolumeBinding)
        for obj in (*plugin.claims.volumes.assumed, *plugin.claims.claims.assumed)
    ]
    assert not assumed or _binding(world), f"assumed for nobody: {assumed}"


# Pods and places


def bound_at_most_once(world: World) -> None:
    """A pod is bound once, and nobody asks again for what was answered."""
    twice = {uid: nodes for uid, nodes in world.cluster.bound.items() if len(nodes) > 1}
    assert not twice, f"bound more than once: {twice}"
    assert world.ttl or not world.cluster.bound_again, f"bound again: {world.cluster.bound_again}"


def in_exactly_one_place(world: World) -> None:
    """A pod is active, backs off, is unschedulable, gated, in flight, being bound, or bound: one of these."""
    queue, dump = world.scheduler.queue, world.scheduler.cache.dump()
    places: dict[str, list[str]] = {}
    for place in _QUEUED:
        for pod in queue.pods_in(place):
            places.setdefault(pod.uid, []).append(place)
    binding = _binding(world)
    for uid in binding:
        places.setdefault(uid, []).append("being bound")
    for pod in queue.in_flight_pods():
        if pod.uid not in binding:
            places.setdefault(pod.uid, []).append(Place.IN_FLIGHT)
    for pod in dump.pods:
        if pod.uid not in binding:
            places.setdefault(pod.uid, []).append("assumed" if pod.uid in dump.assumed else "bound")
    assert not (several := {uid: where for uid, where in places.items() if len(where) > 1}), several


def every_pending_pod_is_somewhere(world: World) -> None:
    """After a new list, the queue and the binding cycles have the pods that are pending, and the queue no others."""
    queue = world.scheduler.queue
    queued = {pod.uid for place in _QUEUED for pod in queue.pods_in(place)}
    pending = {pod.uid for pod in world.pending()}
    assert (lost := pending - queued - _binding(world)) == set(), f"lost: {lost}"
    # Pods that terminate without having been bound are let go when their turn comes.
    known = {pod.uid for pod in world.pods(lambda pod: not pod.node_name)}
    assert (ghosts := queued - known) == set(), f"not in the cluster: {ghosts}"


def in_flight_only_while_bound(world: World) -> None:
    """Between cycles only pods in a binding cycle are in flight, and without any no events are kept."""
    queue = world.scheduler.queue
    in_flight = {pod.uid for pod in queue.in_flight_pods()}
    assert in_flight <= _binding(world), f"left over: {in_flight - _binding(world)}"
    assert in_flight or not queue.in_flight_events(), "events are kept for nobody"


def nothing_left_over(world: World) -> None:
    """At rest no pod is in flight, waits, is assumed, holds a reservation or has a binding cycle under way."""
    assert not world.waiting, "waiting pods"
    assert not world.executor.tasks, "binding cycles"
    assert not world.scheduler.queue.in_flight_pods(), "pods in flight"
    assert not world.journal.reservations, "reservations"


def nothing_is_assumed(world: World) -> None:
    """At rest, with everything known, no pod is only assumed to be where it is."""
    assert not world.scheduler.cache.dump().assumed


def nominations_are_for_pending_pods(world: World) -> None:
    """At rest, only pods that are in the cluster and not bound are nominated."""
    pending = {pod.uid for pod in world.pending()}
    nominated = {info.pod.uid for info in world.scheduler.nominator.nominated_pods()}
    assert nominated <= pending, f"nominated for nothing: {nominated - pending}"


# Time


def tried_again_in_time(world: World, attempts: Mapping[str, int]) -> None:
    """Every pending pod without gates has been attempted since it had so many attempts behind it, or left the queue."""
    for pod in world.pending():
        tried = world.journal.attempts.get(pod.uid, 0) > attempts.get(pod.uid, 0)
        assert tried or pod.spec.scheduling_gates, f"tried_again_in_time: {pod.key} is forgotten"


def nobody_waits_too_long_in_the_queue(world: World) -> None:
    """When no pod is active any more, none is left that should have been tried again by now."""
    from tests.scheduler.invariants.world import RETRY_BOUND

    queue, now = world.scheduler.queue, world.clock.now()
    assert not queue.pods_in(Place.ACTIVE), "there are active pods"
    for place in (Place.BACKOFF, Place.UNSCHEDULABLE):
        for pod in queue.pods_in(place):
            info = queue.get(pod.uid)
            assert info is not None
            since = max(info.timestamp, info.flush_timestamp or 0.0)
            assert now <= since + RETRY_BOUND, f"{pod.key} has waited {now - since} s as {place}"


def no_feasible_pod_is_left(world: World) -> None:
    """At rest no pending pod without gates fits anywhere: those that became feasible were tried again."""
    nothing_fits(world.scheduler, world.pending())


def events_alone_bring_pods_back(world: World) -> None:
    """Once all events are known and backoff is over, no refused pod fits anywhere: it needn't wait for the timeout.

    Not so the pods that a troublemaker refused, who says of no event that it would change its mind; nor those that a
    nomination kept out until its pod was bound elsewhere, which kube-scheduler doesn't announce. And where hints are
    kube-scheduler's (not `complete_hints`), not the pods whose event they pass over.
    """
    queue = world.scheduler.queue
    infos = [info for pod in world.pending() if (info := queue.get(pod.uid)) is not None]
    trouble = {"Troublemaker", "Doorkeeper", "DefaultBinder"}
    nothing_fits(
        world.scheduler,
        [
            info.pod
            for info in infos
            if not info.rejector_plugins & trouble
            and info.pod.uid not in world.kept_out
            and (world.complete_hints or not _is_passed_over(world, info))
        ],
    )


def _is_passed_over(world: World, info: QueuedPodInfo) -> bool:
    """Whether the pod may be one of those that kube-scheduler's hints leave to the flush after five minutes.

    InterPodAffinity looks at the pod's own terms when nodes change, and so passes over pods that an existing pod's
    anti-affinity refused; and when a pod goes, it doesn't see that another one may be the first of its group now.
    PodTopologySpread passes over that a counted pod begins to terminate.
    """
    pod, rejectors = info.pod, info.rejector_plugins
    own = affinity_terms(pod).required_affinity
    if "InterPodAffinity" in rejectors:
        may_be_first = bool(own) and all(term.matches(pod, {}) for term in own)
        there = world.pods(lambda other: bool(other.node_name))
        if may_be_first or any(_minds(other, pod) for other in there):
            return True
    return "PodTopologySpread" in rejectors and bool(
        world.pods(lambda other: other.is_terminating and other.labels.get("app") == pod.labels.get("app"))
    )


def _minds(existing: Pod, pod: Pod) -> bool:
    terms = affinity_terms(existing).required_anti_affinity
    return any(term.matches(pod, {}) for term in terms)


def nothing_fits(scheduler: Scheduler, pods: Sequence[Pod]) -> None:
    """No node is one for any of the pods, as far as the scheduler knows nodes and pods."""
    scheduler.cache.update_snapshot(scheduler.snapshot)
    for pod in pods:
        if pod.spec.scheduling_gates:
            continue
        framework, state = scheduler.frameworks[pod.spec.scheduler_name], CycleState()
        narrowed, status, _ = framework.run_pre_filter_plugins(state, pod)
        if not status.is_success:
            continue
        fits = [
            info.name
            for info in scheduler.snapshot.node_infos
            if (narrowed is None or info.name in narrowed.node_names)
            and framework.run_filter_plugins_with_nominated_pods(state, pod, info).is_success
        ]
        assert not fits, f"{pod.key} fits on {fits}"


def nobody_could_make_room(world: World) -> None:
    """At rest no pending pod outside of groups would find victims: it has had its turn, and they went.

    Not so the pods with affinity, spreading or volumes: a pod or a volume that comes may change what its preemption
    would find, and hints tell of what refused the pod alone.
    """
    scheduler = world.scheduler
    scheduler.cache.update_snapshot(scheduler.snapshot)
    for pod in world.pending():
        framework, state = scheduler.frameworks[pod.spec.scheduler_name], CycleState()
        plugin = framework.plugins.get("WatchedPreemption") or framework.plugins["DefaultPreemption"]
        assert isinstance(plugin, DefaultPreemption)
        if affinity_terms(pod) or pod.spec.topology_spread_constraints or pod.spec.volumes:
            continue
        if not framework.run_pre_enqueue_plugins(pod).is_success:
            continue
        narrowed, status, _ = framework.run_pre_filter_plugins(state, pod)
        if not status.is_success:
            continue
        refused = NodeToStatus()
        for info in scheduler.snapshot.node_infos:
            if narrowed is None or info.name in narrowed.node_names:
                refused.set(info.name, framework.run_filter_plugins_with_nominated_pods(state, pod, info))
        plan = plugin.plan(state, pod, refused)
        if plan.chosen is not None:
            victims = [victim.name for victim in plan.chosen.victims.pods]
            raise AssertionError(f"{pod.key} would fit on {plan.chosen.node_name} without {victims}")


def gated_in_vain(world: World) -> Iterator[tuple[Pod, QueuedPodInfo]]:
    """The pods that are held back by a gate that would let them pass now."""
    queue = world.scheduler.queue
    for pod in queue.pods_in(Place.GATED):
        framework, info = world.scheduler.frameworks[pod.spec.scheduler_name], queue.get(pod.uid)
        if info is not None and framework.run_pre_enqueue_plugins(pod).is_success:
            yield pod, info


def nobody_is_gated_in_vain(world: World) -> None:
    """Once all events are known, no pod is held back by a gate that would let it pass now."""
    assert not (gated := [pod.key for pod, _ in gated_in_vain(world)]), f"held back: {gated}"


def every_permit_wait_ends(world: World) -> None:
    """No wait lasts longer than a quarter of an hour, nor beyond its own deadline once the scheduler has looked."""
    now = world.clock.now()
    for waiting in world.waiting:
        deadline = waiting.deadline
        assert deadline is None or now < deadline <= now + MAX_PERMIT_TIMEOUT, waiting.pod.key


# Hooks


def reservations_end_once(world: World) -> None:
    """What was reserved ends with post_bind of all plugins or unreserve of all, in reverse order; never both."""
    journal = world.journal
    for key, (_, uid, hooks) in tuple(journal.reservations.items()):
        if hooks == _RESERVED:
            continue
        bound = hooks == [*_RESERVED, "post_bind First", "post_bind Last"]
        undone = (
            hooks[-2:] == ["unreserve Last", "unreserve First"] and hooks[:-2] == _RESERVED[: len(hooks) - 2]
        )
        assert bound or undone, f"{uid}: {hooks}"
        del journal.reservations[key]
    under_way, reserved = len(world.scheduler.pods_in_pre_bind), len(journal.reservations)
    assert reserved == under_way, f"{reserved} reservations, {under_way} binding cycles under way"


def no_hook_saw_a_violation(world: World) -> None:
    """The properties that hold inside of cycles; see `observe`."""
    assert not world.journal.violations, "; ".join(world.journal.violations)


def handlers_take_every_event(world: World) -> None:
    """No event, however late, makes the scheduler's handlers raise."""
    errors = world.cluster.handler_errors
    assert not errors, f"{errors!r}"


def gauges_equal_sizes(world: World) -> None:
    """What the metrics show of queue, cache and workers is what there is."""
    queue, gauges = world.scheduler.queue, world.gauges
    sizes = world.sizes_of_places({str(place): len(queue.pods_in(place)) for place in _QUEUED})
    assert +Counter(gauges.pending) == +Counter(sizes), "pending pods"
    queued = [queue.get(pod.uid) for place in _QUEUED for pod in queue.pods_in(place)]
    rejected = Counter(plugin for info in queued if info for plugin in info.rejector_plugins)
    assert gauges.rejected == rejected, "unschedulable pods"
    kept = Counter(world.name_of(event) for event in queue.in_flight_events())
    assert gauges.kept == kept + Counter(PodPopped=len(queue.in_flight_pods())), "in-flight events"
    assert not +gauges.working, f"nobody works between two steps: {gauges.working}"
    world.scheduler.tick()
    assert gauges.cached == world.scheduler.cache.sizes(), "cache size"


ALWAYS: Sequence[Property] = (
    reservations_end_once,
    handlers_take_every_event,
    no_hook_saw_a_violation,
    requested_is_the_sum_of_pods,
    incremental_snapshot_is_a_full_one,
    every_assume_ends,
    allocatable_is_never_exceeded,
    bound_at_most_once,
    in_exactly_one_place,
    in_flight_only_while_bound,
    a_volume_has_one_claim,
    pods_are_bound_after_their_volumes,
    reserved_volumes_are_for_pods_being_bound,
)
AFTER_TICK: Sequence[Property] = (every_permit_wait_ends,)
DRAINED: Sequence[Property] = (nobody_waits_too_long_in_the_queue,)
AFTER_RELIST: Sequence[Property] = (cache_equals_a_rebuild, every_pending_pod_is_somewhere)
AT_REST: Sequence[Property] = (
    gauges_equal_sizes,
    nothing_left_over,
    nothing_is_assumed,
    nominations_are_for_pending_pods,
    no_feasible_pod_is_left,
)
CLOSED: Sequence[Property] = (reservations_end_once, nothing_left_over)


def _binding(world: World) -> frozenset[str]:
    """The uids of pods whose binding cycle hasn't ended: it waits for permission or for its turn.

    Between cycles these are the ones with open reservations; `reservations_end_once` sees to it that no others are.
    """
    return frozenset(uid for _, uid, hooks in world.journal.reservations.values() if hooks == _RESERVED)
