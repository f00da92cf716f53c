"""The hooks from reserve to post_bind of a profile.

Semantics: kube-scheduler v1.36 `RunReservePluginsReserve` … `RunPostBindPlugins`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.handle import Handle
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.results import PreBindPreFlightResult
from kschedfw.framework.runtime.calls import call, call_all, first_failure, named
from kschedfw.framework.runtime.hook_answers import as_pre_flight
from kschedfw.framework.runtime.hooks import Hook, HookTable
from kschedfw.framework.runtime.measuring import Meter, measured
from kschedfw.framework.status import Code, Status
from kschedfw.framework.waiting_pods import MAX_PERMIT_TIMEOUT, WaitingPod

_SUCCESS = Status.success()
_ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


class BindingHooks:
    """The part of a `Framework` that reserves, permits and binds."""

    handle: Handle
    parts: Parts
    _hooks: HookTable
    _meter: Meter | None
    _side_by_side: Parallelizer
    """The threads of pre_binds that allow it. Filters have others, since pre_binds may block for minutes."""

    @measured(MeasuredPoint.RESERVE)
    def run_reserve_plugins_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Reserve the pod's needs in all plugins. On anything but success the caller must unreserve."""
        return first_failure("reserve", self._hooks["reserve"], state, pod, node_name)

    @measured(MeasuredPoint.UNRESERVE)
    def run_reserve_plugins_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> Sequence[Status]:
        """Undo reserve in reverse order. Call every plugin, and return the failures instead of raising them."""
        return call_all("unreserve", reversed(self._hooks["unreserve"]), state, pod, node_name)

    @measured(MeasuredPoint.PERMIT)
    def run_permit_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return success, a refusal, or WAIT, in which case the pod has been added to `handle.waiting_pods`."""
        waits = self._permit(state, pod, node_name)
        if isinstance(waits, Status):
            return waits
        timeouts = {
            name: MAX_PERMIT_TIMEOUT if status.timeout is None else status.timeout
            for name, status in waits.items()
        }
        reasons = [reason for status in waits.values() for reason in status.reasons]
        self.parts.waiting_pods.add(WaitingPod(pod, timeouts, self.handle.clock, reasons))
        return Status(Code.WAIT, (f'{_ASKED_TO_WAIT} "{pod.name}"',))

    @measured(MeasuredPoint.PERMIT)
    def ask_permit_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return the answer of `run_permit_plugins`, with the plugins' reasons to wait; no pod begins to wait."""
        waits = self._permit(state, pod, node_name)
        if isinstance(waits, Status):
            return waits
        reasons = [reason for status in waits.values() for reason in status.reasons]
        return Status(Code.WAIT, (*reasons, _ASKED_TO_WAIT))

    def _permit(self, state: CycleState, pod: Pod, node_name: str) -> Mapping[str, Status] | Status:
        """Return the WAIT statuses by plugin, or a single status: success, or the first refusal or error."""
        waits: dict[str, Status] = {}
        for name, hook in self._hooks["permit"]:
            status = call("permit", hook, state, pod, node_name)
            if status.is_success:
                continue
            # A refusal ends the loop, even after a plugin that asked to wait, as in kube-scheduler's
            # RunPermitPlugins.
            if not status.is_wait:
                return named(status, "permit", name)
            waits[name] = status
        return waits or _SUCCESS

    def wait_on_permit(self, pod: Pod) -> Status:
        """Block until a waiting pod is allowed, rejected or timed out; return success at once if it doesn't wait.

        A wait that a preemption ended is an ERROR.
        """
        waiting = self.parts.waiting_pods.get(pod.uid)
        if waiting is None:
            return _SUCCESS
        try:
            status = waiting.wait()
        finally:
            # However the wait ends, Ctrl-C included, no preemption may look for the pod here any more.
            self.parts.waiting_pods.remove(pod.uid)
        self.handle.metrics.permit_wait(status.code, self.handle.clock.monotonic() - waiting.started)
        if status.is_success or status.is_rejected:
            return status
        return status.prefixed("waiting on permit for pod", status.plugin)

    def only_binds(self, state: CycleState) -> bool:
        """Return whether after `run_pre_bind_pre_flights` nothing is left to do but DefaultBinder's binding."""
        hooks = self._hooks
        return (
            len(state.skip_pre_bind_plugins) == len(hooks["pre_bind"])
            and not hooks["post_bind"]
            and [name for name, _ in hooks["bind"]] == ["DefaultBinder"]
        )

    @measured(MeasuredPoint.BIND)
    def run_bind_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return the answer of the first plugin that doesn't skip; SKIP where all do or there is none."""
        for name, hook in self._hooks["bind"]:
            status = call("bind", hook, state, pod, node_name)
            if status.is_skip:
                continue
            return status if status.is_success else named(status, "bind", name)
        return Status.skip()

    @measured(MeasuredPoint.POST_BIND)
    def run_post_bind_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Sequence[Status]:
        """Call every plugin's post_bind, and return the failures instead of raising them."""
        return call_all("post_bind", self._hooks["post_bind"], state, pod, node_name)

    @measured(MeasuredPoint.PRE_BIND_PRE_FLIGHT)
    def run_pre_bind_pre_flights(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return success if a plugin has work to do in pre_bind, SKIP if none has, an ERROR if one fails.

        Sets `state.skip_pre_bind_plugins` and `state.parallel_pre_bind_plugins`: `run_pre_bind_plugins` with the same
        state doesn't call the plugins that skip. Without this call, it calls all.
        """
        skipped: set[str] = set()
        parallel: set[str] = set()
        pre_binds, pre_flights = self._hooks["pre_bind"], dict(self._hooks["pre_bind_pre_flight"])
        for name, _ in pre_binds:
            hook = pre_flights.get(name)
            if hook is None:
                continue
            status, allows_parallel = _ask(hook, name, state, pod, node_name)
            if status.is_skip:
                skipped.add(name)
            elif not status.is_success:
                return status
            if allows_parallel:
                parallel.add(name)
        state.skip_pre_bind_plugins = frozenset(skipped)
        state.parallel_pre_bind_plugins = frozenset(parallel)
        return _SUCCESS if len(skipped) < len(pre_binds) else Status.skip()

    @measured(MeasuredPoint.PRE_BIND)
    def run_pre_bind_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return success, or the first failure in profile order.

        Neighbours that allow it run side by side; all of them end before this returns.
        """
        for group in self._groups(state):

            def work(place: int, group: Sequence[tuple[str, Hook]] = group) -> Status:
                name, hook = group[place]
                status = call("pre_bind", hook, state, pod, node_name)
                return status if status.is_success else named(status, "pre_bind", name)

            # The last result is the first failure, if there is one.
            last = self._side_by_side.map_until(len(group), work, _has_failed)[-1]
            if not last.is_success:
                return last
        return _SUCCESS

    def _groups(self, state: CycleState) -> Iterator[Sequence[tuple[str, Hook]]]:
        """Yield the plugins that have work to do, in groups of neighbours that may run side by side.

        A skipped plugin that doesn't allow it separates its neighbours, as in kube-scheduler.
        """
        together: list[tuple[str, Hook]] = []
        for name, hook in self._hooks["pre_bind"]:
            has_work = name not in state.skip_pre_bind_plugins
            if name in state.parallel_pre_bind_plugins:
                if has_work:
                    together.append((name, hook))
                continue
            if together:
                yield together
                together = []
            if has_work:
                yield [(name, hook)]
        if together:
            yield together


def _has_failed(status: Status) -> bool:
    return not status.is_success


def _ask(hook: Hook, name: str, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, bool]:
    """Return the plugin's answer, and whether its pre_bind may run beside others."""
    try:
        answer = as_pre_flight("pre_bind_pre_flight", hook(state, pod, node_name))
    except HOOK_FAILURES as error:
        answer = Status.from_error(error)
    if isinstance(answer, PreBindPreFlightResult):
        return Status.skip() if answer.skip else _SUCCESS, answer.allow_parallel
    status = answer
    if status.is_success or status.is_skip:
        return status, False
    if status.error is not None or not (status.is_rejected or status.is_wait):
        return status.prefixed(f'running PreBindPreFlight "{name}"', name), False
    unsupported = (
        f'PreBindPreFlight {name} returned "{status.code}", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    )
    return Status.from_error(unsupported).with_plugin(name), False
