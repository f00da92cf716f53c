"""What a recorder costs: `python recording_cost.py [PODS [CHANGES_PER_SECOND [SECONDS]]]`.

The cluster is an API server for tests in another process, in which pods are created, bound, started and deleted.
Printed are the recorder's CPU time as a share of one core, its memory, and the size of what it writes.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import attrs
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes import Anonymizer, KubernetesCluster, connect
from kschedfw_replay import RecordingWriter, open_recording
from kschedfw_replay.recording.recorder import RECORDED_KINDS, Fields, Recorder

from kschedfw import InMemoryCluster, Pod, SystemClock, make_node
from kschedfw.api import PodPhase, pod_from_manifest

_STEP_SECONDS = 0.5


def pod(name: str, node: str = "") -> Pod:
    return pod_from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "shop",
                "labels": {"app": "web", "pod-template-hash": "7f9c8d", "tier": "front"},
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": "web-7f9c8d",
                        "uid": "a",
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "nodeName": node,
                "containers": [
                    {
                        "name": container,
                        "image": f"registry.example/{container}:1.2",
                        "ports": [{"containerPort": 8080}],
                        "resources": {
                            "requests": {"cpu": "250m", "memory": "512Mi"},
                            "limits": {"memory": "1Gi"},
                        },
                    }
                    for container in ("web", "proxy")
                ],
                "tolerations": [
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
                ],
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": {"app": "web"}},
                    }
                ],
            },
            "status": {"phase": "Running" if node else "Pending"},
        }
    )


def serve(pods: int, rate: float, kubeconfig: Path, pipe: Connection) -> None:
    """Serve a cluster of so many pods; change it at this rate once the pipe says so, until it ends."""
    nodes = [f"node-{number}" for number in range(max(pods // 30, 1))]
    random = Random(1)
    cluster = InMemoryCluster([make_node(name).build() for name in nodes])
    for number in range(pods):
        cluster.add(pod(f"pod-{number}", random.choice(nodes)))
    with ApiServer(cluster) as server:
        server.kubeconfig(kubeconfig)
        pipe.send(None)
        pipe.recv()
        begun, changes = time.perf_counter(), 0
        while not pipe.poll():
            number = changes // 4
            match changes % 4:
                case 0:
                    cluster.add(pod(f"new-{number}"))
                case 1:
                    cluster.bind(_present(cluster, f"new-{number}"), random.choice(nodes))
                case 2:
                    started = _present(cluster, f"new-{number}")
                    cluster.update(started.with_status(attrs.evolve(started.status, phase=PodPhase.RUNNING)))
                case _:
                    cluster.delete(_present(cluster, f"new-{number}"))
            changes += 1
            time.sleep(max(0.0, begun + changes / rate - time.perf_counter()))
        pipe.send(changes)


def _present(cluster: InMemoryCluster, name: str) -> Pod:
    found = cluster.get(Pod, f"shop/{name}")
    assert found is not None
    return found


def measure(pods: int, rate: float, seconds: float, *, anonymize: bool) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig, out = Path(folder, "kubeconfig"), Path(folder, "recording")
        server = context.Process(target=serve, args=(pods, rate, kubeconfig, there))
        server.start()
        here.recv()
        fields = Fields(anonymizer=Anonymizer(b"secret") if anonymize else None)
        with (
            connect(kubeconfig, qps=-1) as client,
            RecordingWriter(out) as writer,
            KubernetesCluster(client, RECORDED_KINDS) as cluster,
        ):
            recorder = Recorder(cluster, writer, SystemClock(), fields)
            begun = time.process_time()
            recorder.begin(600)
            print(f"{pods:,} pods, {'with' if anonymize else 'without'} pseudonyms")
            print(
                f"  state: {time.process_time() - begun:.1f} s of CPU time, {writer.written / 2**20:.1f} MiB"
            )
            here.send(None)
            time.sleep(1)
            recorder.step()
            before, first, size = time.process_time(), recorder.changes, writer.written
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                time.sleep(_STEP_SECONDS)
                recorder.step()
            busy, changes = time.process_time() - before, recorder.changes - first
            print(f"  {changes / seconds:.0f} changes/s: {busy / seconds:.1%} of one core")
            print(f"  {(writer.written - size) / max(changes, 1):.0f} bytes a change")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(f"  {peak:,.0f} MiB of memory at most")
        here.send(None)
        here.recv()
        server.join()
        begun = time.process_time()
        count = sum(1 for _ in open_recording(out))
        print(f"  read again: {count} records in {time.process_time() - begun:.1f} s")


def main() -> None:
    defaults = (50_000.0, 100.0, 60.0)
    given = tuple(map(float, sys.argv[1:]))
    pods, rate, seconds = (*given, *defaults[len(given) :])
    for anonymize in (False, True):
        measure(int(pods), rate, seconds, anonymize=anonymize)


if __name__ == "__main__":
    main()
