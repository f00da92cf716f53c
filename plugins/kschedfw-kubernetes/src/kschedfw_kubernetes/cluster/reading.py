"""Reads a live cluster once, for commands that otherwise take objects from files. Nothing is written."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from kschedfw import CustomKind, CustomObject, CustomResource, Node, Pod
from kschedfw.api import (
    DeviceTaintRule,
    LimitRange,
    ManifestError,
    Manifests,
    Named,
    PodGroup,
    PriorityClass,
    ResourceClaimTemplate,
    ResourceQuota,
    ResourceSlice,
    RuntimeClass,
    WarningEvent,
    WarningEvents,
    counted,
    group_key,
    without_collections,
)
from kschedfw_kubernetes.cluster.client import Client, connect
from kschedfw_kubernetes.cluster.decoding import UNREADABLE, read_json
from kschedfw_kubernetes.cluster.errors import (
    ExpiredError,
    ForbiddenError,
    KubernetesError,
    MissingObjectError,
    UnavailableError,
)
from kschedfw_kubernetes.cluster.resources import (
    SCHEDULER_KINDS,
    UNFINISHED_PODS,
    FollowedKind,
    Resource,
    resources_of,
)

_ADMISSION_KINDS: Final = (PriorityClass, LimitRange, ResourceQuota, RuntimeClass)
"""The kinds that admission needs for pods in files that are added to a cluster."""
READ_KINDS: Final = (*SCHEDULER_KINDS, *_ADMISSION_KINDS, ResourceClaimTemplate)
"""The kinds that are read besides custom kinds: everything that decisions depend on."""

Progress = Callable[[int, int], None]
"""Called while reading with the numbers of objects read and expected, as far as known."""

_EVENTS: Final = Resource("Event", "v1", "events")
_MOST_EVENTS: Final = 10_000
"""The number of warnings that are read: they only explain, and a cluster in trouble has many."""

_AT_THE_SAME_TIME: Final = 4
_NEEDED: Final = (Node, Pod)
"""The kinds without which no decision is possible."""
_READING_ATTEMPTS: Final = 3


class MissingRightsError(KubernetesError):
    """The user may not read nodes or pods, on which every decision depends. The message names each missing right."""


@attrs.frozen
class MissingRight:
    """A right to read that the user lacks, in the terms of a ClusterRole.

    `read_of` is the only namespace whose objects could be read; empty if there is none.
    """

    resource: str
    read_of: str = ""

    def __str__(self) -> str:
        instead = f"; only namespace {self.read_of} was read" if self.read_of else ""
        return f"may not list {self.resource} of the whole cluster{instead}"


def missing_lines(rights: Iterable[MissingRight]) -> Iterator[str]:
    """Yield the missing rights, a line for those that one binding would give."""
    by_namespace: defaultdict[str, list[MissingRight]] = defaultdict(list)
    for right in rights:
        by_namespace[right.read_of].append(right)
    for alike in by_namespace.values():
        first, *more = alike
        if more:
            names = ", ".join(right.resource for right in alike)
            first = attrs.evolve(first, resource=f"{counted(len(alike), 'kind')} ({names})")
        yield str(first)


@attrs.frozen
class LiveCluster:
    """The result of reading a cluster.

    Attributes:
        manifests: the objects; unreadable ones are among its problems.
        missing_rights: kinds that the user may not list.
        source: the context that was read.
    """

    manifests: Manifests
    missing_rights: tuple[MissingRight, ...]
    source: str


def read_cluster(
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    namespace: str | None = None,
    *,
    client: Client | None = None,
    custom_kinds: Iterable[CustomKind] = (),
    progress: Progress | None = None,
    with_warnings: bool = True,
) -> LiveCluster:
    """Return all objects that decisions depend on, with one list request per kind, without finished pods.

    With `with_warnings` also the cluster's Events that warn, where the user may list them: they say why pods aren't
    created or don't start. PodGroups are listed only if pods belong to some, DeviceTaintRules only if there are
    devices. Workloads aren't expanded, since the cluster's controllers create their pods. If the user may list a kind
    only in `namespace` (by default the context's), it is read there.

    Raises:
        MissingRightsError: nodes or pods may not be listed at all.
        KubernetesError: the server can't be reached, or refuses for another reason.
    """
    if client is not None:
        reading = _Reading(client, namespace or client.namespace, progress)
        return reading.read(custom_kinds, with_warnings=with_warnings)
    with connect(kubeconfig, context, qps=-1) as own:
        reading = _Reading(own, namespace or own.namespace, progress)
        return reading.read(custom_kinds, with_warnings=with_warnings)


def kinds_of_plugins() -> tuple[CustomKind, ...]:
    """Return the custom kinds that have a class so far, such as those of plugins in an enabled profile."""
    found: dict[CustomKind, None] = {}
    classes = [CustomResource]
    while classes:
        cls = classes.pop()
        # A class exists only if its module was imported, so kinds of plugins that no profile enables aren't requested.
        classes += cls.__subclasses__()
        if isinstance(kind := getattr(cls, "kind", None), CustomKind):
            found[kind] = None
    return tuple(sorted(found, key=str))


class _Reading:
    def __init__(self, client: Client, namespace: str, progress: Progress | None) -> None:
        self._client, self._namespace, self._progress = client, namespace, progress
        self._lock = threading.Lock()
        self._done = 0
        self._expected: dict[str, int] = {}
        """The number of objects of each kind that aren't read yet."""
        self._rights: dict[str, MissingRight] = {}
        self._problems: dict[str, list[ManifestError]] = {}

    def read(self, custom_kinds: Iterable[CustomKind], *, with_warnings: bool) -> LiveCluster:
        kinds: list[FollowedKind] = [*READ_KINDS, *custom_kinds]
        # Objects of a cluster are made and kept; cyclic collections would go through all of them again and again.
        with without_collections(), ThreadPoolExecutor(_AT_THE_SAME_TIME, "reading") as executor:
            warning = executor.submit(self._warnings) if with_warnings else None
            lists = list(executor.map(self._kind, kinds))
            warnings = () if warning is None else warning.result()
        rights = tuple(self._rights[resource] for resource in sorted(self._rights))
        needed = {str(resources_of(kind)[0]) for kind in _NEEDED}
        if any(right.resource in needed and not right.read_of for right in rights):
            missing = ", ".join(right.resource for right in rights if not right.read_of)
            raise MissingRightsError(
                f"{self._client.config.source}: may not list {missing} of the whole cluster"
            )
        objects = [obj for each in lists for obj in each]
        # Only if pods name one, since many users have no right to list PodGroups.
        if any(isinstance(obj, Pod) and group_key(obj) for obj in objects):
            objects += self._kind(PodGroup)
        if any(isinstance(obj, ResourceSlice) for obj in objects):
            objects += self._kind(DeviceTaintRule)
        problems = [problem for resource in sorted(self._problems) for problem in self._problems[resource]]
        manifests = Manifests.collect(objects, problems=problems, warning_events=warnings)
        return LiveCluster(manifests, rights, self._client.config.source)

    def _warnings(self) -> tuple[WarningEvent, ...]:
        """Return the last warning about each object and reason; none where the user may not list Events."""
        for namespace in ("", self._namespace):
            found = WarningEvents()
            try:
                for text in islice(self._events(namespace), _MOST_EVENTS):
                    found.take(msgspec.json.decode(text, type=dict[str, Any]))
            except ForbiddenError:
                continue
            except (KubernetesError, msgspec.DecodeError):
                # No decision depends on them, so what was read before is enough.
                pass
            return found.all()
        return ()

    def _events(self, namespace: str) -> Iterator[bytes]:
        for page in self._client.pages(_EVENTS.collection(namespace), {"fieldSelector": "type=Warning"}):
            yield from page.items or ()

    def _kind(self, kind: FollowedKind) -> list[Named]:
        """Return all objects of a kind, oldest first; none if the server doesn't have the kind."""
        for resource in resources_of(kind):
            try:
                return self._listed(kind, resource)
            except MissingObjectError:
                continue
        return []

    def _listed(self, kind: FollowedKind, resource: Resource) -> list[Named]:
        try:
            return self._list(kind, resource, "")
        except ForbiddenError:
            right = MissingRight(str(resource))
            if not resource.namespaced:
                self._rights[str(resource)] = right
                return []
        try:
            found = self._list(kind, resource, self._namespace)
            right = attrs.evolve(right, read_of=self._namespace)
        except ForbiddenError:
            found = []
        self._rights[str(resource)] = right
        return found

    def _list(self, kind: FollowedKind, resource: Resource, namespace: str) -> list[Named]:
        for attempt in range(1, _READING_ATTEMPTS + 1):
            # An attempt that was cut short may have met the same objects.
            self._problems.pop(str(resource), None)
            try:
                return sorted(self._objects(kind, resource, namespace), key=_age)
            except ExpiredError:  # The server no longer has the version of the list that was being read.
                if attempt == _READING_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _objects(self, kind: FollowedKind, resource: Resource, namespace: str) -> Iterator[Named]:
        query = {"fieldSelector": UNFINISHED_PODS} if kind is Pod else {}
        for page in self._client.pages(resource.collection(namespace), query):
            items = page.items or ()
            self._tell(str(resource), len(items), page.remaining)
            for text in items:
                try:
                    yield read_json(text, resource)
                except ManifestError as error:
                    problem = ManifestError(error.errors, error.subject, self._client.config.source)
                    self._problems.setdefault(str(resource), []).append(problem)
                except UNREADABLE as error:
                    raise UnavailableError(f"{resource}: an object can't be read: {error}") from None

    def _tell(self, resource: str, read_now: int, remaining: int) -> None:
        if self._progress is not None:
            with self._lock:
                self._done += read_now
                self._expected[resource] = remaining
                self._progress(self._done, self._done + sum(self._expected.values()))


def _age(obj: Named) -> tuple[str, str]:
    created = obj.metadata.creation_timestamp
    name = str(obj.kind) if isinstance(obj, CustomObject) else ""
    return f"{name} {'' if created is None else created.isoformat()}", obj.metadata.key
