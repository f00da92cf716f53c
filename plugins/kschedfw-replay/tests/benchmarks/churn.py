"""Load on a cluster: pods of many kinds that come and go, preempt one another or fit nowhere, and nodes that change.

Some pods have a volume, and some a device. Nodes are cordoned, and every third one is drained.
"""

from __future__ import annotations

import heapq
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import httpx2

_CORE, _POLICY = "/api/v1/namespaces/default", "/apis/policy/v1/namespaces/default"
_STORAGE, _DEVICES = "/apis/storage.k8s.io/v1", "/apis/resource.k8s.io/v1"
_PODS = f"{_CORE}/pods"
_DRIVER, _DEVICES_PER_NODE = "gpu.example.com", 4
_AHEAD = 40
"""A pod's volume is there by so many pods earlier: it can't be bound before a controller calls it available."""
_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_AT_ONCE = {"gracePeriodSeconds": "0"}
_FINISHERS = 4
"""Threads that delete pods: one alone falls behind where the API server takes 10 ms for a request."""


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
    if _has_volume(number):
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"p{number:06}"}}]
    elif _has_device(number):
        spec["resourceClaims"] = [{"name": "d", "resourceClaimName": f"p{number:06}"}]
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


def _has_volume(number: int) -> bool:
    return number % 10 == 3


def _has_device(number: int) -> bool:
    return number % 10 == 7


def device_slice(number: int) -> dict[str, Any]:
    """A node's devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"n{number:03}"},
        "spec": {
            "driver": _DRIVER,
            "nodeName": f"n{number:03}",
            "pool": {"name": f"n{number:03}", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{each}"} for each in range(_DEVICES_PER_NODE)],
        },
    }


def volume(name: str, zone: str) -> dict[str, Any]:
    """A volume that the nodes of a zone reach."""
    terms = [{"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "local",
            "local": {"path": f"/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


def volume_claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def device_claim(name: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
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
        self._lock = threading.Lock()
        self._ends: list[tuple[float, str]] = []
        self.made = 0

    def set_up(self) -> None:
        """Make the nodes with their devices, the classes, and a budget against evictions."""
        with self._client() as client:
            priority = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 1000,
            }
            storage = {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "local"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
            devices = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu"},
                "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{_DRIVER}'"}}]},
            }
            budget = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "apart"},
                "spec": {"minAvailable": 20, "selector": {"matchLabels": {"app": "apart"}}},
            }
            for path, made in (
                ("/apis/scheduling.k8s.io/v1/priorityclasses", priority),
                (f"{_STORAGE}/storageclasses", storage),
                (f"{_DEVICES}/deviceclasses", devices),
                (f"{_POLICY}/poddisruptionbudgets", budget),
            ):
                client.post(path, json=made).raise_for_status()
            for number in range(_AHEAD):
                self._make_volume(client, number)
            for number in range(self._nodes):
                client.post("/api/v1/nodes", json=node(number)).raise_for_status()
                client.post(f"{_DEVICES}/resourceslices", json=device_slice(number)).raise_for_status()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run for the time of the block."""
        threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._make, *[self._finish] * _FINISHERS, self._run_pods, self._mend)
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
                    self._make_claims(client, made)
                    client.post(_PODS, json=made).raise_for_status()
                    self.made += 1
                    life = self._chance.expovariate(1 / self._life)
                    with self._lock:
                        end = time.perf_counter() + max(2.0, life)
                        heapq.heappush(self._ends, (end, made["metadata"]["name"]))
                if self._ended.wait(max(0.0, begun + self.made / self._rate - time.perf_counter())):
                    return

    def _make_claims(self, client: httpx2.Client, made: dict[str, Any]) -> None:
        name = made["metadata"]["name"]
        self._make_volume(client, self.made + _AHEAD)
        if "volumes" in made["spec"]:
            client.post(f"{_CORE}/persistentvolumeclaims", json=volume_claim(name)).raise_for_status()
        if "resourceClaims" in made["spec"]:
            path = f"{_DEVICES}/namespaces/default/resourceclaims"
            client.post(path, json=device_claim(name)).raise_for_status()

    def _make_volume(self, client: httpx2.Client, number: int) -> None:
        if _has_volume(number):
            made = volume(f"p{number:06}", f"z{self._chance.randrange(3)}")
            client.post("/api/v1/persistentvolumes", json=made).raise_for_status()

    def _finish(self) -> None:
        """Delete pods whose life is over, with their claims and volumes."""
        with self._client() as client:
            while not self._ended.wait(0.1):
                while not self._ended.is_set() and (name := self._next_end()) is not None:
                    client.delete(f"{_PODS}/{name}", params=_AT_ONCE)
                    number = int(name.removeprefix("p"))
                    if _has_volume(number):
                        client.delete(f"{_CORE}/persistentvolumeclaims/{name}")
                        client.delete(f"/api/v1/persistentvolumes/{name}")
                    elif _has_device(number):
                        client.delete(f"{_DEVICES}/namespaces/default/resourceclaims/{name}")

    def _next_end(self) -> str | None:
        """The name of a pod whose life is over; None if there is none."""
        with self._lock:
            if self._ends and self._ends[0][0] <= time.perf_counter():
                return heapq.heappop(self._ends)[1]
        return None

    @property
    def left(self) -> int:
        """The number of pods that haven't been deleted at the end of their life; some of them were preempted."""
        return len(self._ends)

    def _run_pods(self) -> None:
        """Start pods that are bound, and end those that are being deleted at once, as soon as a watch tells of them."""
        started: set[str] = set()
        with self._client() as client, self._client() as writer:
            while not self._ended.is_set():
                with client.stream("GET", _PODS, params={"watch": "true", "timeoutSeconds": "300"}) as told:
                    for line in told.iter_lines():
                        if self._ended.is_set():
                            return
                        event = json.loads(line)
                        found = event["object"]
                        name = found["metadata"]["name"]
                        if event["type"] == "DELETED":
                            started.discard(name)
                        elif "deletionTimestamp" in found["metadata"]:
                            writer.delete(f"{_PODS}/{name}", params=_AT_ONCE)
                        elif found["spec"].get("nodeName") and name not in started:
                            started.add(name)
                            self._start(writer, name)

    def _start(self, client: httpx2.Client, name: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        client.patch(
            f"{_PODS}/{name}/status",
            json={
                "status": {
                    "phase": "Running",
                    "startTime": now,
                    "conditions": [{"type": "Ready", "status": "True"}],
                }
            },
            headers={"content-type": "application/strategic-merge-patch+json"},
        )

    def _mend(self) -> None:
        """Take nodes out of service, evict the pods of every third one, and put them back."""
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
                    if unschedulable and number % 3 == 0:
                        self._drain(client, f"n{number:03}")

    def _drain(self, client: httpx2.Client, name: str) -> None:
        """Ask once for the eviction of each pod; a budget may refuse it."""
        there = client.get(_PODS, params={"fieldSelector": f"spec.nodeName={name}"}).raise_for_status().json()
        for each in there["items"]:
            evicted = each["metadata"]["name"]
            client.post(
                f"{_PODS}/{evicted}/eviction",
                json={"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": evicted}},
            )
