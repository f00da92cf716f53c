"""Creates, changes and deletes objects by the API server's rules."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from kschedfw.api.reading import subdomain_problems
from kschedfw.cluster import AlreadyExistsError, NotFoundError
from kschedfw_apiserver import status
from kschedfw_apiserver.defaults import as_new, with_defaults
from kschedfw_apiserver.events import as_kept, as_shown, check_event_update, check_new_event
from kschedfw_apiserver.patches import patched
from kschedfw_apiserver.pod_rules import admitted_pod, check_pod_update
from kschedfw_apiserver.requests import ApiRequest
from kschedfw_apiserver.resources import NAMESPACES, Resource
from kschedfw_apiserver.store import OutdatedError, Store, Stored

Manifest = Mapping[str, Any]

# Kubernetes' letters for names: without vowels, no words come about.
_RANDOM_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_OWNED_BY_SERVER: Final = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_ATTEMPTS: Final = 100
_CONDITIONAL: Final = frozenset(
    {
        *("Lease", "PodDisruptionBudget", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"),
        "CustomResourceDefinition",
    }
)
"""Kinds whose updates must name a resource version. For custom kinds this is required, too."""


class Registry:
    """Writes objects to the store. Every method raises StatusError if the API server would refuse."""

    def __init__(self, store: Store, random: Random) -> None:
        self._store = store
        self._random = random

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        found = self._store.get(resource.kept_as or resource, namespace, name)
        if found is None:
            raise status.not_found(resource, name)
        return found

    # --- creating ---

    def create(self, request: ApiRequest) -> Stored:
        resource, namespace = request.resource, request.namespace
        manifest = _checked(resource, request.document())
        metadata = _metadata(manifest)
        if resource.namespaced:
            self._check_namespace(namespace, metadata)
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)
        if metadata.get("resourceVersion"):
            raise status.unnamed_error("resourceVersion should not be set on objects to be created")
        for field in _OWNED_BY_SERVER:
            metadata.pop(field, None)
        metadata["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = self._store.time()
        generated = not metadata.get("name") and bool(metadata.get("generateName"))
        for _ in range(_ATTEMPTS if generated else 1):
            if generated:
                letters = "".join(self._random.choices(_RANDOM_LETTERS, k=5))
                # As in Kubernetes, a generated name has at most 63 characters.
                metadata["name"] = f"{metadata['generateName'][:58]}{letters}"
            _check_name(resource, metadata)
            if self._store.get(resource.kept_as or resource, namespace, metadata["name"]) is None:
                return self._create(request, {**manifest, "metadata": metadata})
        raise status.already_exists(resource, metadata["name"])

    def _create(self, request: ApiRequest, manifest: dict[str, Any]) -> Stored:
        resource = request.resource
        if resource.kept_as is not None:
            resource, manifest = resource.kept_as, as_kept(manifest)
            check_new_event(manifest)
        # The API server keeps the status of a new node, since the kubelet registers itself with it.
        if "status" in resource.subresources and resource.kind != "Node":
            manifest.pop("status", None)
        manifest = as_new(resource, manifest)
        if resource.kind == "Pod":
            manifest = admitted_pod(self._store, manifest)
        if request.is_dry_run:
            return Stored(resource, manifest, self._store.version)
        try:
            return self._store.create(resource, manifest)
        except AlreadyExistsError:
            raise status.already_exists(resource, manifest["metadata"]["name"]) from None

    def _check_namespace(self, namespace: str, metadata: Manifest) -> None:
        if not namespace:
            raise status.bad_request(
                "namespace may not be empty when creating an object of a namespaced kind"
            )
        if metadata.get("namespace", namespace) not in ("", namespace):
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if self._store.get(NAMESPACES, "", namespace) is None:
            raise status.not_found(NAMESPACES, namespace)

    # --- changing ---

    def update(self, request: ApiRequest) -> Stored:
        manifest = _checked(request.resource, request.document())
        metadata = manifest["metadata"] = _metadata(manifest)
        if metadata.get("name", request.name) != request.name:
            raise status.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({request.name})"
            )
        if metadata.get("namespace", request.namespace) not in ("", request.namespace):
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if request.resource.kept_as is not None:
            manifest = as_kept(manifest)
        return self.change(request, lambda _: manifest)

    def patch(self, request: ApiRequest) -> Stored:
        resource, patch = request.resource, request.json()
        content_type = request.headers.get("content-type", "").partition(";")[0].strip()

        def change(old: Stored) -> Manifest:
            if resource.kept_as is None:
                return patched(resource, old.manifest, patch, content_type)
            return as_kept(patched(resource, as_shown(old.manifest), patch, content_type))

        return self.change(request, change)

    def change(self, request: ApiRequest, change: Callable[[Stored], Manifest]) -> Stored:
        """Replace the object by the result of `change`, in the part that the request may change."""
        while True:
            old = self.get(request.resource, request.namespace, request.name)
            new = self._allowed(request, old, dict(change(old)))
            try:
                return self.replace(old, new, dry_run=request.is_dry_run)
            except OutdatedError:
                # Another thread of this process was faster. Repeat, since the client hasn't named this version.
                continue

    def replace(self, old: Stored, new: Manifest, *, dry_run: bool = False) -> Stored:
        """Replace the object. Raises OutdatedError if it has changed since `old`."""
        if new == old.manifest:
            return old
        if dry_run:
            return Stored(old.resource, new, old.version)
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp") and not _is_awaited(old.resource, metadata):
            return self._store.remove(old)
        return self._store.replace(old, new)

    def _allowed(self, request: ApiRequest, old: Stored, new: dict[str, Any]) -> dict[str, Any]:
        resource, before = old.resource, old.manifest
        metadata, present = _metadata(new), before["metadata"]
        version, uid = metadata.get("resourceVersion"), metadata.get("uid")
        if not version and request.verb == "update" and (resource.custom or resource.kind in _CONDITIONAL):
            raise status.unversioned(request.resource, request.name)
        if uid and uid != present["uid"]:
            if request.verb == "patch":
                why = ("metadata.uid", f'Invalid value: "{uid}": field is immutable')
                raise status.invalid(request.resource, request.name, [why])
            raise status.other_uid(request.resource, old.key, uid, present["uid"])
        if version and version != present["resourceVersion"]:
            raise status.outdated(request.resource, request.name)
        # Whatever a client sends in these fields, the stored values stay.
        for field in ("name", "namespace", "resourceVersion", "generateName", *_OWNED_BY_SERVER):
            metadata.pop(field, None)
            if field in present:
                metadata[field] = present[field]
        new["metadata"] = metadata
        if request.subresource == "status":
            return {**before, "metadata": metadata, **_part(new, "status")}
        new = with_defaults(resource, new)
        metadata = new["metadata"]
        if "status" in resource.subresources:
            new = {**{key: value for key, value in new.items() if key != "status"}, **_part(before, "status")}
        if resource.kind == "Pod":
            check_pod_update(before, new)
        if request.resource.kept_as is not None:
            check_event_update(before, new)
        if "generation" in present and new.get("spec") != before.get("spec"):
            metadata["generation"] = present["generation"] + 1
        return new

    # --- deleting ---

    def delete(self, request: ApiRequest) -> Stored:
        """Delete the object, at once or after its finalizers and grace period. Return its last state."""
        options = request.document() if request.body else {}
        grace = options.get("gracePeriodSeconds")
        if grace is None and "gracePeriodSeconds" in request.query:
            grace = request.number("gracePeriodSeconds")
        if grace is not None and (not isinstance(grace, int) or grace < 0):
            raise status.bad_request("gracePeriodSeconds must be a non-negative integer")
        dry_run = request.is_dry_run or options.get("dryRun") == ["All"]
        while True:
            old = self.get(request.resource, request.namespace, request.name)
            self._check_preconditions(request.resource, old, options.get("preconditions") or {})
            try:
                return old if dry_run else self._delete(old, grace)
            except OutdatedError:
                continue
            except NotFoundError:
                raise status.not_found(request.resource, request.name) from None

    def evict(self, pod: Stored, marked: Manifest, options: Manifest) -> None:
        """Delete a pod after marking it with the reason. Raises OutdatedError if it has changed since `pod`."""
        self._check_preconditions(pod.resource, pod, options.get("preconditions") or {})
        self._delete(self.replace(pod, marked), options.get("gracePeriodSeconds"))

    def delete_all(self, request: ApiRequest, found: list[Stored]) -> None:
        for each in found:
            try:
                self._delete(each, 0 if request.query.get("gracePeriodSeconds") == "0" else None)
            except (OutdatedError, NotFoundError):
                continue

    def _check_preconditions(self, resource: Resource, old: Stored, preconditions: Manifest) -> None:
        metadata, name = old.manifest["metadata"], old.manifest["metadata"]["name"]
        uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
        if uid is not None and uid != metadata["uid"]:
            why = (
                f"the UID in the precondition ({uid}) does not match the UID in record ({metadata['uid']}). "
                "The object might have been deleted and then recreated"
            )
            raise status.failed_precondition(resource, name, why)
        if version is not None and version != metadata["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
                f"({metadata['resourceVersion']}). The object might have been modified"
            )
            raise status.failed_precondition(resource, name, why)

    def _delete(self, old: Stored, grace: int | None) -> Stored:
        before = old.manifest["metadata"]
        seconds = _grace_of(old.manifest, grace) if old.resource.kind == "Pod" else 0
        is_ending = "deletionTimestamp" in before
        # A second deletion can only shorten the grace period.
        if is_ending and seconds >= before.get("deletionGracePeriodSeconds", 0) > 0:
            return old
        metadata = {**before, "deletionGracePeriodSeconds": seconds}
        if not is_ending:
            metadata["deletionTimestamp"] = self._store.time(seconds)
            if "generation" in before:
                metadata["generation"] = before["generation"] + 1
        ended = {**old.manifest, "metadata": metadata}
        if _is_awaited(old.resource, metadata):
            return old if ended == old.manifest else self._store.replace(old, ended)
        if old.resource.kind == "Pod":
            # As in Kubernetes, watchers see that a pod has ended before they see its deletion.
            old = self._store.replace(old, ended)
        if old.resource.kind == "Namespace":
            self._empty(old)
        return self._store.remove(old)

    def _empty(self, namespace: Stored) -> None:
        """Delete the namespace's objects at once. The namespace controller would do so over time."""
        name = namespace.manifest["metadata"]["name"]
        for resource in self._store.catalogue:
            if resource.namespaced and resource.kept_as is None:
                for each in self._store.all(resource)[1]:
                    if each.key[0] == name:
                        self._store.remove(each)


def _is_awaited(resource: Resource, metadata: Manifest) -> bool:
    """Return whether a deletion has to wait for a finalizer or for the pod's kubelet."""
    ends_slowly = resource.kind == "Pod" and bool(metadata.get("deletionGracePeriodSeconds"))
    return bool(metadata.get("finalizers")) or ends_slowly


def _metadata(manifest: Manifest) -> dict[str, Any]:
    metadata = manifest.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise status.bad_request("metadata must be an object")
    cleaned = {key: value for key, value in (metadata or {}).items() if value is not None}
    cleaned.pop("managedFields", None)
    return cleaned


def _checked(resource: Resource, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest without kind and apiVersion, after checking that they are the resource's."""
    kind, version = manifest.pop("kind", resource.kind), manifest.pop("apiVersion", resource.api_version)
    if (kind, version) != (resource.kind, resource.api_version):
        raise status.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: no kind "{kind}" is registered '
            f'for version "{version}" here'
        )
    return manifest


def _check_name(resource: Resource, metadata: Manifest) -> None:
    name = metadata.get("name")
    if not name:
        why = "Required value: name or generateName is required"
        raise status.invalid(resource, "", [("metadata.name", why)])
    if resource.group == "rbac.authorization.k8s.io":
        return  # Names of these kinds may contain colons.
    if not isinstance(name, str) or (problems := subdomain_problems(name)):
        why = problems[0] if isinstance(name, str) else "must be a string"
        raise status.invalid(resource, str(name), [("metadata.name", f'Invalid value: "{name}": {why}')])


def _part(manifest: Manifest, key: str) -> dict[str, Any]:
    return {key: manifest[key]} if key in manifest else {}


def _grace_of(pod: Manifest, asked: int | None) -> int:
    """Return the pod's grace period in seconds; 0 if no kubelet runs the pod."""
    spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    return int(spec.get("terminationGracePeriodSeconds", 30)) if asked is None else asked
