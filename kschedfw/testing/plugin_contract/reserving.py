"""Checks of reserve, unreserve and permit."""

from __future__ import annotations

import math

from kschedfw import CycleState, NodeToStatus, Pod, Status
from kschedfw.framework.waiting_pods import MAX_PERMIT_TIMEOUT
from kschedfw.testing.plugin_contract.stage import NewStage, PlacedPod, PluginStage, difference, on_stages
from kschedfw.testing.plugin_contract.subject import Subject, violated


class ReservingChecks(Subject):
    """Checks of the plugin's reservations, as far as its answers for further pods show them."""

    @on_stages("reserve", "unreserve")
    def test_unreserve_copes_with_a_reserve_that_never_was(self, new_stage: NewStage) -> None:
        stage = new_stage()
        for pod in stage.pods:
            node = stage.nodes[0].name
            stage.unreserve(PlacedPod(pod.bound_to(node), node, CycleState()))
        _same_books(
            new_stage(),
            stage,
            f"after {self._name}.unreserve without a reserve",
            "unreserve is also called when the reserve of an earlier plugin has failed: give back only what was "
            "taken, for example by the pod's uid",
        )

    @on_stages("reserve")
    def test_unreserve_gives_back_what_reserve_took(self, new_stage: NewStage) -> None:
        stage = new_stage()
        for pod in stage.pods:
            placed = stage.reserve(pod)
            if placed is not None:
                stage.unreserve(placed)
        _same_books(
            new_stage(),
            stage,
            f"after {self._name}.reserve and unreserve",
            "what reserve takes, unreserve has to give back, all of it: otherwise each failed attempt loses some",
        )

    @on_stages("unreserve")
    def test_a_second_unreserve_gives_nothing_back(self, new_stage: NewStage) -> None:
        once, twice = new_stage(), new_stage()
        for stage, times in ((once, 1), (twice, 2)):
            reserved = [placed for pod in stage.pods if (placed := stage.reserve(pod)) is not None]
            for placed in reserved[:1] * times:
                stage.unreserve(placed)
        _same_books(
            once,
            twice,
            f"after a second {self._name}.unreserve of the same pod, while others are reserved,",
            "it must be idempotent: remember whose reservation is whose, by the pod's uid, instead of counting",
        )

    @on_stages("permit")
    def test_a_wait_at_permit_is_finite_and_ends(self, new_stage: NewStage) -> None:
        for end in (_allow, _reject, _time_out):
            stage = new_stage()
            reserved = [placed for pod in stage.pods if (placed := stage.reserve(pod)) is not None]
            answers = [(placed, stage.permit(placed)) for placed in reserved]
            for placed, status in answers:
                if status.is_wait:
                    _is_finite(stage, status)
                    end(stage, placed)
            for placed, status in reversed(answers):
                if not status.is_success:
                    stage.unreserve(placed)
            for placed, status in answers:
                if status.is_success:
                    stage.unreserve(placed)
            _same_books(
                new_stage(),
                stage,
                f"after waits for {self._name}.permit that ended ({end.__name__.strip('_')}) and unreserve",
                "what permit and reserve note of a pod, unreserve has to forget, however the wait has ended",
            )

    @on_stages("reserve", "permit")
    def test_a_restored_plugin_answers_as_when_it_was_saved(self, new_stage: NewStage) -> None:
        expected, given = new_stage(), new_stage()
        for stage in (expected, given):
            stage.hold(stage.pods[0])
        waits, states = given.framework.waiting_pods.save(), given.framework.save_states()
        held = [placed for pod in given.pods[1:] if (placed := given.hold(pod)) is not None]
        # Unreserve brings back what reserve took. What attempts in vain leave behind, such as a gang's tries,
        # only the token brings back.
        for pod in given.pods:
            _try_in_vain(given, pod)
        for placed in reversed(held):
            given.unreserve(placed)
        # Twice, since a token may be restored several times.
        for _ in range(2):
            given.framework.waiting_pods.restore(waits)
            given.framework.restore_states(states)
        _same_books(
            expected,
            given,
            f"after {self._name} was saved, other pods were tried and unreserved, and its state was restored,",
            "what isn't undone by unreserve belongs into the token of `save_state`, as a copy, and `restore_state` "
            "brings it back",
        )

    @on_stages("unreserve")
    def test_failed_attempts_can_be_forgotten(self, new_stage: NewStage) -> None:
        stage = new_stage()
        for pod in stage.pods:
            if (placed := stage.hold(pod)) is not None:
                stage.unreserve(placed)
        stage.framework.forget_attempts()
        _same_books(
            new_stage(),
            stage,
            f"after places were taken and given up, and {self._name}.forget_attempts,",
            "it answers as after a start: what is known of attempts that came to nothing, such as a time until "
            "which a pod is left alone, is to be forgotten",
        )


def _try_in_vain(stage: PluginStage, pod: Pod) -> None:
    """Have the plugin make room for a pod that all nodes refuse."""
    state = CycleState()
    stage.framework.run_pre_filter_plugins(state, pod)
    stage.hooks.answer(
        "post_filter", state, pod, NodeToStatus(absent=Status.unresolvable("refused by the test"))
    )


def _is_finite(stage: PluginStage, status: Status) -> None:
    if status.timeout is None or not math.isfinite(status.timeout) or status.timeout <= 0:
        violated(
            f"{stage.name}.permit asks to wait for {status.timeout} seconds",
            "`Status.wait(timeout)` takes a positive number of seconds; what holds the pod may never come, and then "
            "the place that it has reserved is given back",
        )


def _allow(stage: PluginStage, placed: PlacedPod) -> None:
    waiting = stage.framework.waiting_pods.get(placed.pod.uid)
    if waiting is not None:
        waiting.allow(stage.name)
    stage.framework.wait_on_permit(placed.pod)


def _reject(stage: PluginStage, placed: PlacedPod) -> None:
    waiting = stage.framework.waiting_pods.get(placed.pod.uid)
    if waiting is not None:
        waiting.reject(stage.name, "rejected by the test")
    stage.framework.wait_on_permit(placed.pod)


def _time_out(stage: PluginStage, placed: PlacedPod) -> None:
    stage.clock.advance(MAX_PERMIT_TIMEOUT)
    stage.framework.wait_on_permit(placed.pod)


def _same_books(expected: PluginStage, given: PluginStage, when: str, remedy: str) -> None:
    """Check that the plugin's answers are the same on two stages of one world."""
    # Time advances only for waits, not for the calls that follow.
    expected.clock.advance(given.clock.now() - expected.clock.now())
    before, after = expected.books(), given.books()
    if (different := difference(before, after)) != "":
        violated(
            f"{when} {different} is {after.get(different)!r} instead of {before.get(different)!r}", remedy
        )
