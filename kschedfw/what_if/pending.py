"""The pending pods of a cluster by what keeps them pending, and what would help each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.what_if.changes import AddNodes, RemoveGates
from kschedfw.what_if.node_groups import NodeGroup, node_shapes
from kschedfw.what_if.remedies import Remedy, attempt, find_remedies
from kschedfw.what_if.results import Refused
from kschedfw.what_if.settling import Settled, settle
from kschedfw.what_if.what_if import WhatIf

MOST_SHAPES: Final = 25
"""How many kinds of nodes of the cluster are tried as new nodes: those of which there are the most."""

_OF_ONE_POD: Final = frozenset(
    (
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
    )
)
"""Labels by which the pods of one workload differ."""


@attrs.frozen
class PodKind:
    """Pending pods that are alike: of one namespace, with the same labels and the same spec.

    `message` is why the first of them has no place, in kube-scheduler's words; `remedies` are the smallest changes that
    help, the smallest first; `tried` is how many changes were tried. A kind that wasn't looked at has tried none, and
    one that `fits` needs none: it waits for pods of other kinds, such as the rest of its gang.
    """

    pods: tuple[Pod, ...]
    message: str
    fits: bool = False
    remedies: tuple[Remedy, ...] = ()
    tried: int = 0


@attrs.frozen
class Why:
    """Pods that are pending for the same reasons, by kind."""

    reasons: tuple[str, ...]
    kinds: tuple[PodKind, ...]

    @property
    def pods(self) -> int:
        """How many pods these are."""
        return sum(len(kind.pods) for kind in self.kinds)


@attrs.frozen
class Pending:
    """What became of the pending pods of a cluster.

    `settled` says which of them have a place now, and which have none. `whys` groups the latter, those with the most
    pods first. `elsewhere` are for schedulers that the configuration has no profile for.
    """

    settled: Settled
    whys: tuple[Why, ...]
    elsewhere: tuple[Pod, ...] = ()

    @property
    def pods(self) -> int:
        """How many pods have no place."""
        return sum(why.pods for why in self.whys)


def explain_pending(
    what_if: WhatIf,
    groups: Iterable[NodeGroup] = (),
    *,
    most: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Pending:
    """Schedule the pending pods, and find out what would help those that get no place.

    The pods that get one keep it in `what_if`. For each kind of those left, changes are tried; for kinds beyond the
    first `most`, only why is told. New nodes may be of the `groups`, or like the ones that the cluster has.
    """
    wanted = what_if.pending
    waiting = [pod for pod in what_if.pods if not (pod.node_name or pod.is_terminal or pod.is_terminating)]
    gated = [pod for pod in waiting if pod.spec.scheduling_gates]
    others = {pod.key for pod in (*gated, *wanted)}
    elsewhere = tuple(pod for pod in waiting if pod.key not in others)
    with what_if.transaction() as trial:
        scheduling = None if progress is None else partial(progress, "scheduling")
        settled = settle(what_if, trial, wanted, preempt=True, progress=scheduling)
        trial.commit()
    kinds = [*_kinds(settled.refused), *_gated_kinds(gated)]
    additions = [
        *(AddNodes(group, exists=False) for group in groups),
        *(AddNodes(shape, exists=True) for shape in node_shapes(what_if.cluster.list(Node))[:MOST_SHAPES]),
    ]
    siblings = [each.pod for each in settled.refused if each.node_name]
    found: dict[tuple[str, ...], list[PodKind]] = {}
    for number, (reasons, kind) in enumerate(sorted(kinds, key=lambda each: -len(each[1].pods))):
        if most is None or number < most:
            if progress is not None:
                progress("trying changes", number, len(kinds) if most is None else min(most, len(kinds)))
            kind = _with_remedies(what_if, kind, additions, siblings)
        found.setdefault(reasons, []).append(kind)
    whys = [Why(reasons, tuple(each)) for reasons, each in found.items()]
    return Pending(settled, tuple(sorted(whys, key=lambda why: -why.pods)), elsewhere)


def _kinds(refused: Sequence[Refused]) -> list[tuple[tuple[str, ...], PodKind]]:
    """The pods that are alike and were refused for the same reasons, with these."""
    found: dict[tuple[object, tuple[str, ...]], list[Refused]] = {}
    for each in refused:
        found.setdefault((_likeness(each.pod), each.reasons), []).append(each)
    return [
        (reasons, PodKind(tuple(each.pod for each in alike), alike[0].message, bool(alike[0].node_name)))
        for (_, reasons), alike in found.items()
    ]


def _gated_kinds(pods: Sequence[Pod]) -> list[tuple[tuple[str, ...], PodKind]]:
    found: dict[object, list[Pod]] = {}
    for pod in pods:
        found.setdefault(_likeness(pod), []).append(pod)
    kinds: list[tuple[tuple[str, ...], PodKind]] = []
    for alike in found.values():
        gates = ", ".join(gate.name for gate in alike[0].spec.scheduling_gates)
        message = f"waiting for scheduling gates: [{gates}]"
        kinds.append(((message,), PodKind(tuple(alike), message)))
    return kinds


def _likeness(pod: Pod) -> object:
    labels = FrozenDict({key: value for key, value in pod.labels.items() if key not in _OF_ONE_POD})
    return pod.namespace, labels, pod.spec


def _with_remedies(
    what_if: WhatIf, kind: PodKind, additions: Sequence[AddNodes], siblings: Sequence[Pod]
) -> PodKind:
    if kind.fits:
        return kind
    gates = tuple(gate.name for gate in kind.pods[0].spec.scheduling_gates)
    if gates:
        remedy = attempt(what_if, (RemoveGates(gates),), kind.pods)
        return attrs.evolve(kind, remedies=() if remedy is None else (remedy,), tried=1)
    found = find_remedies(what_if, kind.pods, additions, siblings)
    return attrs.evolve(kind, remedies=found.remedies, tried=found.tried)
