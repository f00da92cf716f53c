"""The binding cycle of a pod whose node is reserved (kube-scheduler `bindingCycle`)."""

from __future__ import annotations

import logging
from contextlib import suppress

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cluster_client import record_event
from kschedfw.framework.cycle_state import take_pods_to_activate
from kschedfw.framework.diagnosis import Diagnosis, FitError
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.metrics import AttemptResult
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parts import Parts
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import CLEAR_NOMINATION, Attempt
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import CacheError
from kschedfw.scheduler.extenders import bind_with_extenders
from kschedfw.scheduler.failure import FailureHandler, look_up, patch_nomination
from kschedfw.scheduler.queue import PreCheck, SchedulingQueue
from kschedfw.scheduler.queue.cluster_events import ASSIGNED_POD_DELETE
from kschedfw.scheduler.structured import Structured

_log = logging.getLogger(__name__)

_SUCCESS = Status.success()


@define(eq=False)
class BindingCycle:
    """The steps for an assumed pod: `begin`, then `run`; `give_up` undoes them. Thread-safe."""

    _parts: Parts
    _cache: Cache
    _queue: SchedulingQueue
    _failures: FailureHandler

    def begin(self, attempt: Attempt) -> Status:
        """Run pre_bind_pre_flight, and set the nominated node of a pod whose binding will take a while.

        Return success, or an ERROR. Semantics: KEP-5278 (NominatedNodeNameForExpectation).
        """
        assumed, host = _placed(attempt)
        status = attempt.framework.run_pre_bind_pre_flights(attempt.state, assumed, host)
        if not (status.is_success or status.is_skip):
            return status
        if status.is_success or self._parts.waiting_pods.get(assumed.uid) is not None:
            patch_nomination(self._parts.cluster, attempt.pod, host)
        return _SUCCESS

    def run(self, attempt: Attempt) -> Status:
        """Finish permit and bind the pod; give the pod up if either fails."""
        status = self.prepare(attempt)
        if status.is_success:
            status = self.finish(attempt)
        if not status.is_success:
            self.give_up(attempt, status)
        return status

    def prepare(self, attempt: Attempt) -> Status:
        """Wait for permission, and run pre_bind. The caller must give the pod up if this fails."""
        assumed, host = _placed(attempt)
        framework, state = attempt.framework, attempt.state
        status = framework.wait_on_permit(assumed)
        if not status.is_success:
            return as_fit_error(attempt, host, status) if status.is_rejected else status
        # From here on not even a refusal waits for an event: without a FitError no plugin is named, and the pod is
        # tried again after a backoff. So events during its flight need not be kept.
        self._queue.done(assumed.uid)
        status = framework.run_pre_bind_plugins(state, assumed, host)
        if not status.is_success:
            return status
        # After `finish` a preemption can't cancel any more: it deletes the pod, bound or not.
        in_pre_bind = self._parts.pods_in_pre_bind.get(assumed.uid)
        if in_pre_bind is not None and (message := in_pre_bind.finish()) is not None:
            return Status.from_error(message)
        return _SUCCESS

    def finish(self, attempt: Attempt) -> Status:
        """Bind the prepared pod, and run post_bind. The caller must give the pod up if binding fails."""
        assumed, host = _placed(attempt)
        framework, state = attempt.framework, attempt.state
        status = self._bind(attempt, assumed, host)
        # Also after a failure, as in kube-scheduler's finishBinding: the pod is forgotten, or the cluster
        # confirms it.
        self._cache.finish_binding(assumed)
        if not status.is_success:
            self._keep_if_bound(assumed)
            return status
        attempt.is_bound = True
        self._parts.pods_in_pre_bind.remove(assumed.uid)
        record_event(
            self._parts.cluster,
            assumed,
            "Normal",
            "Scheduled",
            f"Successfully assigned {assumed.key} to {host}",
        )
        self._count(attempt)
        if _log.isEnabledFor(logging.INFO):
            _log.info(_bound(attempt))
        # The pod is bound, so a failure here costs no attempt.
        for failure in framework.run_post_bind_plugins(state, assumed, host):
            _log.error("%s", failure.message, exc_info=failure.error)
        self._queue.activate(take_pods_to_activate(state))
        return status

    def give_up(self, attempt: Attempt, status: Status) -> None:
        """Undo reserve and assume, and requeue the pod; nothing is undone for a bound pod."""
        if attempt.is_bound:
            return
        assumed, _ = _placed(attempt)
        self._parts.waiting_pods.remove(assumed.uid)
        release(attempt, self._cache)
        # Until here a preemption may take its resources. From here on the pod may be in another binding cycle.
        self._parts.pods_in_pre_bind.remove(assumed.uid)
        if not status.is_rejected:
            self._tell_of_room(assumed)
            self._failures.handle(attempt, status, CLEAR_NOMINATION)
            return
        # The pod itself wasn't rejected for lack of resources, so its release must not retry it. Hence its flight
        # ends first: events during a flight count for the pod in flight, too.
        self._failures.handle(attempt, status, CLEAR_NOMINATION)
        self._tell_of_room(assumed, lambda pod: pod.uid != assumed.uid)

    def withdraw(self, attempt: Attempt) -> None:
        """Undo reserve and assume on a caller's request, which isn't a failure of the pod."""
        assumed, _ = _placed(attempt)
        self._parts.waiting_pods.remove(assumed.uid)
        release(attempt, self._cache)
        self._parts.pods_in_pre_bind.remove(assumed.uid)
        self._queue.done(assumed.uid)
        present = look_up(self._parts.cluster, attempt.pod)
        if present is not None and present.uid == assumed.uid and not present.node_name:
            # The nomination would keep the resources.
            patch_nomination(self._parts.cluster, present, "")
            # Looked up again, since the patch has changed it.
            self._queue.add_if_not_present(look_up(self._parts.cluster, present) or present)
        self._tell_of_room(assumed)

    def _tell_of_room(self, assumed: Pod, whom: PreCheck | None = None) -> None:
        """Announce to the queue that the pod's resources are free again, as if a bound pod had been deleted."""
        self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, assumed, None, whom)

    def _keep_if_bound(self, assumed: Pod) -> None:
        """Keep the pod on its node if the cluster has bound it, although the response to the binding was lost.

        The event of the binding may not have arrived yet.
        """
        try:
            present = self._parts.cluster.get(Pod, assumed.key)
        except Exception:
            _log.exception("can't look up %s", assumed.key)
            return
        if present is not None and present.uid == assumed.uid and present.node_name:
            # The event of the binding may have added the pod already.
            with suppress(CacheError):
                self._cache.add_pod(present)

    def _count(self, attempt: Attempt) -> None:
        info, first = attempt.info, attempt.info.initial_attempt_timestamp
        self._parts.metrics.scheduling_attempt(
            AttemptResult.SCHEDULED,
            attempt.framework.profile.scheduler_name,
            self._parts.clock.monotonic() - attempt.started,
        )
        self._parts.metrics.pod_scheduled(
            info.attempts, None if first is None else self._parts.clock.now() - first
        )
        if info.was_flushed_from_unschedulable:
            self._parts.metrics.pod_scheduled_after_flush()

    def _bind(self, attempt: Attempt, assumed: Pod, host: str) -> Status:
        try:
            # Extenders come before the bind plugins, as in kube-scheduler.
            extenders = attempt.framework.parts.extenders
            if extenders and bind_with_extenders(extenders, assumed, host):
                return _SUCCESS
        except HOOK_FAILURES as error:
            return Status.from_error(error)
        status = attempt.framework.run_bind_plugins(attempt.state, assumed, host)
        if status.is_skip:
            return Status.from_error(f"no bind plugin would bind pod {assumed.key}")
        return status


def take_place(attempt: Attempt, cache: Cache, nominator: Nominator) -> Status:
    """Assume the pod, and run reserve and permit; undo all of it if one of them fails.

    Raises:
        CacheError: the pod can't be assumed.
    """
    assumed, host = _placed(attempt)
    cache.assume_pod(assumed)
    # The cache counts the pod on its node from now on. With its nomination it would count twice.
    nominator.delete(assumed)
    status = attempt.framework.run_reserve_plugins_reserve(attempt.state, assumed, host)
    if status.is_success:
        status = attempt.framework.run_permit_plugins(attempt.state, assumed, host)
    # Even if reserve failed: the plugins before the one that failed have reserved something.
    if not (status.is_success or status.is_wait):
        release(attempt, cache)
    return status


def release(attempt: Attempt, cache: Cache) -> None:
    """Unreserve, in reverse order, and forget the assumed pod; failures are logged."""
    assumed, host = _placed(attempt)
    for failure in attempt.framework.run_reserve_plugins_unreserve(attempt.state, assumed, host):
        _log.error("%s", failure.message, exc_info=failure.error)
    try:
        cache.forget_pod(assumed)
    # The cluster has confirmed the pod, or it was deleted.
    except CacheError as error:
        _log.info("%s", error)


def as_fit_error(attempt: Attempt, host: str, status: Status) -> Status:
    """Return a rejection after a node was chosen as the FitError of that one node."""
    diagnosis = Diagnosis()
    diagnosis.node_to_status.set(host, status)
    diagnosis.add_plugin_status(status)
    error = FitError(attempt.pod, 1, diagnosis)
    return Status(status.code, (str(error),), status.plugin, error)


def _bound(attempt: Attempt) -> Structured:
    assumed, host = _placed(attempt)
    found = attempt.result
    nodes = (
        {}
        if found is None
        else {"evaluatedNodes": found.evaluated_nodes, "feasibleNodes": found.feasible_nodes}
    )
    return Structured("Successfully bound pod to node", pod=assumed.key, node=host, **nodes)


def _placed(attempt: Attempt) -> tuple[Pod, str]:
    assert attempt.assumed is not None
    return attempt.assumed, attempt.assumed.node_name
