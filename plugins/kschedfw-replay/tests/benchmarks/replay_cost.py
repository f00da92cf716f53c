"""What a replay costs: `python replay_cost.py [--distinct] [PODS [NODES [CONFIG]]]`.

The recording is generated: pods arrive one after the other, are bound a second later by a rule that takes no time (the
next node of a round that has room), and run so long that three quarters of the cluster are used. Printed are, for the
pass over the recording and for a replay, the CPU time for each pod, and the memory of the process.

With `--distinct`, each pod is a Job's with labels and an owner that no other pod has, and every 500 pods a node is
replaced by one with a new name: whatever is remembered of pods, labels or nodes that are gone shows in the memory.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import resource
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from kschedfw_replay import (
    ChangeType,
    Record,
    RecordedChange,
    RecordingWriter,
    State,
    open_recording,
    replay_recording,
)

from kschedfw import VirtualClock, make_node
from kschedfw.api import to_manifest
from kschedfw.cli import candidates_of

_CPU, _PODS_OF_NODE, _USED = 32, 110, 0.75
_SHAPES: Final = ((500, 1), (1000, 2), (2000, 4), (4000, 16))
"""Milli-CPUs and GiB of the pods; each has as many as the others."""
_ARRIVALS_A_SECOND: Final = 20.0
_PODS_OF_A_NODE_LIFE: Final = 500
"""With distinct nodes, the number of pods that arrive until the next node is replaced."""


def history(pods: int, nodes: int, seed: int = 0, *, distinct: bool = False) -> Iterator[Record]:
    """Yield a state with the nodes, then the pods' changes; their number at a time doesn't depend on `pods`."""
    random = Random(seed)
    names = [f"n{index}" for index in range(nodes)]
    yield State(0.0, tuple(_node(name, index) for index, name in enumerate(names)))
    free = [1000 * _CPU] * nodes
    rounds = itertools.cycle(range(nodes))
    mean = sum(cpu for cpu, _ in _SHAPES) / len(_SHAPES)
    stay = _USED * nodes * 1000 * _CPU / mean / _ARRIVALS_A_SECOND
    ends: list[tuple[float, int, int, dict[str, Any]]] = []
    coming: deque[tuple[float, dict[str, Any]]] = deque()
    for number in range(pods):
        at = number / _ARRIVALS_A_SECOND
        while True:
            bound_at = coming[0][0] + 1.0 if coming else at
            ended_at = ends[0][0] if ends else at
            if min(bound_at, ended_at) >= at:
                break
            if ended_at <= bound_at:
                _, _, node, pod = heapq.heappop(ends)
                free[node] += pod["metadata"]["cpu"]
                yield RecordedChange(ended_at, ChangeType.DELETED, _without_cpu(pod))
                continue
            _, pod = coming.popleft()
            node = next(node for node in rounds if free[node] >= pod["metadata"]["cpu"])
            free[node] -= pod["metadata"]["cpu"]
            pod = {**pod, "spec": {**pod["spec"], "nodeName": names[node]}}
            heapq.heappush(ends, (bound_at + random.uniform(0.5, 1.5) * stay, number, node, pod))
            yield RecordedChange(bound_at, ChangeType.MODIFIED, _without_cpu(pod))
        if distinct and number % _PODS_OF_A_NODE_LIFE == _PODS_OF_A_NODE_LIFE - 1:
            index = number // _PODS_OF_A_NODE_LIFE % nodes
            yield from (
                RecordedChange(at, ChangeType.DELETED, _without_cpu(end[3]))
                for end in ends
                if end[2] == index
            )
            ends = [end for end in ends if end[2] != index]
            heapq.heapify(ends)
            free[index] = 1000 * _CPU
            yield RecordedChange(at, ChangeType.DELETED, _node(names[index], index))
            names[index] = f"n{index}-{number}"
            yield RecordedChange(at, ChangeType.ADDED, _node(names[index], index))
        pod = _pod(number, *random.choice(_SHAPES), distinct=distinct)
        coming.append((at, pod))
        yield RecordedChange(at, ChangeType.ADDED, _without_cpu(pod))


def _node(name: str, index: int) -> dict[str, Any]:
    builder = make_node(name).capacity(cpu=_CPU, memory="128Gi", pods=_PODS_OF_NODE)
    return to_manifest(builder.labels({"topology.kubernetes.io/zone": f"z{index % 3}"}).build())


def _pod(number: int, cpu: int, memory: int, *, distinct: bool) -> dict[str, Any]:
    app = f"app-{number % 50}"
    job = f"job-{number}"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"j{number}", "controller": True}
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{number}",
            "namespace": "shop",
            "uid": f"u{number}",
            "labels": {"app": app, "job-name": job} if distinct else {"app": app},
            "ownerReferences": [owner] if distinct else [],
            "cpu": cpu,  # for the generator alone
        },
        "spec": {
            "containers": [
                {"name": "main", "image": f"registry.example/{app}:1", "resources": {"requests": requests}}
            ]
        },
    }


def _without_cpu(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "cpu"}}


def main() -> None:
    gc.set_threshold(20_000)  # as the command does
    distinct = "--distinct" in sys.argv
    given = [each for each in sys.argv[1:] if each != "--distinct"]
    pods = int(given[0]) if given else 50_000
    nodes = int(given[1]) if len(given) > 1 else 1_000
    (setup,) = candidates_of([given[2] if len(given) > 2 else "default"], at_least=1, option="CONFIG")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "recording"
        with RecordingWriter(path, cluster="generated", clock=VirtualClock()) as writer:
            for record in history(pods, nodes, distinct=distinct):
                writer.write(record)
        before = _memory()
        began = time.process_time()
        for _ in open_recording(path):
            pass
        read = time.process_time() - began
        begins: list[float] = []
        comparison = replay_recording(
            open_recording(path), [setup], progress=lambda _label: begins.append(time.process_time())
        )
        ended = time.process_time()
    surveyed, replayed = begins[1] - begins[0], ended - begins[1]
    run = comparison.runs[0]
    print(f"{pods:,} pods, {nodes:,} nodes, {setup.label}: {run.same:,} same, {run.moved:,} moved")
    for name, seconds in {"reading": read, "what happened": surveyed, "replay": replayed}.items():
        print(f"{name:>14}: {seconds:7.2f} s CPU, {1000 * seconds / pods:.3f} ms a pod")
    print(f"{'memory':>14}: {before:,} MiB before, {_memory():,} MiB at most")


def _memory() -> int:
    """The largest resident set of this process so far, in MiB."""
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes // (1 << 20 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    main()
