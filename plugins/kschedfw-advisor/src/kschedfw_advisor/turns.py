"""The number of replicas of pods, and of copies of groups, that fit: each kind alone, and several kinds in turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count as numbers
from typing import Final, TypeAlias, overload

import attrs

from kschedfw import Node, ObjectMeta, Pod, Transaction
from kschedfw.api import PodGroup, PodSchedulingGroup, group_key
from kschedfw.explain import Cause, GroupStep, cause_of_group, causes_of
from kschedfw.what_if import Placed, PodResult, Progress, Refused, Replicas, Schedule, Waiting
from kschedfw_advisor.workloads import group_of

_AT_A_TIME: Final = 200
"""The number of pods placed between two calls of `Progress`."""


@attrs.frozen
class GroupTemplate:
    """A PodGroup with its members, the pods of one copy."""

    group: PodGroup
    pods: tuple[Pod, ...]

    @property
    def name(self) -> str:
        return group_key(self.pods[0])

    def __str__(self) -> str:
        return str(group_of(self.pods[0]))

    def copy(self, number: int) -> GroupTemplate:
        """Return the copy of this number: the group and its members have the number after their names."""
        group = self.group.with_metadata(_numbered(self.group, number))
        return GroupTemplate(group, tuple(_member(pod, number, group) for pod in self.pods))


def _numbered(obj: PodGroup | Pod, number: int) -> ObjectMeta:
    return attrs.evolve(obj.metadata, name=f"{obj.name}-{number}", uid="", resource_version="")


def _member(pod: Pod, number: int, group: PodGroup) -> Pod:
    spec = attrs.evolve(pod.spec, scheduling_group=PodSchedulingGroup(group.name))
    return attrs.evolve(pod, metadata=_numbered(pod, number), spec=spec)


@attrs.frozen
class WithoutPlace:
    """A member that fits nowhere beside the others, or whose place is of no use to the group, with the reason."""

    pod: Pod
    message: str


@attrs.frozen(eq=False)
class NextCopy:
    """The copy that doesn't fit. `would_run` of its members could run without the others.

    `domain` is the value of the node label of the placement that takes most of the members, the nearest; it is empty
    without a topology constraint. `without_place` are the members that it doesn't take.
    """

    would_run: int
    domain: str
    without_place: tuple[WithoutPlace, ...]
    cause: Mapping[str, object] | None = None
    """The cause of the group, for programs (`cause_of_group`)."""

    @classmethod
    def of(cls, outcome: Schedule, explained: GroupStep) -> NextCopy:
        """Return the copy with this outcome; kube-scheduler's own messages are those of the first placement tried."""
        would_run, nearest, cause = len(outcome.placed), explained.nearest, cause_of_group(explained)
        if nearest is None or not nearest.refused:
            refused = (*outcome.refused, *(each.in_vain() for each in outcome.waiting))
            nowhere = [each for each in refused if not each.node_name] or refused
            return cls(would_run, "", tuple(WithoutPlace(each.pod, each.message) for each in nowhere), cause)
        outcomes: tuple[PodResult, ...] = (*outcome.placed, *outcome.waiting, *outcome.refused)
        pods = {each.pod.key: each.pod for each in outcomes}
        without = tuple(WithoutPlace(pods[each.pod], each.message) for each in nearest.refused)
        return cls(would_run, nearest.name, without, cause)

    @property
    def message(self) -> str:
        """The message that most of the members without a place have."""
        return Counter(each.message for each in self.without_place).most_common(1)[0][0]


@attrs.frozen(eq=False)
class ReplicasOf(Replicas):
    """The replicas of a pod that fit, and the causes that keep the next one off nodes, the decisive ones first."""

    causes: tuple[Cause, ...] = ()


@attrs.frozen(eq=False, slots=False)
class Copies:
    """The copies of a group all of whose members got a place, and what became of the next one.

    `domains` has for each copy the value of the node label that its members share; it is empty without a topology
    constraint. `next` is None if none was refused.
    """

    placed: tuple[tuple[Placed, ...], ...]
    domains: tuple[str, ...] = ()
    next: NextCopy | None = None

    @property
    def count(self) -> int:
        return len(self.placed)

    @property
    def by_node(self) -> Mapping[str, int]:
        """The number of members on each node, in the order of the first member there."""
        return Counter(each.node_name for copy in self.placed for each in copy)

    @property
    def by_domain(self) -> Mapping[str, int]:
        """The number of copies in each domain of the topology constraint, in the order of the first copy there."""
        return Counter(self.domains)


Wanted: TypeAlias = Pod | GroupTemplate
Fit: TypeAlias = ReplicasOf | Copies


@overload
def fit(trial: Transaction, wanted: Pod, at_most: int, progress: Progress | None = None) -> ReplicasOf: ...
@overload
def fit(
    trial: Transaction, wanted: GroupTemplate, at_most: int, progress: Progress | None = None
) -> Copies: ...
def fit(trial: Transaction, wanted: Wanted, at_most: int, progress: Progress | None = None) -> Fit:
    """Place as many replicas of the pod, or copies of the group, as fit; the trial is as before afterwards.

    No more than `at_most` are placed. `progress` is called with how many have a place, and with `at_most`.
    """
    with trial.transaction() as nested:
        series = _series(nested, wanted)
        while not series.is_stopped and series.count < at_most:
            series.place(min(series.at_a_time, at_most - series.count))
            if progress is not None:
                progress(series.count, at_most)
        return series.as_it_stands()


def fit_in_turns(
    trial: Transaction, wanted: Sequence[Wanted], at_most: int, progress: Progress | None = None
) -> tuple[Fit, ...]:
    """Place a replica or copy of each in turn, until none of them fits; the trial is as before afterwards.

    A template that is refused drops out of the turns. Each is placed up to `at_most` times.
    """
    with trial.transaction() as nested:
        series = [_series(nested, each) for each in wanted]
        for turn in range(at_most):
            going = [each for each in series if not each.is_stopped]
            if not going:
                break
            for each in going:
                each.place(1)
            if progress is not None:
                progress(turn, at_most)
        return tuple(each.as_it_stands() for each in series)


def _series(trial: Transaction, wanted: Wanted) -> _Replicas | _Copies:
    return _Copies(trial, wanted) if isinstance(wanted, GroupTemplate) else _Replicas(trial, wanted)


class _Replicas:
    """The replicas of a pod that were placed so far."""

    at_a_time = _AT_A_TIME

    def __init__(self, trial: Transaction, pod: Pod) -> None:
        self._trial = trial
        self._pod = pod
        self._fitting: list[Placed | Waiting] = []
        self._refusal: Refused | None = None

    @property
    def is_stopped(self) -> bool:
        return self._refusal is not None

    @property
    def count(self) -> int:
        return len(self._fitting)

    def place(self, count: int) -> None:
        """Place so many more, or until one is refused."""
        more = self._trial.schedule_as_many(self._pod, at_most=count)
        self._fitting += (*more.placed, *more.waiting)
        self._refusal = more.refusal

    def as_it_stands(self) -> ReplicasOf:
        """The replicas that fit, divided by whether they wait now: what some of them waited for may have come."""
        now = {each.pod.key: each for each in self._trial.waiting}
        placed = [Placed(each.pod, each.node_name) for each in self._fitting if each.pod.key not in now]
        waiting = tuple(now[each.pod.key] for each in self._fitting if each.pod.key in now)
        return ReplicasOf(tuple(placed), self._refusal, waiting, self._causes())

    def _causes(self) -> tuple[Cause, ...]:
        """Return what keeps the next replica off nodes now."""
        return () if self._refusal is None else causes_of(self._trial.explain(self._refusal.pod))


class _Copies:
    """The copies of a group that were placed so far."""

    def __init__(self, trial: Transaction, template: GroupTemplate) -> None:
        self.at_a_time = max(1, _AT_A_TIME // len(template.pods))
        self._trial = trial
        self._template = template
        self._taken: set[tuple[type, str]] = set()
        self._labels: dict[str, Mapping[str, str]] = {}
        for obj in trial.objects():
            if isinstance(obj, PodGroup | Pod):
                self._taken.add((type(obj), obj.key))
            elif isinstance(obj, Node):
                self._labels[obj.name] = obj.labels
        self._numbers = numbers(1)
        self._placed: list[tuple[Placed, ...]] = []
        self._next: NextCopy | None = None

    @property
    def is_stopped(self) -> bool:
        return self._next is not None

    @property
    def count(self) -> int:
        return len(self._placed)

    def place(self, count: int) -> None:
        """Place so many more, or until one is refused."""
        for _ in range(count):
            copy = self._free_copy()
            # A copy is placed as a whole or not at all.
            with self._trial.transaction() as one:
                one.add(copy.group)
                found = one.schedule(copy.pods)
                if found:
                    one.commit()
            if not found:
                self._next = NextCopy.of(found, self._explained(copy))
                return
            self._placed.append(found.placed)

    def _explained(self, copy: GroupTemplate) -> GroupStep:
        """Return the explanation of why the copy doesn't fit."""
        with self._trial.transaction() as one:
            one.add(copy.group)
            return one.explain_group(copy.pods)

    def _free_copy(self) -> GroupTemplate:
        """Return the next copy whose objects' names are all free."""
        # Copies have numbers of their own, so only what was there before can have one's name.
        return next(
            copy
            for copy in map(self._template.copy, self._numbers)
            if self._taken.isdisjoint((type(obj), obj.key) for obj in (copy.group, *copy.pods))
        )

    def as_it_stands(self) -> Copies:
        key = self._template.group.topology_key
        domains = tuple(self._labels[copy[0].node_name][key] for copy in self._placed) if key else ()
        return Copies(tuple(self._placed), domains, self._next)
