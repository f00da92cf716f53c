"""The cluster under test, and helpers of the checks."""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import Callable
from typing import ClassVar, ParamSpec, TypeVar

import attrs
import pytest

from kschedfw.api import (
    CustomKind,
    CustomResource,
    Named,
    Namespace,
    Node,
    ObjectMeta,
    Pod,
    pod_from_manifest,
)
from kschedfw.cluster import Cluster

_PATIENCE = 20.0
"""The seconds within which readers must see a write."""


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
P = ParamSpec("P")


class ClusterSubject:
    """The base of the checks: a namespace of their own in the cluster that the fixture `cluster` yields."""

    kinds: ClassVar[frozenset[type[Named]]] = frozenset({Namespace, Node, Pod, Widget})
    """The kinds that the cluster keeps: Pod, and which of the others. Checks of the others are skipped.

    Without Namespace, the pods' namespaces are mere texts, which nobody has to add before.
    """

    @pytest.fixture
    def namespace(self, cluster: Cluster) -> str:
        """Return an empty namespace. Its random name is the test's own in a cluster that others use, too."""
        return self.new_namespace(cluster)

    def new_namespace(self, cluster: Cluster) -> str:
        """Return the name of a new namespace, added to a cluster that has objects for them."""
        name = f"contract-{secrets.token_hex(4)}"
        if Namespace in self.kinds:
            cluster.add(Namespace(ObjectMeta(name)))
        return name

    def needs(self, kind: type[Named]) -> None:
        """Skip the check, unless the cluster keeps objects of the kind."""
        if kind not in self.kinds:
            pytest.skip(f"the cluster keeps no {kind.__name__}: it isn't in `kinds`")


def remedy(text: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Let a check that fails say, below its error, what a cluster has to do."""

    def told(check: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(check)
        def checked(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                check(*args, **kwargs)
            # That of `pytest.raises` and of `pytest.fail` is no Exception.
            except (Exception, pytest.fail.Exception) as error:
                error.add_note(f"what the contract asks for: {text}")
                raise

        return checked

    return told


def pod_in(namespace: str, name: str = "web", **spec: object) -> Pod:
    """Return a pod that a cluster may take; no kubelet runs it."""
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    metadata = {"name": name, "namespace": namespace}
    # With another name than the default scheduler's, no scheduler in the cluster takes the pod.
    scheduler = {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0}
    pod = pod_from_manifest({"metadata": metadata, "spec": {"containers": containers, **scheduler, **spec}})
    # Without a uid, since the cluster assigns it.
    return pod.with_metadata(attrs.evolve(pod.metadata, uid=""))


def eventually(look: Callable[[], T]) -> T:
    """Return the result of `look` as soon as it is true, since reads may lag behind writes."""
    end = time.perf_counter() + _PATIENCE
    while not (found := look()):
        assert time.perf_counter() < end, f"not so after {_PATIENCE:g} s"
        time.sleep(0.005)
    return found


def present(cluster: Cluster, obj: N) -> N:
    """Return the object as the cluster has it, as soon as a read returns this version or a later one."""

    def look() -> N | None:
        found = cluster.get(type(obj), obj.key)
        return found if found is not None and _version(found) >= _version(obj) else None

    found = eventually(look)
    assert found is not None
    return found


def gone(cluster: Cluster, obj: Named) -> None:
    """Wait until a read returns no such object, or another one of that name."""

    def look() -> bool:
        found = cluster.get(type(obj), obj.key)
        return found is None or found.uid != obj.uid

    eventually(look)


def _version(obj: Named) -> int:
    return int(obj.metadata.resource_version or 0)
