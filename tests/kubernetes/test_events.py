"""Events reach the server in the background, and the same ones as series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kschedfw.api import pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.kubernetes import Client
from kschedfw.kubernetes.events import EventRecorder
from kschedfw.testing.api_server import ApiServer
from tests.kubernetes.waiting import eventually

EVENTS = "/apis/events.k8s.io/v1/events"


@pytest.fixture
def pod(server: ApiServer) -> Pod:
    spec = {"schedulerName": "mine", "containers": [{"name": "c", "image": "i"}]}
    return server.cluster.add(pod_from_manifest({"metadata": {"name": "a"}, "spec": spec}))


def recorded(client: Client) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get(EVENTS)["items"]
    return items


def test_an_event_says_who_did_what_to_what(
    client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    recorder.record(pod, "Normal", "Scheduled", "Successfully assigned default/a to n")
    recorder.close(10)
    (event,) = recorded(client)
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "Scheduled", "Binding")
    assert event["note"] == "Successfully assigned default/a to n"
    assert event["reportingController"] == "mine"
    assert event["reportingInstance"].startswith("mine-")
    regarding = event["regarding"]
    assert (regarding["kind"], regarding["namespace"], regarding["name"], regarding["uid"]) == (
        "Pod",
        "default",
        "a",
        pod.uid,
    )


def test_the_same_event_again_is_counted(client: Client, connected: Callable[..., Client], pod: Pod) -> None:
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    eventually(lambda: recorded(client))
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    eventually(lambda: recorded(client)[0].get("series", {}).get("count") == 2)
    for _ in range(5):
        recorder.record(pod, "Warning", "FailedScheduling", "no")
    recorder.record(pod, "Warning", "FailedScheduling", "another reason")
    recorder.close(10)
    by_note = {event["note"]: event for event in recorded(client)}
    assert by_note["no"]["series"]["count"] == 7
    assert "series" not in by_note["another reason"] or by_note["another reason"]["series"] is None


def test_what_the_server_refuses_is_dropped_and_never_raised(
    server: ApiServer, connected: Callable[..., Client], pod: Pod, caplog: pytest.LogCaptureFixture
) -> None:
    server.stop()
    recorder = EventRecorder(connected(), connected().clock)
    recorder.start()
    for number in range(200):
        recorder.record(pod, "Normal", "Scheduled", f"note {number}")
    recorder.close(0.2)
    assert "events were not sent" in caplog.text or "an event is dropped" in caplog.text


def test_an_event_whose_answer_got_lost_is_there_once(
    server: ApiServer, client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    server.faults.lost, server.faults.only = 0.5, lambda method, _path: method == "POST"
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    for number in range(10):
        recorder.record(pod, "Normal", "Scheduled", f"note {number}")
    recorder.close(10)
    assert sorted(event["note"] for event in recorded(client)) == sorted(f"note {n}" for n in range(10))
