"""Load on a cluster: pods of many kinds that come and go, preempt one another or fit nowhere, and nodes that change."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import httpx2

_PODS = "/api/v1/namespaces/default/pods"
_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_AT_ONCE = {"gracePeriodSeconds": "0"}


def node(number: int) -> dict[str, Any]:
    amounts = {"cpu": str(4 + number % 3 * 2), "memory": f"{16 + number % 5 * 4}Gi", "pods": "60"}
    labels = {_ZONE: f"z{number % 3}", _HOSTNAME: f"n{number:03}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number:03}", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(number: int, chance: Random) -> dict[str, Any]:
    """Pods of many kinds: some spread, some keep away from one another, some preempt, one in fifty fits nowhere."""
    app = chance.choice(("plain", "plain", "plain", "spread", "apart", "picky", "near"))
    labels = {"app": app}
    selector = {"labelSelector": {"matchLabels": labels}}
    spec: dict[str, Any] = {}
    if app == "spread":
        spread = {"maxSkew": 2, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
        spec["topologySpreadConstraints"] = [spread]
    elif app == "apart":
        apart = {"weight": 50, "podAffinityTerm": {"topologyKey": _HOSTNAME, **selector}}
        spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}}
    elif app == "near":
        near = {"weight": 10, "podAffinityTerm": {"topologyKey": _ZONE, **selector}}
        spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}}
    elif app == "picky":
        spec["nodeSelector"] = {_ZONE: chance.choice(("z0", "z1"))}
    requests = {"cpu": f"{chance.choice((50, 100, 250))}m", "memory": f"{chance.choice((64, 200, 500))}Mi"}
    if number % 50 == 0:
        requests["cpu"] = "64"
    if number % 20 == 1:
        spec["priorityClassName"] = "high"
        requests["cpu"] = "3500m"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number:06}", "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
            **spec,
        },
    }


class Churn:
    """Pods that are made at a rate and live for a while, and a kubelet for all of them."""

    def __init__(
        self, client: Callable[[], httpx2.Client], *, rate: float, nodes: int, life: float, seed: int = 0
    ) -> None:
        """`rate` is in pods a second, `life` is their mean life in seconds."""
        self._client, self._rate, self._nodes, self._life = client, rate, nodes, life
        self._chance = Random(seed)
        self._ended = threading.Event()
        self._ends: list[tuple[float, str]] = []
        self.made = 0

    def set_up(self) -> None:
        """Make the nodes and the priority class."""
        with self._client() as client:
            priority = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 1000,
            }
            client.post("/apis/scheduling.k8s.io/v1/priorityclasses", json=priority)
            for number in range(self._nodes):
                client.post("/api/v1/nodes", json=node(number)).raise_for_status()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run for the time of the block."""
        threads = [
            threading.Thread(target=work, daemon=True) for work in (self._make, self._finish, self._mend)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()

    def _make(self) -> None:
        """Make pods, one by one or, now and then, as a workload does, many at once."""
        begun = time.perf_counter()
        with self._client() as client:
            for number in itertools.count():
                burst = self._chance.choice((1, 1, 1, 1, 10)) if number % 10 == 0 else 1
                for _ in range(burst):
                    made = pod(self.made, self._chance)
                    client.post(_PODS, json=made).raise_for_status()
                    self.made += 1
                    life = self._chance.expovariate(1 / self._life)
                    self._ends.append((time.perf_counter() + max(2.0, life), made["metadata"]["name"]))
                if self._ended.wait(max(0.0, begun + self.made / self._rate - time.perf_counter())):
                    return

    def _finish(self) -> None:
        """Delete pods whose life is over, and those that are being deleted: their grace period is over, too."""
        terminating: set[str] = set()
        with self._client() as client:
            while not self._ended.wait(0.5):
                now = time.perf_counter()
                due = [name for end, name in list(self._ends) if end <= now]
                self._ends = [each for each in self._ends if each[0] > now]
                listed = client.get(_PODS, params={"resourceVersion": "0"}).raise_for_status().json()["items"]
                for each in listed:
                    if each["spec"].get("nodeName") and "startTime" not in each.get("status", {}):
                        self._start(client, each["metadata"]["name"])
                found = {
                    each["metadata"]["name"] for each in listed if "deletionTimestamp" in each["metadata"]
                }
                for name in {*due, *(terminating & found)}:
                    client.delete(f"{_PODS}/{name}", params=_AT_ONCE)
                terminating = found

    def _start(self, client: httpx2.Client, name: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        client.patch(
            f"{_PODS}/{name}/status",
            json={"status": {"phase": "Running", "startTime": now}},
            headers={"content-type": "application/merge-patch+json"},
        )

    def _mend(self) -> None:
        """Take nodes out of service, and put them back."""
        with self._client() as client:
            for number in itertools.cycle(range(self._nodes)):
                for unschedulable in (True, False):
                    if self._ended.wait(4.0):
                        return
                    patch = {"spec": {"unschedulable": unschedulable}}
                    client.patch(
                        f"/api/v1/nodes/n{number:03}",
                        json=patch,
                        headers={"content-type": "application/merge-patch+json"},
                    ).raise_for_status()
