"""Which plugins are asked about an event, and what becomes of their answers."""

from __future__ import annotations

import logging

import pytest

from kschedfw.api.pod import Pod
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.metrics import NoMetrics
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.scheduler.queue.cluster_events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT
from kschedfw.scheduler.queue.hints import QueueingHints, Requeue
from kschedfw.scheduler.queue.in_flight import Occurrence
from kschedfw.testing import FakeClock
from tests.scheduler.queue.support import NODE_ADD, NODE_LABEL, PROFILE, always, pod

QUEUE, SKIP = always(QueueingHint.QUEUE), always(QueueingHint.SKIP)


def subscription(hint: object = None, event: ClusterEvent = NODE_ADD) -> ClusterEvent:
    return ClusterEvent(event.resource, event.action, hint)  # type: ignore[arg-type]


class Measured(NoMetrics):
    """A recorder that wants to be told."""


def judge(
    subscriptions: dict[str, list[ClusterEvent]],
    *,
    refused: str = "",
    pending: str = "",
    event: ClusterEvent = NODE_ADD,
    new: object | None = None,
) -> Requeue:
    """Plugins are single letters."""
    info = QueuedPodInfo(PodInfo.of(pod()), unschedulable_plugins=set(refused), pending_plugins=set(pending))
    verdict = QueueingHints({PROFILE: subscriptions}).judge(info, Occurrence(event, None, new))
    measured = QueueingHints({PROFILE: subscriptions}, FakeClock(), Measured())
    assert measured.judge(info, Occurrence(event, None, new)) is verdict, "measuring changes nothing"
    return verdict


@pytest.mark.parametrize(
    ("subscriptions", "refused", "pending", "verdict"),
    [
        ({"A": [subscription(QUEUE)]}, "A", "", Requeue.AFTER_BACKOFF),
        ({"A": [subscription(SKIP)]}, "A", "", Requeue.SKIP),
        ({"A": [subscription(None)]}, "A", "", Requeue.AFTER_BACKOFF),
        ({"A": [subscription(QUEUE, NODE_LABEL)]}, "A", "", Requeue.SKIP),
        ({"A": [subscription(SKIP), subscription(QUEUE)]}, "A", "", Requeue.AFTER_BACKOFF),
        ({"A": [subscription(SKIP)], "B": [subscription(QUEUE)]}, "A", "", Requeue.SKIP),
        ({"A": [subscription(SKIP)], "B": [subscription(QUEUE)]}, "AB", "", Requeue.AFTER_BACKOFF),
        ({"A": [subscription(QUEUE)], "P": [subscription(QUEUE)]}, "A", "P", Requeue.IMMEDIATELY),
        ({"A": [subscription(QUEUE)], "P": [subscription(SKIP)]}, "A", "P", Requeue.AFTER_BACKOFF),
        ({"A": [subscription(SKIP)], "P": [subscription(SKIP)]}, "A", "P", Requeue.SKIP),
        ({}, "A", "", Requeue.AFTER_BACKOFF),
        ({"A": []}, "A", "", Requeue.SKIP),
        ({"A": []}, "", "", Requeue.AFTER_BACKOFF),
    ],
)
def test_only_those_who_refused_the_pod_are_asked(
    subscriptions: dict[str, list[ClusterEvent]], refused: str, pending: str, verdict: Requeue
) -> None:
    assert judge(subscriptions, refused=refused, pending=pending) is verdict


def test_a_hint_gets_the_pod_and_the_object_before_and_after() -> None:
    seen: list[tuple[Pod, object, object]] = []

    def hint(each: Pod, old: object, new: object) -> QueueingHint:
        seen.append((each, old, new))
        return QueueingHint.SKIP

    info = QueuedPodInfo(PodInfo.of(pod()), unschedulable_plugins={"A"})
    QueueingHints({PROFILE: {"A": [subscription(hint)]}}).judge(info, Occurrence(NODE_ADD, "old", "new"))
    assert seen == [(info.pod, "old", "new")]


def test_a_hint_that_raises_counts_as_queue_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> QueueingHint:
        raise LookupError("no such thing")

    with caplog.at_level(logging.ERROR):
        assert judge({"A": [subscription(broken)]}, refused="A") is Requeue.AFTER_BACKOFF
    assert "queueing hint of A failed on NodeAdd for pod default/pod" in caplog.text
    assert "no such thing" in caplog.text


@pytest.mark.parametrize(
    ("event", "new", "verdict"),
    [
        (UNSCHEDULABLE_TIMEOUT, None, Requeue.AFTER_BACKOFF),
        (FORCE_ACTIVATE, pod(), Requeue.AFTER_BACKOFF),
        (FORCE_ACTIVATE, pod("another"), Requeue.SKIP),
        (FORCE_ACTIVATE, "no pod", Requeue.SKIP),
    ],
)
def test_a_wildcard_is_for_all_or_for_the_pod_that_comes_with_it(
    event: ClusterEvent, new: object | None, verdict: Requeue
) -> None:
    assert judge({"A": []}, refused="A", pending="P", event=event, new=new) is verdict


def test_who_subscribes_to_everything_is_asked_about_everything() -> None:
    everything = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, QUEUE)
    assert judge({"A": [everything]}, refused="A") is Requeue.AFTER_BACKOFF


def pre(*answers: bool) -> list[ClusterEvent]:
    """Subscriptions whose hints would queue every pod, with pre_hints that answer so."""

    def subscription(says: bool) -> ClusterEvent:
        return ClusterEvent(NODE_ADD.resource, NODE_ADD.action, QUEUE, pre_hint=lambda _old, _new: says)

    return [subscription(each) for each in answers]


@pytest.mark.parametrize(
    ("subscriptions", "event", "may_wake"),
    [
        (pre(False), NODE_ADD, False),
        (pre(True), NODE_ADD, True),
        (pre(False, True), NODE_ADD, True),
        ([*pre(False), subscription(SKIP)], NODE_ADD, True),
        (pre(True), NODE_LABEL, False),
        (pre(False), UNSCHEDULABLE_TIMEOUT, True),
    ],
)
def test_an_event_wakes_nobody_where_each_pre_hint_says_so(
    subscriptions: list[ClusterEvent], event: ClusterEvent, may_wake: bool
) -> None:
    hints = QueueingHints({PROFILE: {"A": subscriptions}})
    assert hints.may_wake((PROFILE, "A"), Occurrence(event, None, None)) is may_wake


def test_a_pre_hint_that_raises_counts_as_true_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_old: object, _new: object) -> bool:
        raise RuntimeError("broken")

    event = ClusterEvent(NODE_ADD.resource, NODE_ADD.action, QUEUE, pre_hint=fails)
    with caplog.at_level(logging.ERROR):
        assert QueueingHints({PROFILE: {"A": [event]}}).may_wake((PROFILE, "A"), Occurrence(event, None, 1))
    assert "pre-queueing hint of A failed on NodeAdd" in caplog.text


@pytest.mark.parametrize("answer", [None, 0, "no", SKIP])
def test_a_pre_hint_that_answers_neither_true_nor_false_counts_as_true_and_is_logged(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    event = ClusterEvent(NODE_ADD.resource, NODE_ADD.action, QUEUE, pre_hint=lambda _old, _new: answer)  # type: ignore[arg-type, return-value]
    with caplog.at_level(logging.ERROR):
        assert QueueingHints({PROFILE: {"A": [event]}}).may_wake((PROFILE, "A"), Occurrence(event, None, 1))
    assert "pre_queueing_hint must return True or False, not " in caplog.text


def test_what_is_no_function_is_no_pre_hint() -> None:
    with pytest.raises(TypeError, match="pre_hint: expected a function of \\(old, new\\), found 3"):
        ClusterEvent(NODE_ADD.resource, NODE_ADD.action, pre_hint=3)  # type: ignore[arg-type]
