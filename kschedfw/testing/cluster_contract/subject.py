"""The cluster under test, and what the checks share."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import ClassVar, TypeVar

import attrs
import pytest

from kschedfw.api.custom import CustomKind, CustomResource
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import Namespace
from kschedfw.cluster import Cluster

_PATIENCE = 20.0
"""Seconds for a write to be seen by those who read."""


@attrs.frozen
class WidgetSpec:
    size: int = 0


@attrs.frozen
class Widget(CustomResource):
    """An object of a custom kind, which a cluster under test has to know: `widgets.contract.example.com`."""

    kind: ClassVar[CustomKind] = CustomKind("contract.example.com/v1", "Widget")

    metadata: ObjectMeta
    spec: WidgetSpec = WidgetSpec()


T = TypeVar("T")
N = TypeVar("N", bound=Named)


class Subject:
    """Gives the checks a namespace of their own in the cluster that the fixture `cluster` yields."""

    @pytest.fixture
    def namespace(self, cluster: Cluster) -> str:
        """An empty namespace; its random name is the test's own in a cluster that others use, too."""
        name = f"contract-{secrets.token_hex(4)}"
        cluster.add(Namespace(ObjectMeta(name)))
        return name


def pod_in(namespace: str, name: str = "web", **spec: object) -> Pod:
    """A pod that a cluster may take; nobody runs it."""
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    metadata = {"name": name, "namespace": namespace}
    # Without the name of the default scheduler none that runs in the cluster takes it.
    scheduler = {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0}
    pod = pod_from_manifest({"metadata": metadata, "spec": {"containers": containers, **scheduler, **spec}})
    return pod.with_metadata(attrs.evolve(pod.metadata, uid=""))  # that is the cluster's to give


def eventually(look: Callable[[], T]) -> T:
    """What `look` gives as soon as that is true: what is read may lag behind what was written."""
    end = time.perf_counter() + _PATIENCE
    while not (found := look()):
        assert time.perf_counter() < end, f"not so after {_PATIENCE:g} s"
        time.sleep(0.005)
    return found


def present(cluster: Cluster, obj: N) -> N:
    """The object as the cluster has it, as soon as the reader sees this version of it."""

    def look() -> N | None:
        found = cluster.get(type(obj), obj.key)
        return found if found is not None and _version(found) >= _version(obj) else None

    found = eventually(look)
    assert found is not None
    return found


def gone(cluster: Cluster, obj: Named) -> None:
    """Wait until the reader sees that the object isn't there any more, or is another one."""

    def look() -> bool:
        found = cluster.get(type(obj), obj.key)
        return found is None or found.uid != obj.uid

    eventually(look)


def _version(obj: Named) -> int:
    return int(obj.metadata.resource_version or 0)
