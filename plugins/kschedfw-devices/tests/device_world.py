"""Clusters with devices, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kschedfw_devices import ClaimController

from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.clock import VirtualClock
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.profile import Profile
from kschedfw.scheduler import InlineExecutor, Scheduler

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def made(kind: str, name: str, **rest: object) -> Named:
    version = "v1" if kind in ("Pod", "Node") else API
    return object_from_manifest({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest})


def node(name: str) -> Named:
    return made("Node", name, status={"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "50"}})


def gpu_class(*expressions: str, **spec: object) -> Named:
    written = expressions or (f'device.driver == "{DRIVER}"',)
    return made(
        "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": each}} for each in written], **spec}
    )


def devices(node_name: str, *names: str, more: Mapping[str, Any] | None = None) -> Named:
    spec = {
        "driver": DRIVER,
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, **(more or {})} for name in names],
    }
    return made("ResourceSlice", f"{node_name}-gpus", spec=spec)


def claim(name: str, count: int = 1, status: Mapping[str, object] | None = None) -> Named:
    exactly = {"deviceClassName": "gpu", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return made("ResourceClaim", name, spec=spec, status=status or {})


def template(name: str, count: int = 1) -> Named:
    """For claims of their own that pods get."""
    exactly = {"deviceClassName": "gpu", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return made("ResourceClaimTemplate", name, spec={"spec": spec})


def allocation(device: str, node_name: str, *nodes: str) -> dict[str, object]:
    """Of a device of one node, for some nodes alone."""
    result = {"request": "r", "driver": DRIVER, "pool": node_name, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": list(nodes or (node_name,))}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}


def pod(name: str, *claims: str, template: str = "", **limits: str) -> Pod:
    references = [{"name": each, "resourceClaimName": each} for each in claims]
    if template:
        references.append({"name": "own", "resourceClaimTemplateName": template})
    container = {"name": "c", "image": "x", "resources": {"limits": dict(limits)}}
    found = made("Pod", name, spec={"containers": [container], "resourceClaims": references})
    assert isinstance(found, Pod)
    return found


class World:
    """A cluster with its scheduler, on a clock that advances for waits alone; bindings are carried out at once."""

    def __init__(
        self,
        *objects: Named,
        profiles: Sequence[Profile] | None = None,
        metrics: MetricsRecorder = NO_METRICS,
        cluster: InMemoryCluster | None = None,
        gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        self.cluster = InMemoryCluster() if cluster is None else cluster
        for each in objects:
            self.cluster.add(each)
        self.clock = VirtualClock(1_000_000_000.0)
        ClaimController(self.cluster)
        self.scheduler = Scheduler(
            self.cluster,
            profiles,
            clock=self.clock,
            executor=InlineExecutor(),
            initial_backoff=0.0,
            metrics=metrics,
            feature_gates=gates,
        )

    def run(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.scheduler.run_until_idle()
            self.clock.advance_to(self.clock.now() + 20.0)
        self.scheduler.run_until_idle()

    def node_of(self, name: str) -> str:
        found = self.cluster.get(Pod, f"default/{name}")
        assert found is not None
        return found.node_name

    def told(self, name: str) -> str:
        """The message of the pod's PodScheduled condition."""
        found = self.cluster.get(Pod, f"default/{name}")
        assert found is not None
        return next((each.message for each in found.status.conditions if each.type == "PodScheduled"), "")
