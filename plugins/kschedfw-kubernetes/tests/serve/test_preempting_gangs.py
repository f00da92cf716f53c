"""Gangs that preempt are bound soon, on a real server: victims go at once, or terminate first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from kschedfw_apiserver.control_plane import control_plane
from serve.beside import (
    PODGROUPS,
    PODS,
    SERVED,
    RunningScheduler,
    kschedfw,
    kube_scheduler,
    needs_kube_scheduler,
    node,
)

_GANGS: Final = 50
_MEMBERS: Final = 2
_LONGEST: Final = 60.0
"""Seconds after which a gang counts as forgotten; members that stay gated are flushed after 300."""
_CLASSES: Final = {"low": 0, "high": 100}

pytestmark = needs_kube_scheduler


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def victim(number: int, *, seconds: int) -> dict[str, Any]:
    """A pod that takes most of a node."""
    where = {"nodeName": f"n{number}", "priorityClassName": "low"}
    return pod(f"low-{number}", "1500m", terminationGracePeriodSeconds=seconds, **where)


def gang(number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A gang, each of whose members needs a node for itself."""
    name = f"gang{number:02}"
    spec = {"schedulingPolicy": {"gang": {"minCount": _MEMBERS}}, "priorityClassName": "high"}
    members = [
        pod(f"{name}-{index}", "1800m", schedulingGroup={"podGroupName": name}, priorityClassName="high")
        for index in range(_MEMBERS)
    ]
    return {"metadata": {"name": name}, "spec": spec}, members


def seconds_to_bind(client: httpx2.Client, number: int) -> float:
    """Create a gang, and act as the kubelet for victims that terminate. Return how long its binding takes."""
    made, members = gang(number)
    client.post(PODGROUPS, json=made).raise_for_status()
    began = time.perf_counter()
    for each in members:
        client.post(PODS, json=each).raise_for_status()
    while (took := time.perf_counter() - began) < _LONGEST:
        pods = client.get(PODS).raise_for_status().json()["items"]
        for each in pods:
            if "deletionTimestamp" in each["metadata"]:
                path = f"{PODS}/{each['metadata']['name']}"
                client.delete(path, params={"gracePeriodSeconds": 0})  # it may be gone by now
        bound = [each for each in pods if "nodeName" in each["spec"]]
        if sum(each["metadata"]["name"].startswith(f"gang{number:02}-") for each in bound) == _MEMBERS:
            return took
        time.sleep(0.02)
    return took


def times(scheduler: RunningScheduler, folder: Path, *, seconds: int) -> Iterator[float]:
    """The time that each of the gangs takes, which come one after the other to full nodes."""
    folder.mkdir()
    with control_plane(folder, flags=SERVED) as server, server.client() as client:
        for name, value in _CLASSES.items():
            made = {"metadata": {"name": name}, "value": value}
            client.post("/apis/scheduling.k8s.io/v1/priorityclasses", json=made).raise_for_status()
        for number in range(_GANGS * _MEMBERS):
            client.post("/api/v1/nodes", json=node(f"n{number}", {}, cpu="2")).raise_for_status()
            client.post(PODS, json=victim(number, seconds=seconds)).raise_for_status()
        with scheduler(server, folder):
            # Its start doesn't count: it has started once this pod, which fits beside any victim, has a node.
            client.post(PODS, json=pod("first", "1m")).raise_for_status()
            while "nodeName" not in client.get(f"{PODS}/first").raise_for_status().json()["spec"]:
                time.sleep(0.05)
            for number in range(_GANGS):
                yield seconds_to_bind(client, number)


@pytest.mark.parametrize("seconds", [0, 30], ids=["at-once", "gracefully"])
def test_fifty_preempting_gangs_are_bound_as_soon_as_kube_scheduler_binds_them(
    tmp_path: Path, seconds: int
) -> None:
    theirs = sorted(times(kube_scheduler, tmp_path / "theirs", seconds=seconds))
    ours = sorted(times(kschedfw, tmp_path / "ours", seconds=seconds))
    told = [f"{each[0]:.2f} {each[len(each) // 2]:.2f} {each[-1]:.2f}" for each in (theirs, ours)]
    assert ours[-1] < _LONGEST, f"seconds to the binding (least, median, most), there and here: {told}"
