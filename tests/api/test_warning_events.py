"""Warnings of an export's Events are kept, the last one of each object and reason; the rest is passed over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kschedfw.api import Manifests, WarningEvent, parse_manifests

ABOUT = {"kind": "ReplicaSet", "namespace": "shop", "name": "web-6b7f"}
STORED = {"creationTimestamp": "2026-01-01T00:00:00Z"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "pods": "10"}},
}


def event(name: str = "e", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "shop"},
        "involvedObject": ABOUT,
        "type": "Warning",
        "reason": "FailedCreate",
        "message": "no",
        **fields,
    }


def stateful_set(**metadata: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop", **metadata},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": template},
    }


def read(*manifests: dict[str, Any]) -> Manifests:
    return parse_manifests(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))


def test_a_warning_is_kept_and_is_none_of_the_ignored_objects() -> None:
    found = read(event())
    assert found.warning_events == (WarningEvent("ReplicaSet", "shop", "web-6b7f", "FailedCreate", "no"),)
    assert not found.ignored


def test_the_newer_api_group_has_other_names_for_the_same() -> None:
    newer = event(apiVersion="events.k8s.io/v1", note="no", regarding=ABOUT)
    del newer["involvedObject"], newer["message"]
    assert read(newer).warning_events == read(event()).warning_events


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_several_warnings_with_one_reason_the_last_counts(order: tuple[int, int]) -> None:
    events = [
        event("a", message="old", lastTimestamp="2026-06-01T12:00:00Z"),
        event("b", message="new", series={"count": 2, "lastObservedTime": "2026-06-01T13:00:00.000000Z"}),
    ]
    (found,) = read(*(events[number] for number in order)).warning_events
    assert found.message == "new"


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "Normal"},
        {"involvedObject": None},
        {"involvedObject": "web"},
        {"message": ""},
        {"reason": 5},
        {"involvedObject": {"kind": "Pod"}},
    ],
)
def test_other_events_are_ignored_without_a_problem(fields: dict[str, Any]) -> None:
    found = read(event(**fields))
    assert (found.warning_events, found.problems, dict(found.ignored)) == ((), (), {"Event": 1})


def test_a_message_has_no_control_characters_and_is_no_longer_than_the_api_allows() -> None:
    (found,) = read(event(message="\x1b[31m" + "x" * 5000)).warning_events
    assert "\x1b" not in found.message
    assert len(found.message) < 1100


def test_pods_that_a_controller_could_not_create_are_refused_for_its_reason() -> None:
    about = {"kind": "StatefulSet", "namespace": "shop", "name": "db"}
    found = read(NODE, stateful_set(**STORED), event(involvedObject=about))
    assert found.pods == ()
    assert [(each.pod, each.reason) for each in found.admission.refused] == [
        (f"shop/db-{number}", "no") for number in range(3)
    ]


def test_warnings_about_other_objects_or_for_other_reasons_refuse_nothing() -> None:
    other = event("a", involvedObject={"kind": "StatefulSet", "namespace": "test", "name": "db"})
    mount = event(
        "b", involvedObject={"kind": "StatefulSet", "namespace": "shop", "name": "db"}, reason="Odd"
    )
    assert len(read(NODE, stateful_set(**STORED), other, mount).pods) == 3
