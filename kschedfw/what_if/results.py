"""The answers of a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Diagnosis
from kschedfw.framework.nodes.selection import NodeSelection


@frozen(eq=False, slots=False)
class Feasibility:
    """The nodes where a pod fits, and why it doesn't fit elsewhere. True if the pod fits somewhere."""

    pod: Pod
    diagnosis: Diagnosis
    """Why the other nodes aren't feasible."""
    message: str
    """Why the pod fits nowhere, as kube-scheduler says it in the pod's condition; empty if it fits."""
    _feasible: NodeSelection | None

    def __bool__(self) -> bool:
        return self._feasible is not None and len(self._feasible.rows) > 0

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The feasible nodes, in the order in which they are visited."""
        return () if self._feasible is None else tuple(info.name for info in self._feasible)


@frozen(eq=False)
class Placed:
    """A pod that got a place.

    `pod` is the pod as it was, without the node. `victims` were preempted for it: bound ones are gone, and those that
    were placed in a transaction are pending again.
    """

    pod: Pod
    node_name: str
    victims: tuple[Pod, ...] = ()


@frozen(eq=False)
class Waiting:
    """A pod that has a place and waits for permission to run there, such as a member of a gang that isn't complete.

    `plugins` hold it; `message` has their reasons. `victims` are as for `Placed`.
    """

    pod: Pod
    node_name: str
    plugins: tuple[str, ...]
    message: str = ""
    victims: tuple[Pod, ...] = ()

    def in_vain(self) -> Refused:
        """Return the outcome if the pod waits in vain."""
        what = self.message or f"for permission of {', '.join(self.plugins)}"
        return Refused(self.pod, f"fits, but waits: {what}", Diagnosis(), self.node_name, self.victims)


@frozen(eq=False)
class Refused:
    """A pod that got no place: the reason, as kube-scheduler says it in the pod's condition, and in parts.

    `node_name` is the place that it lost because others of its group got none; empty if it had none. `victims`
    were preempted for it in vain.
    """

    pod: Pod
    message: str
    diagnosis: Diagnosis
    node_name: str = ""
    victims: tuple[Pod, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons without numbers of nodes and without preemption, in alphabetical order."""
        diagnosis = self.diagnosis
        if diagnosis.pre_filter_message:
            return (diagnosis.pre_filter_message,)
        return tuple(sorted(diagnosis.reasons(len(diagnosis.node_to_status)))) or (self.message,)


PodResult: TypeAlias = Placed | Waiting | Refused
"""The outcome for one pod."""


@frozen(eq=False)
class Schedule:
    """The outcomes for pods, in the order in which they were scheduled. True if all of them would run.

    A pod that had a place and lost it, as its gang was given up, is refused.
    """

    placed: tuple[Placed, ...]
    refused: tuple[Refused, ...]
    waiting: tuple[Waiting, ...] = ()

    @classmethod
    def of(cls, outcomes: Sequence[PodResult]) -> Schedule:
        return cls(
            tuple(each for each in outcomes if isinstance(each, Placed)),
            tuple(each for each in outcomes if isinstance(each, Refused)),
            tuple(each for each in outcomes if isinstance(each, Waiting)),
        )

    @classmethod
    def none_of(cls, outcomes: Sequence[PodResult]) -> Schedule:
        """Return the outcome where all or none were to be placed, and not all can be."""
        others = [each for each in outcomes if not isinstance(each, Placed)]
        first = next((each for each in others if isinstance(each, Refused)), others[0])
        message = (
            f"all or none are placed, and {len(others)} of {len(outcomes)} pods would not run, "
            f"{first.pod.key} for one: {first.message}"
        )
        return cls.of(
            [
                each if isinstance(each, Refused) else Refused(each.pod, message, Diagnosis())
                for each in outcomes
            ]
        )

    def __bool__(self) -> bool:
        return not (self.refused or self.waiting)


@frozen(eq=False)
class Replicas:
    """The replicas of a pod that got a place, and the refusal of the next one, or None if the limit ended the count.

    `waiting` replicas have a place, too, but don't count: they would only run if permitted.
    """

    placed: tuple[Placed, ...]
    refusal: Refused | None
    waiting: tuple[Waiting, ...] = ()

    @property
    def count(self) -> int:
        return len(self.placed)

    @property
    def by_node(self) -> Mapping[str, int]:
        """The number of replicas on each node, in the order of the first replica there."""
        return Counter(each.node_name for each in self.placed)


@frozen(eq=False)
class Evictions:
    """The outcome of evictions. True if no eviction is blocked.

    `evicted` pods are pending again, as if just created. `blocked` pods stay because a disruption budget
    doesn't allow their eviction, with the reason. `staying` pods belong to their nodes (pods of DaemonSets,
    mirror pods), or are being deleted.
    """

    evicted: tuple[Pod, ...]
    blocked: tuple[tuple[Pod, str], ...]
    staying: tuple[Pod, ...]

    def __bool__(self) -> bool:
        return not self.blocked
