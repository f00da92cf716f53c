"""Creation of the pods that the controllers of workloads would create.

`expand` takes all loaded objects, since a dump may have a workload together with some of its pods: only the
missing ones are made. Their names are readable, and the same in every run.

`Limits.pods` bounds the number of pods and claims made in all, since a manifest can ask for any number.

Not done: anything over time, such as rolling updates, the pods that a Job starts when others have finished, and the
Jobs of a CronJob. The pods of a StatefulSet are made at once, though most wait until the one before is ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from kschedfw.api.controllers import (
    COMPLETION_INDEX,
    claims_of_stateful_set,
    daemons_of,
    hash_of,
    node_of_daemon,
    pod_of_daemon_set,
    pod_of_job,
    pod_of_stateful_set,
    replica_set_of,
)
from kschedfw.api.field_errors import FieldError, printable
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.kinds import name_of_kind
from kschedfw.api.limits import DEFAULT_LIMITS, Limits, how_to_raise
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.owners import Owners, pod_from_template
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.api.storage import PersistentVolumeClaim
from kschedfw.api.words import counted
from kschedfw.api.workloads import (
    CompletionMode,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    WorkloadObject,
)

_JOB_CONTROLLER: Final = "kubernetes.io/job-controller"


@frozen
class Expansion:
    """The objects of an input with the pods of its workloads.

    Attributes:
        objects: all objects in their order, with Deployments, DaemonSets, Jobs and CronJobs replaced by what their
            controllers make. The pods of a workload are at its position; ReplicaSets, ReplicationControllers and
            StatefulSets are kept, since scheduling reads them, too.
        workloads: the workloads and CronJobs as they were read.
        made: the number of pods that were made, by workload.
        without_pods: the reason why a workload has no pods, by workload.
    """

    objects: tuple[Named, ...]
    workloads: tuple[WorkloadObject | CronJob, ...] = ()
    made: FrozenDict[str, int] = EMPTY
    without_pods: FrozenDict[str, str] = EMPTY


Refuse: TypeAlias = Callable[[Named, FieldError], None]


def expand(
    objects: Iterable[Named],
    limits: Limits = DEFAULT_LIMITS,
    refuse: Refuse = lambda _obj, _error: None,
    *,
    make_pods: bool = True,
    existing: Iterable[Named] = (),
    made: int = 0,
) -> Expansion:
    """Return all objects with the pods that the controllers of workloads would make.

    A workload whose pods would exceed the limit is omitted, and `refuse` is called with the error.

    No pods are made for a workload that was exported from a cluster together with pods of its own: its
    controller had made all its pods. Without `make_pods`, none are made for any. `existing` are the objects of the
    cluster that the objects come on top of: its nodes get pods of DaemonSets, and its claims are used. The
    pods that were `made` before count for the limit.
    """
    everything = list(objects)
    expander = _Expander(everything, (*existing, *everything), make_pods=make_pods)
    allowed = list(expander.within(limits, made, refuse))
    return Expansion(
        tuple(each for obj in allowed for each in expander.replaced(obj)),
        tuple(obj for obj in allowed if isinstance(obj, WorkloadObject | CronJob)),
        FrozenDict(expander.made),
        FrozenDict(expander.without_pods),
    )


@frozen
class _Demand:
    """An upper bound of a workload's missing objects, and the field that determines it."""

    number: int = 0
    path: str = ""
    has_claims: bool = False
    """True if the objects are pods, each with claims."""


class _Expander:
    """Makes the pods of an input's workloads, one after the other."""

    def __init__(self, objects: Sequence[Named], everything: Sequence[Named], *, make_pods: bool) -> None:
        self.made: Counter[str] = Counter()
        self.without_pods: dict[str, str] = {}
        self._objects = objects
        self._owners = Owners(objects)
        self._nodes = [obj for obj in everything if isinstance(obj, Node)]
        self._claims = {obj.key for obj in everything if isinstance(obj, PersistentVolumeClaim)}
        self._make_pods = make_pods
        self._short: set[int] = set()
        """The identities of the workloads that get pods."""

    def within(self, limits: Limits, made: int, refuse: Refuse) -> Iterator[Named]:
        """Yield the objects whose pods are within the limit, and note which workloads get pods."""
        left = limits.pods - made
        for obj in self._objects:
            if isinstance(obj, WorkloadObject | CronJob) and self._make_pods and not self._has_its_pods(obj):
                demand = _Demand()
                if reason := _hindrance(obj) or self._failure(obj):
                    self._note(obj, reason)
                elif not isinstance(obj, CronJob):
                    demand = self._demand(obj)
                if demand.number > left:
                    limit = how_to_raise("pods", limits.pods)
                    objects = counted(demand.number, "more pod") + " and claims" * demand.has_claims
                    why = f"stands for {objects}, but only {left} may still be made: {limit}"
                    refuse(obj, FieldError(demand.path, why))
                    continue
                left -= demand.number
                if not reason:
                    self._short.add(id(obj))
                    if isinstance(obj, StatefulSet):
                        # The names of a StatefulSet's pods are fixed, so no other pod may get them.
                        named = ((obj.namespace, f"{obj.name}-{ordinal}") for ordinal in _ordinals(obj))
                        self._owners.names.update(named)
            yield obj

    def replaced(self, obj: Named) -> Iterator[Named]:
        """Yield what replaces an object: a kept workload itself, then its missing pods with their claims."""
        if not isinstance(obj, WorkloadObject | CronJob):
            yield obj
            return
        if isinstance(obj, ReplicaSet | ReplicationController | StatefulSet):
            yield obj
        pods_owner: Named = obj
        if isinstance(obj, Deployment):
            replica_set = self._replica_set(obj)
            if replica_set is None:
                # The Deployment's ReplicaSets are loaded, too, and get the pods.
                return
            yield replica_set
            pods_owner = replica_set
        if id(obj) not in self._short:
            return
        number = 0
        for each in self._pods(pods_owner):
            number += isinstance(each, Pod)
            yield each
        if number:
            self.made[_named(obj)] += number
        elif isinstance(obj, DaemonSet):
            self._note(obj, "no node is eligible" if self._nodes else "there is no node")

    def _note(self, obj: WorkloadObject | CronJob, reason: str) -> None:
        """Note why a workload has no pods, unless it has some, or is the ReplicaSet of a Deployment's history."""
        if isinstance(obj, CronJob) or (
            not self._owners.pods_of(obj)
            and not (isinstance(obj, ReplicaSet) and obj.metadata.controller is not None)
        ):
            self.without_pods[_named(obj)] = reason

    def _has_its_pods(self, obj: WorkloadObject | CronJob) -> bool:
        """Tell whether the workload was stored by an API server, and pods of it are among the objects."""
        if isinstance(obj, CronJob) or obj.metadata.creation_timestamp is None:
            return False
        owners = self._owners
        return bool(
            owners.pods_of(obj) or (isinstance(obj, Deployment) and owners.pods_by_template_hash(obj))
        )

    def _failure(self, obj: WorkloadObject | CronJob) -> str:
        """Return what an exported controller says of why it can't create pods; empty if it says nothing."""
        match obj:
            case Deployment() if self._owners.replica_sets_of(obj):
                # Its ReplicaSets have the failure in their own status.
                return ""
            case Deployment() | ReplicaSet() | ReplicationController():
                return printable(obj.status.failure)
        return ""

    def _demand(self, obj: WorkloadObject) -> _Demand:
        owners = self._owners
        match obj:
            case Deployment() if owners.replica_sets_of(obj):
                return _Demand()
            case Deployment():
                present = owners.pods_by_template_hash(obj).total()
                return _Demand(max(obj.spec.replicas - present, 0), "spec.replicas")
            case StatefulSet() if claims := len(obj.spec.volume_claim_templates):
                return _Demand(obj.spec.replicas * (1 + claims), "spec.replicas", claims > 0)
            case StatefulSet():
                # Pods of other ordinals don't count.
                return _Demand(obj.spec.replicas, "spec.replicas")
            case ReplicaSet() | ReplicationController():
                return _Demand(max(obj.spec.replicas - len(owners.active_pods_of(obj)), 0), "spec.replicas")
            case Job() if obj.spec.completion_mode is CompletionMode.INDEXED:
                # All its indexes count, however few run at the same time.
                return _Demand(max(obj.spec.completions or 0, 0), "spec.completions")
            case Job():
                return _Demand(_missing_pods(obj, len(owners.active_pods_of(obj))), "spec.parallelism")
            case DaemonSet():
                return _Demand(max(len(self._nodes) - len(owners.active_pods_of(obj)), 0), "spec.template")

    # --- The pods of each kind ---

    def _pods(self, owner: Named) -> Iterator[Named]:
        match owner:
            case ReplicaSet() | ReplicationController():
                yield from self._of_replicas(owner)
            case StatefulSet():
                yield from self._of_stateful_set(owner)
            case Job():
                yield from self._of_job(owner)
            case DaemonSet():
                yield from self._of_daemon_set(owner)

    def _replica_set(self, deployment: Deployment) -> ReplicaSet | None:
        """Return the ReplicaSet that the Deployment makes; None if it has some."""
        template = deployment.spec.template
        if template is None or self._owners.replica_sets_of(deployment):
            return None
        hashes = self._owners.pods_by_template_hash(deployment)
        # The names of pods whose ReplicaSet is missing contain its name.
        template_hash = hashes.most_common(1)[0][0] if hashes else hash_of(template)
        # Pods of older ReplicaSets count towards the Deployment's number.
        replicas = deployment.spec.replicas - (hashes.total() - hashes[template_hash])
        return replica_set_of(deployment, template_hash, replicas)

    def _of_replicas(self, owner: ReplicaSet | ReplicationController) -> Iterator[Pod]:
        template = owner.spec.template
        if template is not None:
            for name in self._free_names(
                owner, owner.spec.replicas - len(self._owners.active_pods_of(owner))
            ):
                yield pod_from_template(owner, template, name)

    def _of_stateful_set(self, owner: StatefulSet) -> Iterator[Named]:
        for ordinal in _ordinals(owner):
            pod = None
            if not self._owners.is_loaded(owner.namespace, f"{owner.name}-{ordinal}"):
                pod = pod_of_stateful_set(owner, ordinal)
            if pod is None:
                continue
            for claim in claims_of_stateful_set(owner, ordinal):
                # A claim of that name is used as it is: those of earlier pods are kept.
                if claim.key not in self._claims:
                    self._claims.add(claim.key)
                    yield claim
            yield pod

    def _of_job(self, job: Job) -> Iterator[Pod]:
        present = self._owners.active_pods_of(job)
        number = _missing_pods(job, len(present))
        named: Iterable[tuple[str, int | None]]
        if job.spec.completion_mode is not CompletionMode.INDEXED:
            named = ((name, None) for name in self._free_names(job, number))
        else:
            indexes = _missing_indexes(job, present)[:number]
            named = ((self._free_name(job, f"{job.name}-{index}"), index) for index in indexes)
        for name, index in named:
            if (pod := pod_of_job(job, name, index)) is not None:
                yield pod

    def _of_daemon_set(self, daemon_set: DaemonSet) -> Iterator[Pod]:
        """Yield the missing pods: one for each eligible node without one."""
        served = {node_of_daemon(pod) for pod in self._owners.active_pods_of(daemon_set)}
        for node, tied in daemons_of(daemon_set, (node for node in self._nodes if node.name not in served)):
            name = self._free_name(daemon_set, f"{daemon_set.name}-{node.name}")
            yield pod_of_daemon_set(daemon_set, tied, name)

    def _free_names(self, owner: Named, number: int) -> Iterator[str]:
        ordinal = 0
        while number > 0:
            name = f"{owner.name}-{ordinal}"
            if self._owners.take(owner.namespace, name):
                number -= 1
                yield name
            ordinal += 1

    def _free_name(self, owner: Named, name: str) -> str:
        """Return the name, or the name with a number if another pod has it: a controller adds a random text."""
        free, number = name, 0
        while not self._owners.take(owner.namespace, free):
            number += 1
            free = f"{name}-{number}"
        return free


def _named(obj: Named) -> str:
    return f"{name_of_kind(obj)} {obj.key}"


def _hindrance(obj: WorkloadObject | CronJob) -> str:
    """Return the reason why the workload's controller makes no pods now; empty if it may make some."""
    if obj.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    match obj:
        case CronJob():
            return "it is suspended" if obj.spec.suspend else "its Jobs come by the clock"
        case Job():
            return _hindrance_of_job(obj)
        case Deployment() if obj.spec.paused:
            return "it is paused"
        case Deployment() | ReplicaSet() | ReplicationController() | StatefulSet() if not obj.spec.replicas:
            return "its spec.replicas is 0"
    return ""


def _hindrance_of_job(job: Job) -> str:
    spec = job.spec
    if spec.managed_by not in ("", _JOB_CONTROLLER):
        return f"its pods are made by {printable(spec.managed_by)}"
    if job.is_finished:
        return "it has finished"
    if spec.suspend:
        return "it is suspended"
    for field, number in (("parallelism", spec.parallelism), ("completions", spec.completions)):
        if number == 0:
            return f"its spec.{field} is 0"
    if not _missing_pods(job, 0) or (
        spec.completion_mode is CompletionMode.INDEXED and _ended_indexes(job) >= (spec.completions or 0)
    ):
        return "nothing is left to do of it"
    return ""


def _ordinals(owner: StatefulSet) -> range:
    start = owner.spec.ordinals.start
    return range(start, start + max(owner.spec.replicas, 0))


def _missing_pods(job: Job, present: int) -> int:
    number = job.spec.parallelism
    if job.spec.completions is not None:
        number = min(number, job.spec.completions - job.status.succeeded)
    elif job.status.succeeded:
        # Its pods decide together when the work is done: one that has succeeded is the last one started.
        return 0
    return max(number - present, 0)


def _missing_indexes(job: Job, present: Sequence[Pod]) -> list[int]:
    over = {pod.annotations.get(COMPLETION_INDEX, pod.labels.get(COMPLETION_INDEX)) for pod in present}
    number = job.spec.completions or 0
    for begin, end in _intervals(job):
        over |= {str(index) for index in range(begin, end)}
    return [index for index in range(number) if str(index) not in over]


def _ended_indexes(job: Job) -> int:
    """Return the number of indexes that have succeeded or failed; they are billions in a crafted status."""
    ended = reached = 0
    for begin, end in sorted(_intervals(job)):
        ended += max(end - max(begin, reached), 0)
        reached = max(reached, end)
    return ended


def _intervals(job: Job) -> Iterator[tuple[int, int]]:
    """Yield the indexes in `1,3-5` that have succeeded or failed, as the first one and the end of each range."""
    number = job.spec.completions or 0
    for text in (job.status.completed_indexes, job.status.failed_indexes):
        # The largest index so far; indexes ascend, so lower ones add nothing.
        reached = 0
        for part in text.split(","):
            first, _, last = part.partition("-")
            if _is_index(first):
                end = min(int(last if _is_index(last) else first) + 1, number)
                if (begin := max(int(first), reached)) < end:
                    yield begin, end
                reached = max(reached, end)


def _is_index(text: str) -> bool:
    # An int64 has 19 digits at most, and Python refuses to read thousands of them.
    return text.isascii() and text.isdecimal() and len(text) < 20
