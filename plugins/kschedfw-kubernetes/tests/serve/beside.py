"""kube-scheduler and `kschedfw run` with the gates for groups, each on a real server of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from kschedfw_apiserver.control_plane import ControlPlane, assets
from serve.replicas import Replica

_GATES: Final = ",".join(
    f"{gate}=true"
    for gate in (
        "GenericWorkload",
        "GangScheduling",
        "TopologyAwareWorkloadScheduling",
        "WorkloadAwarePreemption",
    )
)
SERVED: Final = ("--runtime-config=scheduling.k8s.io/v1alpha2=true", f"--feature-gates={_GATES}")
"""The flags of a server that has groups."""
PODS: Final = "/api/v1/namespaces/default/pods"
PODGROUPS: Final = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"

needs_kube_scheduler: Final = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        (folder := assets()) is None or not (folder / "kube-scheduler").is_file(),
        reason="NOT TESTED beside kube-scheduler: KUBEBUILDER_ASSETS names no folder with it",
    ),
]
"""Marks of tests that need one."""

RunningScheduler: TypeAlias = Callable[[ControlPlane, Path], AbstractContextManager[None]]


def node(name: str, labels: Mapping[str, str], cpu: str = "4") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


@contextmanager
def kube_scheduler(server: ControlPlane, folder: Path) -> Iterator[None]:
    binaries = assets()
    assert binaries is not None
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(server.kubeconfig(folder / "kubeconfig"))},
    }
    file = folder / "scheduler.yaml"
    file.write_text(json.dumps(content))
    program = str(binaries / "kube-scheduler")
    command = [program, f"--config={file}", "--secure-port=0", f"--feature-gates={_GATES}"]
    with (folder / "kube-scheduler.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextmanager
def kschedfw(server: ControlPlane, folder: Path) -> Iterator[None]:
    with Replica(server, folder, "kschedfw", "--leader-elect=false", f"--feature-gates={_GATES}"):
        yield
