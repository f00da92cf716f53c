"""The API server's admission plugins that matter to scheduling: they change or refuse new pods.

Manifests are what users write; these plugins change what the scheduler gets to see. Of those that an API server
of v1.36 enables by default, and in its order:

* LimitRanger, Priority, DefaultTolerationSeconds and RuntimeClass change a pod;
* LimitRanger, RuntimeClass and ResourceQuota refuse a pod, after it has been changed and validated.

Pods that an API server has written already went through all this, and only count for quotas.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import Final

import attrs

from kschedfw.api.affinity import Toleration, TolerationOperator
from kschedfw.api.defaults import Priorities
from kschedfw.api.evolver import evolver
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.limit_ranges import violations, with_container_defaults
from kschedfw.api.meta import Named, OwnerReference
from kschedfw.api.node import TaintEffect
from kschedfw.api.pod import Pod, PodSpec
from kschedfw.api.policies import LimitRange, ResourceQuota, RuntimeClass
from kschedfw.api.records import frozen
from kschedfw.api.resource_quotas import QuotaUsage
from kschedfw.api.validate_pods import gated_pod, lone_huge_pages, pod_spec
from kschedfw.api.workloads import PriorityClass

LIMIT_RANGER: Final = "LimitRanger"
RUNTIME_CLASS: Final = "RuntimeClass"

_DEFAULT_TOLERATIONS: Final = tuple(
    Toleration(
        key=f"node.kubernetes.io/{condition}",
        operator=TolerationOperator.EXISTS,
        effect=TaintEffect.NO_EXECUTE,
        toleration_seconds=300,
    )
    for condition in ("not-ready", "unreachable")
)
TOLERATED_BY_DEFAULT: Final = frozenset(toleration.key for toleration in _DEFAULT_TOLERATIONS)
"""The keys of the taints that every new pod tolerates for a while, unless it says otherwise."""

_with_tolerations = evolver(PodSpec, "tolerations")


@frozen
class RefusedPod:
    """A pod that an API server would not create.

    Attributes:
        pod: its key.
        reason: the reason, without the pod's name: `exceeded quota: …`.
        message: the API server's whole message, with the pod's name.
        controller: what wanted to create the pod; None if nothing did.
        labels: the pod's labels.
    """

    pod: str
    reason: str
    message: str
    controller: OwnerReference | None = None
    labels: FrozenDict[str, str] = EMPTY

    def to_json(self) -> dict[str, str]:
        return {"pod": self.pod, "message": self.message}


@frozen
class AdmissionOutcome:
    """The results of admission.

    Attributes:
        admitted: the number of new pods that are created.
        refused: the refused pods, in their order.
        changed: the number of pods that LimitRanger and RuntimeClass changed, by plugin.
        unknown_runtime_classes: unknown RuntimeClasses, with the number of pods that name them. An API server would
            refuse these pods; here they are created without the overhead, since manifests seldom are a whole cluster.
    """

    admitted: int = 0
    refused: tuple[RefusedPod, ...] = ()
    changed: FrozenDict[str, int] = EMPTY
    unknown_runtime_classes: FrozenDict[str, int] = EMPTY


class _NotAdmitted(Exception):
    """The refusal of a pod by a plugin, or by validation; the text says why."""

    kind = 'pods "{}" is forbidden: '
    """The beginning of the API server's message, with a gap for the pod's name."""


class _Invalid(_NotAdmitted):
    kind = 'Pod "{}" is invalid: '


@frozen
class _NewSpec:
    """A spec after admission, and the plugins that changed it; or the reason of its refusal, with its prefix."""

    spec: PodSpec
    changed_by: tuple[str, ...] = ()
    refusal: str = ""
    kind: str = _NotAdmitted.kind


class Admission:
    """The admission of pods, one after the other, under the policies of a cluster."""

    def __init__(self, objects: Iterable[Named]) -> None:
        self._limit_ranges: defaultdict[str, list[LimitRange]] = defaultdict(list)
        self._quotas: defaultdict[str, list[QuotaUsage]] = defaultdict(list)
        self._runtime_classes: dict[str, RuntimeClass] = {}
        classes = []
        for obj in objects:
            match obj:
                case PriorityClass():
                    classes.append(obj)
                case LimitRange():
                    self._limit_ranges[obj.namespace].append(obj)
                case ResourceQuota():
                    self._quotas[obj.namespace].append(QuotaUsage(obj))
                case RuntimeClass():
                    self._runtime_classes[obj.name] = obj
        self._priorities = Priorities(classes)
        self._known: dict[tuple[str, int], tuple[PodSpec, _NewSpec]] = {}
        """New specs by namespace and id of the given one, so that pods which share a spec still do."""
        self._admitted = 0
        self._refused: list[RefusedPod] = []
        self._changed: Counter[str] = Counter()
        self._unknown_runtime_classes: Counter[str] = Counter()

    @property
    def outcome(self) -> AdmissionOutcome:
        """The results so far."""
        unknown = FrozenDict(sorted(self._unknown_runtime_classes.items()))
        changed = FrozenDict(sorted(self._changed.items()))
        return AdmissionOutcome(self._admitted, tuple(self._refused), changed, unknown)

    def count(self, pod: Pod) -> Pod:
        """Count an existing pod in its quotas. Return it, with a priority if it had none."""
        for quota in self._quotas.get(pod.namespace, ()):
            if quota.counts(pod):
                quota.add(pod)
        spec = self._priorities.applied(pod.spec)
        return pod if spec is pod.spec else attrs.evolve(pod, spec=spec)

    def admit(self, pod: Pod, failure: str = "") -> Pod | None:
        """Return a new pod as it is stored; None if it is refused, which `outcome` then reports.

        A `failure` is the cluster's own word on why it can't be created.
        """
        if failure:
            self._refused.append(_refused(pod, failure, failure))
            return None
        new = self._spec(pod)
        if new.changed_by:
            pod = Pod(pod.metadata, new.spec, pod.status)
        # The pod requests what it requested before: only its priority and tolerations may differ.
        else:
            pod = pod.alike(pod.metadata, new.spec, pod.status)
        if reason := new.refusal or self._charge(pod):
            message = new.kind.format(pod.name) + reason
            self._refused.append(_refused(pod, reason, message))
            return None
        self._admitted += 1
        self._changed.update(new.changed_by)
        if (name := pod.spec.runtime_class_name) and name not in self._runtime_classes:
            self._unknown_runtime_classes[name] += 1
        return pod

    def _charge(self, pod: Pod) -> str:
        """Count the pod in all its quotas, or in none if one refuses it. Return the reason; empty if it is counted."""
        counting = [quota for quota in self._quotas.get(pod.namespace, ()) if quota.counts(pod)]
        for quota in counting:
            if reason := quota.refusal(pod):
                return reason
        for quota in counting:
            quota.add(pod)
        return ""

    def _spec(self, pod: Pod) -> _NewSpec:
        key = (pod.namespace, id(pod.spec))
        if key not in self._known:
            try:
                new = self._new_spec(pod)
            except _NotAdmitted as refused:
                new = _NewSpec(pod.spec, refusal=str(refused), kind=refused.kind)
            # The spec is kept: Python may give its id to another object once it is freed.
            self._known[key] = (pod.spec, new)
        return self._known[key][1]

    def _new_spec(self, pod: Pod) -> _NewSpec:
        spec, changed_by = pod.spec, []
        limit_ranges = self._limit_ranges.get(pod.namespace, ())
        for limit_range in limit_ranges:
            spec = with_container_defaults(spec, limit_range)
        if spec is not pod.spec:
            changed_by.append(LIMIT_RANGER)
        spec = self._priorities.applied(spec)
        spec = before = _with_tolerations(spec, _with_defaults(spec.tolerations))
        if (runtime_class := self._runtime_classes.get(spec.runtime_class_name)) is not None:
            spec = _of_runtime_class(spec, runtime_class)
        if spec is not before:
            changed_by.append(RUNTIME_CLASS)
        # A default limit may be below a request, for example. A pod of a controller was made of a template, which
        # may be valid where the pod with its defaults isn't: its requests may exceed those of the pod as a whole.
        errors: list[str] = []
        if changed_by or pod.metadata.controller is not None:
            errors += [str(error) for error in chain(pod_spec(spec, "spec"), gated_pod(pod))]
        if errors := [*errors, *map(str, lone_huge_pages(spec, "spec"))]:
            raise _Invalid(_aggregate(errors))
        for limit_range in limit_ranges:
            if reasons := list(violations(attrs.evolve(pod, spec=spec), limit_range)):
                raise _NotAdmitted(_aggregate(reasons))
        return _NewSpec(spec, tuple(changed_by))


def _aggregate(reasons: Iterable[str]) -> str:
    """Return several errors as one text, without repetitions (apimachinery `errors.NewAggregate`)."""
    distinct = list(dict.fromkeys(reasons))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


# Most pods have none, or those of a few workloads.
@functools.lru_cache(maxsize=1024)
def _with_defaults(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Return the tolerations and those of the defaults that are missing."""
    missing = [
        wanted
        for wanted in _DEFAULT_TOLERATIONS
        # The operator doesn't matter, as in DefaultTolerationSeconds.
        if not any(
            given.key in ("", wanted.key) and given.effect in (None, wanted.effect) for given in tolerations
        )
    ]
    return (*tolerations, *missing)


def _of_runtime_class(spec: PodSpec, runtime_class: RuntimeClass) -> PodSpec:
    """Return the spec with the class's overhead, node selector and tolerations; itself if the class adds nothing."""
    overhead = runtime_class.overhead.pod_fixed if runtime_class.overhead is not None else EMPTY
    if spec.overhead and spec.overhead != overhead:
        if runtime_class.overhead is None:
            raise _NotAdmitted(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
        raise _NotAdmitted("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    scheduling = runtime_class.scheduling
    node_selector, tolerations = spec.node_selector, spec.tolerations
    if scheduling is not None:
        for key, value in scheduling.node_selector.items():
            if (given := node_selector.get(key, value)) != value:
                raise _NotAdmitted(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {given}"
                )
        node_selector = FrozenDict({**node_selector, **scheduling.node_selector})
        more = tuple(each for each in scheduling.tolerations if each not in tolerations)
        tolerations = (*tolerations, *more)
    new = attrs.evolve(spec, overhead=overhead, node_selector=node_selector, tolerations=tolerations)
    return spec if new == spec else new


def _refused(pod: Pod, reason: str, message: str) -> RefusedPod:
    return RefusedPod(pod.key, reason, message, pod.metadata.controller, pod.labels)
