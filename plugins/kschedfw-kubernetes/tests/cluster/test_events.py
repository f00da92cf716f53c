"""Events reach the server in the background, and the same ones as series."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from cluster.raw_server import reply, serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import Client, connect
from kschedfw_kubernetes.cluster.events import EventRecorder

from kschedfw import make_pod
from kschedfw.api import pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.properties import examples
from kschedfw.testing.waiting import PATIENCE, eventually

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


def test_an_event_of_a_victim_says_who_preempted_it_and_those_of_others_are_events_of_their_own(
    server: ApiServer, client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    preemptors = [server.cluster.add(make_pod(name).build()) for name in ("b", "c")]
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    for preemptor in preemptors:
        recorder.record(pod, "Normal", "Preempted", f"by {preemptor.name}", preemptor)
    recorder.close(10)
    events = recorded(client)
    assert {each["action"] for each in events} == {"Preempting"}
    assert {(each["related"]["kind"], each["related"]["uid"], each["note"]) for each in events} == {
        ("Pod", preemptor.uid, f"by {preemptor.name}") for preemptor in preemptors
    }
    assert {each["regarding"]["uid"] for each in events} == {pod.uid}


def test_a_pod_that_waits_for_its_devices_is_being_scheduled(
    client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    recorder.record(pod, "Normal", "BindingConditionsPending", "waiting")
    recorder.close(10)
    assert [each["action"] for each in recorded(client)] == ["Scheduling"]


def test_the_same_event_again_is_counted(client: Client, connected: Callable[..., Client], pod: Pod) -> None:
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    eventually(lambda: recorded(client))
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    eventually(lambda: recorded(client)[0].get("series", {}).get("count") == 2)
    for _ in range(5):
        recorder.record(pod, "Warning", "FailedScheduling", "no")
    recorder.close(10)
    (event,) = recorded(client)
    assert event["series"]["count"] == 7


def test_what_is_recorded_while_the_series_is_being_sent_is_counted_at_the_end(
    server: ApiServer, client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    eventually(lambda: recorded(client))
    # The answer comes late, after the count has been written.
    server.faults.slow, server.faults.seconds = 1.0, 1.0
    server.faults.only = lambda method, _path: method == "PATCH"
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    eventually(lambda: recorded(client)[0].get("series", {}).get("count") == 2)
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    recorder.close(30)
    assert recorded(client)[0]["series"]["count"] == 3


Record = tuple[int, str, str, str]
"""The pod's resource version, and the event's type, reason and note."""
RECORDS = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["Normal", "Warning"]),
        st.sampled_from(["FailedScheduling", "Scheduled", "Licensed"]),
        st.sampled_from(["no", "not yet"]),
    ),
    max_size=12,
)


@settings(
    max_examples=examples(15),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(records=RECORDS)
def test_events_of_one_type_and_reason_about_one_state_of_an_object_are_a_series_whatever_their_notes(
    client: Client, connected: Callable[..., Client], pod: Pod, records: list[Record]
) -> None:
    """As client-go's recorder keys them: by the reference to the object, which has its resource version."""
    for event in recorded(client):
        client.write(
            "DELETE", f"/apis/events.k8s.io/v1/namespaces/default/events/{event['metadata']['name']}"
        )
    expected: dict[tuple[str, str, str], tuple[str, int]] = {}
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    for version, type, reason, note in records:
        metadata = attrs.evolve(pod.metadata, resource_version=str(version))
        recorder.record(pod.with_metadata(metadata), type, reason, note)
        first, count = expected.get((str(version), type, reason), (note, 0))
        expected[str(version), type, reason] = first, count + 1
    recorder.close(10)
    assert {
        (event["regarding"]["resourceVersion"], event["type"], event["reason"]): (
            event["note"],
            (event.get("series") or {"count": 1})["count"],
        )
        for event in recorded(client)
    } == expected


def test_the_count_of_a_series_is_told_when_it_has_ended_although_nothing_is_recorded_any_more(
    client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    clock = FakeClock()
    recorder = EventRecorder(connected(), clock)
    recorder.start()
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    clock.advance(1)  # new events wait for others
    eventually(lambda: recorded(client))
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    eventually(lambda: recorded(client)[0].get("series", {}).get("count") == 2)
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    clock.advance(361)
    eventually(lambda: recorded(client)[0]["series"]["count"] == 3)
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    clock.advance(1)
    recorder.close(10)
    assert len(recorded(client)) == 2


def test_the_count_of_a_series_that_ends_while_an_earlier_count_is_sent_is_told(
    client: Client, connected: Callable[..., Client], pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told, goes_on = FakeClock(), threading.Event(), threading.Event()
    sender = connected()
    write = sender.write

    def slow(*arguments: Any, **options: Any) -> object:
        answer = write(*arguments, **options)
        told.set()
        assert goes_on.wait(PATIENCE)
        return answer

    recorder = EventRecorder(sender, clock)
    recorder.start()
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    clock.advance(1)
    eventually(lambda: recorded(client))
    monkeypatch.setattr(sender, "write", slow)
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    assert told.wait(PATIENCE)
    recorder.record(pod, "Warning", "FailedScheduling", "no")
    clock.advance(361)
    eventually(lambda: not recorder._told)  # another sender has seen the end
    goes_on.set()
    eventually(lambda: any(event.get("series", {}).get("count") == 3 for event in recorded(client)))
    recorder.close(10)


def test_an_event_about_an_object_with_a_long_name_gets_a_name_of_its_own(
    client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    metadata = attrs.evolve(pod.metadata, name="a" * 253)
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    recorder.record(pod.with_metadata(metadata), "Normal", "Scheduled", "there")
    recorder.close(10)
    (event,) = recorded(client)
    assert len(event["metadata"]["name"]) == 36


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
        recorder.record(of_version(pod, number), "Normal", "Scheduled", f"note {number}")
    recorder.close(30)
    assert sorted(event["note"] for event in recorded(client)) == sorted(f"note {n}" for n in range(10))


def of_version(pod: Pod, number: int) -> Pod:
    return pod.with_metadata(attrs.evolve(pod.metadata, resource_version=str(number)))


def test_throttled_events_dont_hold_up_others(
    server: ApiServer, client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    held = pod.with_metadata(attrs.evolve(pod.metadata, namespace="kube-system"))
    asked: list[str] = []
    # Far longer than is waited below, so that nobody who waits for these has time for others.
    server.faults.throttled, server.faults.retry_after = 1.0, 300
    server.faults.only = lambda _method, path: "kube-system" in path and not asked.append(path)  # type: ignore[func-returns-value]
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    for number in range(50):
        recorder.record(of_version(held, number), "Normal", "Scheduled", "there")
    eventually(lambda: len(asked) == 50)
    recorder.record(pod, "Normal", "Scheduled", "there")
    eventually(lambda: [each for each in recorded(client) if each["metadata"]["namespace"] == "default"])
    recorder.close(0)


def test_events_that_wait_for_an_answer_dont_hold_up_others(client: Client, pod: Pod) -> None:
    with (
        serving(lambda _connection, _head: None) as raw,
        connect(master=f"http://127.0.0.1:{raw.port}", qps=-1) as other,
    ):
        recorder = EventRecorder(other, client.clock)
        recorder.start()
        for number in range(200):
            recorder.record(of_version(pod, number), "Normal", "Scheduled", "there")
        eventually(lambda: len(raw.requests) == 200)
        recorder.close(0)


def test_events_that_are_recorded_together_are_sent_over_one_connection_without_waiting_in_between(
    client: Client, pod: Pod
) -> None:
    with (
        serving(lambda _connection, _head: None) as raw,
        connect(master=f"http://127.0.0.1:{raw.port}", qps=-1) as other,
    ):
        recorder = EventRecorder(other, client.clock)
        for number in range(20):
            recorder.record(of_version(pod, number), "Normal", "Scheduled", "there")
        recorder.start()
        # The server answers none of them.
        eventually(lambda: len(raw.requests) == 20)
        assert raw.connections == 1
        recorder.close(0)


def test_senders_that_are_idle_for_a_moment_send_the_next_events(client: Client, pod: Pod) -> None:
    # Senders of other tests may still wait for answers.
    others = set(threading.enumerate())
    senders: set[threading.Thread] = set()
    held = threading.Event()

    def answer(connection: socket.socket, _head: bytes) -> None:
        senders.update(each for each in {*threading.enumerate()} - others if each.name == "events")
        held.wait()
        connection.sendall(reply(status="201 Created"))

    with (
        serving(answer) as raw,
        connect(master=f"http://127.0.0.1:{raw.port}", qps=-1) as other,
    ):
        recorder = EventRecorder(other, client.clock)
        recorder.start()
        for number in range(6):
            if number % 3 == 0:
                held.clear()
            recorder.record(of_version(pod, number), "Normal", "Scheduled", "there")
            eventually(lambda: len(raw.requests) == number + 1)  # noqa: B023 - it is called in this turn only
            if number % 3 == 2:
                held.set()
        recorder.close(10)
    # Three that wait for answers, and one that waits for events.
    assert len(senders) == 4


@pytest.mark.slow
@settings(
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_events_sent_together_are_there_once_whatever_becomes_of_single_answers(
    server: ApiServer, client: Client, connected: Callable[..., Client], pod: Pod, data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, 40))
    fates = data.draw(st.lists(st.sampled_from(["", "lost", "throttled", "failed_before"]), max_size=30))
    for event in recorded(client):
        client.write(
            "DELETE", f"/apis/events.k8s.io/v1/namespaces/default/events/{event['metadata']['name']}"
        )
    faults, asked = server.faults, iter(fates)

    def meets(method: str, _path: str) -> bool:
        """Let the next request meet its fate."""
        fate = next(asked, "") if method == "POST" else ""
        faults.lost = faults.throttled = faults.failed_before = 0.0
        if fate:
            setattr(faults, fate, 1.0)
        return bool(fate)

    faults.retry_after, faults.only = 0, meets
    recorder = EventRecorder(connected(), client.clock)
    for each in range(number):
        recorder.record(of_version(pod, each), "Normal", "Scheduled", f"note {each}")
    recorder.start()
    recorder.close(60)
    faults.only = lambda _method, _path: False
    assert sorted(event["note"] for event in recorded(client)) == sorted(f"note {n}" for n in range(number))


def test_events_beyond_the_rate_wait_for_their_turn(
    client: Client, connected: Callable[..., Client], pod: Pod
) -> None:
    recorder = EventRecorder(connected(qps=50.0, burst=5), client.clock)
    for number in range(20):
        recorder.record(of_version(pod, number), "Normal", "Scheduled", "there")
    began = client.clock.monotonic()
    recorder.start()
    eventually(lambda: len(recorded(client)) == 20)
    assert client.clock.monotonic() - began > 0.2  # the last 15 of them at 50 in a second
    recorder.close(10)


def test_an_event_is_sent_while_the_answer_to_another_is_awaited(client: Client, pod: Pod) -> None:
    with (
        serving(lambda _connection, _head: None) as raw,
        connect(master=f"http://127.0.0.1:{raw.port}", qps=-1) as other,
    ):
        recorder = EventRecorder(other, client.clock)
        recorder.start()
        for number in range(3):
            recorder.record(of_version(pod, number), "Normal", "Scheduled", "there")
            eventually(lambda: len(raw.requests) == number + 1)  # noqa: B023 - it is called in this turn only
        recorder.close(0)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["throttled", "failed_before"])
def test_an_event_that_a_server_takes_at_the_sixth_try_is_sent_before_the_end(
    server: ApiServer, client: Client, connected: Callable[..., Client], pod: Pod, fault: str
) -> None:
    tries: list[str] = []
    setattr(server.faults, fault, 1.0)
    server.faults.retry_after = 0
    server.faults.only = lambda method, path: method == "POST" and (tries.append(path), len(tries) < 6)[1]  # type: ignore[func-returns-value]
    recorder = EventRecorder(connected(), client.clock)
    recorder.start()
    recorder.record(pod, "Normal", "Scheduled", "there")
    recorder.close(60)
    assert (len(tries), len(recorded(client))) == (6, 1)
