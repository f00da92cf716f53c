"""The scheduler's writes to the API server. Retries never apply a write twice.

An answer may be lost after the write took effect. So before a retry, the object is read to find out whether it did.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar, cast

from kschedfw import Clock, CustomResource, Pod
from kschedfw.api import DEFAULT_NAMESPACE, EMPTY, KIND_OF, Named, PodCondition, to_manifest
from kschedfw.api.reading import printable, write_time
from kschedfw.cluster import AlreadyExistsError, ConflictError, NotFoundError
from kschedfw_kubernetes.cluster.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client
from kschedfw_kubernetes.cluster.decoding import Content, read
from kschedfw_kubernetes.cluster.errors import (
    ApiError,
    FencedError,
    MissingObjectError,
    UnavailableError,
    WriteConflictError,
)
from kschedfw_kubernetes.cluster.patches import contains, merge_patch
from kschedfw_kubernetes.cluster.resources import Resource, resources_of

T = TypeVar("T", bound=Named)

_POD: Final = resources_of(Pod)[0]
_DONE: Final[Content] = {}
"""The result of a write whose answer isn't needed."""
_SERVERS_OWN: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
_LONGEST_MESSAGE: Final = 32 * 1024
"""The most bytes of a condition's message that the API server accepts."""
_GATHERING: Final = 0.01
"""Seconds between two reads of the answers to bindings that are sent together: one takes the server some milliseconds.
"""
_Outcome: TypeAlias = ApiError | UnavailableError | FencedError | None
"""The outcome of a binding: the error, None for success."""


class _Together(threading.local):
    """The bindings that the current thread has announced."""

    pods: Sequence[Pod] = ()
    """The pods whose bindings aren't sent."""
    outcomes: Mapping[str, _Outcome] = EMPTY
    """The outcomes of bindings that were sent, by the pods' uids."""


class Writes:
    """The requests that write. Thread-safe.

    `known` returns the last seen state of an object, `resource_of` the resource of its kind.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        known: Callable[[Named], Named | None],
        resource_of: Callable[[Named], Resource],
    ) -> None:
        self._client, self._clock = client, clock
        self._known, self._resource_of = known, resource_of
        self._together = _Together()

    # --- pods ---

    @contextmanager
    def binding_together(self, pods: Sequence[Pod]) -> Iterator[None]:
        """Do what `BindsTogether.binding_together` does."""
        self._together.pods = pods
        try:
            yield
        finally:
            self._together.pods, self._together.outcomes = (), EMPTY

    def bind(self, pod: Pod, node_name: str, deadline: float = math.inf) -> None:
        """Do what `Cluster.bind` does. Raises FencedError after `deadline` on the monotonic clock, without sending."""
        if len(self._together.pods) > 1:
            self._send_together()
        outcomes = self._together.outcomes
        failure = outcomes.get(pod.uid)
        if isinstance(failure, FencedError):
            raise failure
        if failure is None and pod.uid in outcomes:
            return

        def settle() -> Content | None:
            present = self._present(pod, _POD)
            there = (present.get("spec") or {}).get("nodeName") or ""
            if there and there != node_name:
                raise ConflictError(f"Pod {pod.key} is already assigned to node {there!r}")
            return _DONE if there else None

        path, binding = _binding(pod, node_name)
        try:
            self._client.write(
                "POST",
                path,
                binding,
                settle=settle,
                deadline=deadline,
                needs_response=False,
                failed=failure,
            )
        except WriteConflictError:
            # The server also answers so if a Binding arrived twice, or if etcd gave no answer.
            if settle() is None:
                raise

    def _send_together(self) -> None:
        """Send the announced bindings, as many as the rate allows; `bind` sends the others, and what has failed."""
        together = self._together
        pods, together.pods = together.pods, ()
        errors = self._client.post_all([_binding(pod, pod.node_name) for pod in pods], gathering=_GATHERING)
        together.outcomes = {pod.uid: error for pod, error in zip(pods, errors, strict=False)}

    def patch_pod_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Do what `Cluster.patch_pod_status` does. The patch may be applied twice, so `settle` isn't needed."""
        status: Content = {}
        if condition is not None:
            # A strategic merge patch merges conditions by type, so those of other components stay.
            status["conditions"] = [self._condition(pod, condition)]
        if nominated_node_name is not None:
            # Null deletes the field.
            status["nominatedNodeName"] = nominated_node_name or None
        # The server refuses to change a uid. So with the uid, the patch can't change another pod of the same name.
        patch = {"metadata": {"uid": pod.uid}, "status": status} if pod.uid else {"status": status}
        path = _POD.path(pod.namespace, pod.name, "status")
        self._client.write(
            "PATCH",
            path,
            patch,
            content_type=STRATEGIC_MERGE_PATCH,
            unguarded=True,
            needs_response=False,
        )

    def _condition(self, pod: Pod, condition: PodCondition) -> Content:
        """Return the condition with the pod's generation.

        If its status changes, it also has the time of this change.
        """
        present = self._known(pod)
        conditions = present.status.conditions if isinstance(present, Pod) else pod.status.conditions
        before = next((each for each in conditions if each.type == condition.type), None)
        written: Content = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": printable(condition.message, _LONGEST_MESSAGE),
        }
        # The generation known here; the server may have a newer one by now. kube-scheduler also writes it
        # (PodObservedGenerationTracking, locked since v1.35), and doesn't patch if only the generation differs.
        if pod.metadata.generation:
            written["observedGeneration"] = pod.metadata.generation
        if before is None or before.status != condition.status:
            written["lastTransitionTime"] = self._now()
        return written

    def _now(self) -> str:
        # meta/v1 Time has whole seconds.
        return write_time(datetime.fromtimestamp(int(self._clock.now()), UTC))

    # --- all kinds ---

    def delete(self, obj: Named) -> None:
        """Do what `Cluster.delete` does."""
        obj = _stored_form(obj)
        resource = self._resource_of(obj)
        options: Content = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if obj.uid:
            options["preconditions"] = {"uid": obj.uid}

        def settle() -> Content | None:
            try:
                present = self._present(obj, resource)
            except (NotFoundError, ConflictError):
                return _DONE  # The object is gone, or another object has its name by now.
            return _DONE if present["metadata"].get("deletionTimestamp") else None

        self._client.write("DELETE", _path(obj, resource), options, settle=settle, needs_response=False)

    def add(self, obj: T) -> T:
        """Do what `Cluster.add` does."""
        stored = _stored_form(obj)
        resource = self._resource_of(stored)
        manifest = _manifest(stored, resource)
        namespace = stored.namespace or (DEFAULT_NAMESPACE if resource.namespaced else "")
        path = _path(stored, resource)

        def settle() -> Content | None:
            try:
                present = self._client.get(path)
            except MissingObjectError:
                return None
            # The server may not have stored the status, see below.
            wanted = {key: value for key, value in manifest.items() if key != "status"}
            if contains(present, wanted):
                return present
            raise AlreadyExistsError(f"{resource.kind} {stored.metadata.key} already exists")

        made = self._client.write("POST", resource.collection(namespace), manifest, settle=settle)
        # The server ignores the status of a new object if the kind has the status subresource.
        if (status := manifest.get("status")) and not contains(made.get("status"), status):
            made = self._patch(stored, resource, {"status": status}, made, "status")
        return self._as(obj, made, resource)

    def update(self, obj: T) -> T:
        """Do what `Cluster.update` does. A conflict has the present state, read from the server."""
        stored = _stored_form(obj)
        resource = self._resource_of(stored)
        try:
            return self._updated(obj, stored, resource)
        except ConflictError as conflict:
            # Raises another ConflictError if another object has the name by now: it has no state of this one.
            conflict.present = self._as(obj, self._present(stored, resource), resource)
            raise

    def _updated(self, obj: T, stored: Named, resource: Resource) -> T:
        old = self._base(stored, resource)
        new = _manifest(stored, resource, keep=old)
        # Merge by sections, so that a section of which no field is known here isn't emptied.
        sections: Content = {key: {} for key, value in old.items() if isinstance(value, Mapping)}
        patch = {key: value for key, value in merge_patch(old, {**sections, **new}).items() if value != {}}
        status = {"status": patch.pop("status")} if "status" in patch else {}
        if not patch and not status:
            return obj
        parts = [(patch, ""), (status, "status")]
        if _lost_finalizers(old, new):
            # Patch the status first: the finalizer must not be removed before what it guards has been released.
            parts.reverse()
        if resource.kind not in _WITH_STATUS:
            # A custom kind may or may not have the status subresource, so try both ways.
            parts = [
                ({**patch, **status}, ""),
                (status, "status"),
            ]
        present: Content = {**old, "metadata": {**old["metadata"]}}
        version = stored.metadata.resource_version
        for part, subresource in parts:
            if part and not (subresource and contains(present, part)):
                # The second patch is guarded by the resource version that the first one has made.
                present = self._patch(stored, resource, part, present, subresource, guarded=bool(version))
        return self._as(obj, present, resource)

    def _base(self, obj: Named, resource: Resource) -> Content:
        """Return the manifest of the state that an update was made from.

        Raises:
            NotFoundError, ConflictError: the object is gone or has changed since.
        """
        version = obj.metadata.resource_version
        known = self._known(obj)
        if known is not None and version and known.metadata.resource_version == version:
            return to_manifest(known)
        # The known state isn't the one that the update is based on: it was written a moment ago, or the caller names no
        # version. Read it.
        present = read(self._present(obj, resource), resource)
        if version and present.metadata.resource_version != version:
            raise ConflictError(
                f"{resource.kind} {obj.metadata.key} has been modified: the update is for resource version {version}, "
                f"the present one is {present.metadata.resource_version}"
            )
        return to_manifest(present)

    def _patch(
        self,
        obj: Named,
        resource: Resource,
        patch: Content,
        base: Content,
        subresource: str,
        *,
        guarded: bool = True,
    ) -> Content:
        """Patch the object if it is still the same one and, if `guarded`, in the state of `base`."""
        version = base["metadata"].get("resourceVersion") if guarded else None
        guards = {"uid": base["metadata"].get("uid"), "resourceVersion": version}
        metadata = {**patch.get("metadata", {}), **{key: value for key, value in guards.items() if value}}
        path = _path(obj, resource, subresource)

        def settle() -> Content | None:
            present = self._present(obj, resource)
            if contains(present, patch):
                return present
            if version and present["metadata"].get("resourceVersion") != version:
                raise ConflictError(f"{resource.kind} {obj.metadata.key} has been modified")
            return None

        return self._client.write(
            "PATCH", path, {**patch, "metadata": metadata}, content_type=MERGE_PATCH, settle=settle
        )

    def _present(self, obj: Named, resource: Resource) -> Content:
        """Return the object as the server has it. Raises NotFoundError, or ConflictError if it is another object."""
        present = self._client.get(_path(obj, resource))
        uid = present.get("metadata", {}).get("uid")
        if obj.uid and uid != obj.uid:
            raise ConflictError(
                f"{resource.kind} {obj.metadata.key} is another one by now: uid {uid}, not {obj.uid}"
            )
        return present

    def _as(self, obj: T, content: Content, resource: Resource) -> T:
        """Return the server's response as an object of the class that was written."""
        stored = read(content, resource)
        if isinstance(obj, CustomResource):
            return cast("T", type(obj).of(stored))
        return cast("T", stored)


_WITH_STATUS: Final = frozenset(
    kind.name for cls, kind in KIND_OF.items() if any(field.name == "status" for field in cls.__attrs_attrs__)
)


def _binding(pod: Pod, node_name: str) -> tuple[str, Content]:
    """Return the path and the content of a Binding."""
    content = {
        "apiVersion": "v1",
        "kind": "Binding",
        # With the uid, the server refuses to bind another pod of the same name.
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "target": {"kind": "Node", "name": node_name},
    }
    return _POD.path(pod.namespace, pod.name, "binding"), content


def _stored_form(obj: Named) -> Named:
    return obj.as_custom_object() if isinstance(obj, CustomResource) else obj


def _path(obj: Named, resource: Resource, subresource: str = "") -> str:
    namespace = obj.metadata.namespace or (DEFAULT_NAMESPACE if resource.namespaced else "")
    return resource.path(namespace, obj.metadata.name, subresource)


def _manifest(obj: Named, resource: Resource, keep: Mapping[str, Any] | None = None) -> Content:
    """Return the manifest to write. Its server-managed metadata is that of `keep`, or missing."""
    manifest = to_manifest(obj)
    kept = {} if keep is None else keep["metadata"]
    metadata = {key: value for key, value in manifest.get("metadata", {}).items() if key not in _SERVERS_OWN}
    own = {key: kept[key] for key in (*_SERVERS_OWN, "namespace") if key in kept}
    return {
        **manifest,
        "apiVersion": resource.api_version if keep is None else keep["apiVersion"],
        "metadata": {**metadata, **own},
    }


def _lost_finalizers(old: Content, new: Content) -> bool:
    return bool({*old["metadata"].get("finalizers", ())} - {*new["metadata"].get("finalizers", ())})
