"""Pods and nodes as an extender gets to see them."""

from __future__ import annotations

from typing import Any

from kschedfw.api.manifests import to_manifest
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.scheduler.http_extender.go_json import Json, encode


def pod_as_sent(pod: Pod) -> Json:
    """The pod's JSON; what the API server always fills in is there although it is the default."""
    manifest = _as_sent(pod)
    spec: dict[str, Any] = manifest["spec"]
    spec.setdefault("schedulerName", pod.spec.scheduler_name)
    spec.setdefault("restartPolicy", str(pod.spec.restart_policy))
    spec.setdefault("preemptionPolicy", str(pod.spec.preemption_policy))
    spec.setdefault("priority", pod.priority)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        container.setdefault("resources", {})
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    return Json(encode(manifest))


def _as_sent(obj: Named) -> dict[str, Any]:
    manifest = {"metadata": {}, "spec": {}, "status": {}, **to_manifest(obj)}
    # kube-scheduler's objects come from typed caches, which don't know their own kind.
    del manifest["apiVersion"], manifest["kind"]
    return manifest


class NodesAsSent:
    """Writes nodes, and remembers what it wrote, for they change rarely and are sent for every pod."""

    def __init__(self) -> None:
        # By identity, since comparing nodes costs as much as writing them; holding the node keeps its id taken.
        self._written: dict[int, tuple[Node, Json]] = {}

    def write(self, nodes: list[Node]) -> tuple[Json, ...]:
        if len(self._written) > 2 * len(nodes) + 1000:
            self._written = {}  # many of them are of the past
        return tuple(map(self._write, nodes))

    def _write(self, node: Node) -> Json:
        known = self._written.get(id(node))
        if known is None:
            known = self._written[id(node)] = node, Json(encode(_as_sent(node)))
        return known[1]
