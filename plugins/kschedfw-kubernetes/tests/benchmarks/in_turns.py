"""The cost of `kschedfw run` and of kube-scheduler, in turns over the same nodes and pods, in its folder of tests:
`PYTHONPATH=. python -m benchmarks.in_turns NODES PODS [WORK ...]`.

`KUBEBUILDER_ASSETS` names a folder with etcd, kube-apiserver and kube-scheduler. Without it, `kschedfw run` runs alone
against the API server for tests, in a process of its own. A line is printed for each turn: the scheduler's processor
time from its start until all pods are bound, for a pod in µs; of this, the time of its start; pods per second from the
first creation to the last binding; the most threads and open files; and memory.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import attrs
import httpx2
import msgspec
from cluster.streams import chunks
from kschedfw_apiserver import ApiServer
from kschedfw_apiserver.control_plane import VARIABLE, assets, control_plane
from kschedfw_kubernetes.cluster import Client, connect
from kschedfw_kubernetes.cluster.transport import Stream, TransportLimits
from serve.replicas import free_port

_NODES, _PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_LIMIT: Final = 600.0
"""Seconds after which a turn has failed."""
_LIMITS: Final = TransportLimits(request=_LIMIT, quiet=_LIMIT)
"""On a busy machine answers are late, and the watch of the pods is quiet while a scheduler starts."""
_CREATORS, _TOGETHER = 4, 16
"""Threads that create objects, and the requests that each sends without waiting in between."""


def node(number: int) -> Mapping[str, Any]:
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    labels = {_ZONE: f"z{number % 3}", _HOSTNAME: f"n{number:05}"}
    return {
        "metadata": {"name": f"n{number:05}", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(work: str, number: int) -> Mapping[str, Any]:
    """Alike: scheduler_perf's SchedulingBasic. Differing and backlog: some 8,600 requests. Spreading: over zones."""
    cpu, memory, spec = "100m", "500Mi", {}
    if work in ("differing", "backlog"):
        cpu, memory = f"{50 + number % 97}m", f"{100 + number % 89}Mi"
    elif work == "spreading":
        constraint = {"maxSkew": 5, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        selector = {"labelSelector": {"matchLabels": {"app": work}}}
        spec = {"topologySpreadConstraints": [{**constraint, **selector}]}
    requests = {"resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "metadata": {"name": f"p{number:06}", "labels": {"app": work}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/app:1", **requests}], **spec},
    }


@attrs.frozen
class Turn:
    """Figures of a scheduler's turn. Times of the processor are in seconds."""

    pods: int
    seconds: float
    at_ready: float
    processor: float
    threads: int
    files: int
    memory: int

    def __str__(self) -> str:
        each = 1e6 * self.processor / self.pods
        without_start = 1e6 * (self.processor - self.at_ready) / self.pods
        return (
            f"{self.processor:6.2f} s CPU, {each:6.0f} µs a pod, {without_start:6.0f} without the start of "
            f"{self.at_ready:.2f} s; {self.pods / self.seconds:5.0f} pods/s; "
            f"{self.threads} threads, {self.files} files, {self.memory} MiB"
        )


class Usage:
    """Looks at a process every tenth of a second, from `start` until `stop`."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.threads = self.files = 0

    def __enter__(self) -> Usage:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def processor(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> int:
        status = (self._folder / "status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            with suppress(FileNotFoundError):
                self.threads = max(self.threads, _count(self._folder / "task"))
                self.files = max(self.files, _count(self._folder / "fd"))


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815  The API's name


class _Pod(msgspec.Struct):
    metadata: dict[str, Any]
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Line(msgspec.Struct):
    type: str
    object: _Pod


class Bindings:
    """Watches the pods, and counts those that are bound."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._bound: set[str] = set()
        self._reached = threading.Condition()
        self._stream = self._begun(next(iter(client.pages(_PODS, {}))).resource_version)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wait_for(self, count: int) -> None:
        with self._reached:
            if not self._reached.wait_for(lambda: len(self._bound) >= count, _LIMIT):
                raise TimeoutError(f"{len(self._bound)} of {count} pods are bound after {_LIMIT:g} s")

    def close(self) -> None:
        self._stream.shut_down()

    def _begun(self, version: str) -> Stream:
        query = {"resourceVersion": version, "timeoutSeconds": str(int(_LIMIT))}
        return self._client.watch(_PODS, query)

    def _watch(self) -> None:
        decode = msgspec.json.Decoder(_Line).decode
        with suppress(Exception):  # The stream breaks when it is closed.
            while True:
                rest, version = b"", ""
                for chunk in chunks(self._stream):
                    *complete, rest = (rest + chunk).split(b"\n")
                    pods = [decode(line).object for line in complete]
                    with self._reached:
                        self._bound.update(pod.metadata["name"] for pod in pods if pod.spec.nodeName)
                        self._reached.notify_all()
                    version = pods[-1].metadata["resourceVersion"] if pods else version
                # On a busy machine the server ends a watch that isn't read soon enough.
                self._stream = self._begun(version)


def create(client: Client, path: str, objects: Sequence[Mapping[str, Any]]) -> None:
    def write(part: Sequence[Mapping[str, Any]]) -> None:
        for begin in range(0, len(part), _TOGETHER):
            for error in client.post_all([(path, each) for each in part[begin : begin + _TOGETHER]]):
                if error is not None:
                    raise error

    with ThreadPoolExecutor(_CREATORS) as executor:
        list(executor.map(write, [objects[first::_CREATORS] for first in range(_CREATORS)]))


@contextmanager
def scheduler(name: str, kubeconfig: Path, folder: Path) -> Iterator[Usage]:
    """Start it, and wait until it is ready."""
    port = free_port()
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000},
    }
    file = folder / "configuration.json"
    file.write_bytes(msgspec.json.encode(content))
    program = (
        [sys.executable, "-m", "kschedfw", "run"]
        if name == "kschedfw"
        else [str(Path(os.environ[VARIABLE]) / name)]
    )
    options = [f"--config={file}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen([*program, *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        with Usage(process.pid) as usage:
            # Closed before the measurement: its connection is a file of the scheduler, too.
            with httpx2.Client(verify=False) as client:
                _wait_until(lambda: _is_ready(client, port))
            yield usage
    finally:
        process.terminate()
        process.wait()


def turn(name: str, work: str, count: int, client: Client, kubeconfig: Path, folder: Path) -> Turn:
    pods = [pod(work, number) for number in range(count)]
    bindings = Bindings(client)
    begun = time.perf_counter()
    if work == "backlog":
        create(client, _PODS, pods)
        begun = time.perf_counter()
    with scheduler(name, kubeconfig, folder) as usage:
        at_ready = usage.processor
        if work != "backlog":
            begun = time.perf_counter()
            create(client, _PODS, pods)
        bindings.wait_for(count)
        seconds, processor = time.perf_counter() - begun, usage.processor
        figures = Turn(count, seconds, at_ready, processor, usage.threads, usage.files, usage.memory)
    bindings.close()
    client.write("DELETE", _PODS, query={"gracePeriodSeconds": "0"}, needs_response=False)
    _wait_until(lambda: not next(iter(client.pages(_PODS, {}))).items)
    return figures


@contextmanager
def server(folder: Path) -> Iterator[Path]:
    """Run a server. Yields a kubeconfig of its administrator."""
    if assets() is not None:
        with control_plane(folder) as real:
            yield real.kubeconfig(folder / "kubeconfig")
        return
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(folder / "kubeconfig", theirs), daemon=True)
    process.start()
    ours.recv()
    yield folder / "kubeconfig"
    ours.send(None)
    process.join()


def _serve(kubeconfig: Path, pipe: Connection) -> None:
    with ApiServer() as running:
        running.kubeconfig(kubeconfig)
        pipe.send(None)
        pipe.recv()


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _is_ready(client: httpx2.Client, port: int) -> bool:
    try:
        return client.get(f"https://127.0.0.1:{port}/readyz").status_code == 200
    except httpx2.HTTPError:
        return False


def _wait_until(is_so: Callable[[], bool]) -> None:
    end = time.perf_counter() + _LIMIT
    while not is_so():
        if time.perf_counter() > end:
            raise TimeoutError(f"not after {_LIMIT:g} s")
        time.sleep(0.1)


def main(nodes: int, pods: int, works: Sequence[str]) -> None:
    names = ("kschedfw", "kube-scheduler") if assets() is not None else ("kschedfw",)
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        with server(folder) as kubeconfig, connect(kubeconfig, qps=-1, limits=_LIMITS) as client:
            create(client, _NODES, [node(number) for number in range(nodes)])
            for work in works:
                for name in names:
                    figures = turn(name, work, pods, client, kubeconfig, folder)
                    print(f"{work:9} {nodes} nodes, {pods} pods, {name:14}: {figures}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or ("alike", "differing", "spreading", "backlog"))
