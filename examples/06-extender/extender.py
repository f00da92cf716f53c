"""A plugin for a stock kube-scheduler: `python extender.py` serves it at the address in kube-scheduler.yaml."""

from __future__ import annotations

import uvicorn
from kschedfw_kubernetes import ExtenderApp

from kschedfw import EnabledPlugin, NodeInfo, Plugin, Pod, Profile, Registry, Status, hookimpl

LICENCES = "example.com/licences"
"""The annotation with the licences that a node has or a pod needs, separated by commas."""


def licences(annotated: Pod | NodeInfo) -> set[str]:
    obj = annotated.node if isinstance(annotated, NodeInfo) else annotated
    return set(filter(None, obj.metadata.annotations.get(LICENCES, "").split(",")))


class Licences(Plugin):
    """Puts pods on nodes that have their licences, and as few others as possible."""

    name = "Licences"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        missing = licences(pod) - licences(node_info)
        if missing:
            return Status.unresolvable(f"node(s) had no licence for {', '.join(sorted(missing))}")
        return None

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        unused = licences(node_info) - licences(pod)
        return 100 // (1 + len(unused))


def make_app() -> ExtenderApp:
    """The ASGI application, with the plugin at the weight that kube-scheduler.yaml expects."""
    registry = Registry()
    registry.register(Licences)
    return ExtenderApp(Profile([EnabledPlugin("Licences", weight=2)]), registry=registry)


if __name__ == "__main__":
    uvicorn.run(make_app(), host="127.0.0.1", port=8888)
