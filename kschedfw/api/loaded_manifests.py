"""The objects of manifests that were read, by their class, with everything that there is to say about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Self, TypeVar, cast

import attrs

from kschedfw.api.admission import Admission, AdmissionOutcome
from kschedfw.api.custom import CustomObject
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.kinds import KINDS
from kschedfw.api.manifest_error import InvalidManifestsError, ManifestError
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.api.warning_events import FAILED_CREATE, WarningEvent
from kschedfw.api.workloads import CronJob, WorkloadObject

N = TypeVar("N", bound=Named)


@frozen
class Manifests:
    """The loaded objects, and the problems.

    Attributes:
        loaded: the objects by their class, those of a class in the order of the input. The pods of a workload come in
            its place; custom objects are of the class CustomObject.
        ignored: the number of objects that were omitted because scheduling doesn't read their kind, by kind. A kind of
            another API group than Kubernetes' own is named with its group: `Kustomization.kustomize.config.k8s.io`.
        problems: the errors.
        warnings: one for each unknown field, and each namespace of a cluster-scoped object, that was ignored.
        admission: the results of an API server's admission plugins for the pods that no API server has written.
        workloads: the workloads as they were read, those included that leave only pods, or nothing, in `loaded`.
        made: the number of pods made for workloads, by workload: `Deployment default/web`.
        without_pods: the reason why a workload has no pods, by workload: it is suspended, no node is eligible.
        custom_owners: the number of objects whose pods only `Expand.ALL` makes, by custom kind.
        outdated: the number of objects by API version and kind, where a version of Kubernetes has stopped to serve it.
        warning_events: the last warning of each object and reason, from the Events of an export.
    """

    loaded: FrozenDict[type[Named], tuple[Named, ...]] = EMPTY
    ignored: FrozenDict[str, int] = EMPTY
    problems: tuple[ManifestError, ...] = ()
    warnings: tuple[ManifestError, ...] = ()
    admission: AdmissionOutcome = attrs.field(factory=AdmissionOutcome)
    workloads: tuple[WorkloadObject | CronJob, ...] = ()
    made: FrozenDict[str, int] = EMPTY
    without_pods: FrozenDict[str, str] = EMPTY
    custom_owners: FrozenDict[str, int] = EMPTY
    outdated: FrozenDict[tuple[str, str], int] = EMPTY
    warning_events: tuple[WarningEvent, ...] = ()

    @classmethod
    def collect(
        cls,
        objects: Iterable[Named],
        ignored: FrozenDict[str, int] = EMPTY,
        problems: Iterable[ManifestError] = (),
        warnings: Iterable[ManifestError] = (),
        stored: Container[str] | None = None,
        existing: Iterable[Named] = (),
        warning_events: Iterable[WarningEvent] = (),
    ) -> Self:
        """Return objects by kind, in their order; pods get the priorities of their classes.

        `stored` are the keys of the pods that an API server has stored already, by default all; the others are
        admitted as if they were created now, in a cluster that has the `existing` objects, too. Of these, pods whose
        controller couldn't create any, as the `warning_events` say, are refused for the same reason.
        """
        reported = tuple(warning_events)
        failures = {
            (each.namespace, each.kind, each.name): each.message
            for each in reported
            if each.reason == FAILED_CREATE
        }
        loaded: defaultdict[type[Named], list[Named]] = defaultdict(list)
        for obj in objects:
            loaded[type(obj)].append(obj)
        by_class = {each: tuple(of_class) for each, of_class in loaded.items()}
        before = tuple(existing)
        others = (obj for cls, of_class in by_class.items() if cls is not Pod for obj in of_class)
        admission = Admission((*before, *others))
        for obj in before:
            if isinstance(obj, Pod):
                admission.count(obj)
        if pods := cast("Sequence[Pod]", by_class.get(Pod, ())):
            # Objects that exist use quotas before new ones are created.
            keys = [pod.key for pod in pods]
            known = {
                key: admission.count(pod)
                for key, pod in zip(keys, pods, strict=True)
                if stored is None or key in stored
            }
            admitted = (
                known.get(key) or admission.admit(pod, _failure_of(pod, failures))
                for key, pod in zip(keys, pods, strict=True)
            )
            by_class[Pod] = tuple([pod for pod in admitted if pod is not None])
        found = FrozenDict(by_class)
        outcome = admission.outcome
        return cls(found, ignored, tuple(problems), tuple(warnings), outcome, warning_events=reported)

    def objects(self, *, skip_invalid: bool = False) -> tuple[Named, ...]:
        """Return all objects, referenced ones first and pods last.

        Raises:
            InvalidManifestsError: there are problems, and `skip_invalid` is false; names all of them.
        """
        if self.problems and not skip_invalid:
            raise InvalidManifestsError(self.problems)
        early = (kind.cls for kind in KINDS.values() if kind.cls is not Pod)
        return tuple(obj for cls in (*early, CustomObject, Pod) for obj in self.loaded.get(cls, ()))

    def of(self, cls: type[N]) -> tuple[N, ...]:
        """Return the objects of a kind, by its class in `kschedfw.api`."""
        return cast("tuple[N, ...]", self.loaded.get(cls, ()))

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.of(Node)

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods, bound and pending."""
        return self.of(Pod)

    @property
    def custom_objects(self) -> tuple[CustomObject, ...]:
        """The objects of kinds that aren't Kubernetes' own, which plugins may read."""
        return self.of(CustomObject)


def _failure_of(pod: Pod, failures: Mapping[tuple[str, str, str], str]) -> str:
    """Return why the pod's controller can't create pods; empty if nothing is said of it."""
    owner = pod.metadata.controller if failures else None
    return "" if owner is None else failures.get((pod.namespace, owner.kind, owner.name), "")
