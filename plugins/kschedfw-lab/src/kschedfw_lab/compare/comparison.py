"""The result of comparing configurations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api import EMPTY, RefusedPod
from kschedfw.cluster import MissingObject
from kschedfw.explain import SCHEMA_VERSION
from kschedfw.simulator import Decision, Report, Spread
from kschedfw_lab.compare.metrics import Fragmentation, NodeAllocation
from kschedfw_lab.compare.upgrade import UpgradeReason
from kschedfw_lab.compare.why import Against, Ground


@attrs.frozen
class ComparedRun:
    """The run of one configuration.

    `imbalance_within` is the distribution, over the nodes, of how unevenly a node's resources are used. The report's
    utilisation has in `stddev` how unevenly a resource is used between nodes. `allocations` has every node, in the
    order of the input, with its final allocation. `own` are the values of own metrics and of plugins' counters.
    """

    label: str
    report: Report
    imbalance_within: Spread
    fragmentation: Sequence[Fragmentation]
    allocations: Sequence[NodeAllocation]
    own: Mapping[str, float] = EMPTY

    @property
    def nodes_in_use(self) -> int:
        """The number of nodes with at least one pod."""
        return sum(allocation.pods > 0 for allocation in self.allocations)

    @property
    def nodes_with_own_pods_only(self) -> int:
        """The number of nodes in use that have nothing but pods of DaemonSets and static ones."""
        return sum(allocation.has_only_its_own for allocation in self.allocations)

    def to_json(self) -> dict[str, object]:
        report = self.report.to_json()
        # `simulate --json` lists every decision. A comparison lists only those that differ.
        del report["decisions"]
        # These are the same for all runs, so the comparison has them once.
        del report["schemaVersion"], report["missing"], report["refused"]
        return {
            "label": self.label,
            **report,
            "nodesInUse": self.nodes_in_use,
            "nodesWithOwnPodsOnly": self.nodes_with_own_pods_only,
            "metrics": dict(self.own),
            "imbalance": {
                "betweenNodes": {usage.resource: usage.per_node.stddev for usage in self.report.utilisation},
                "withinNodes": attrs.asdict(self.imbalance_within),
            },
            "fragmentation": {
                each.resource: {"unusable": each.unusable, "free": each.free, "share": each.share}
                for each in self.fragmentation
            },
            "nodeAllocations": [
                {
                    "node": each.node,
                    "requested": dict(each.requested),
                    "allocatable": dict(each.allocatable),
                }
                for each in self.allocations
            ],
        }


class FateChange(StrEnum):
    """The kinds of differences between two outcomes of a pod."""

    MOVED = "moved"
    GAINED = "newly placed"
    LOST = "no longer placed"
    OTHER = "not placed either way"

    @property
    def code(self) -> str:
        """Return the code of the difference for programs."""
        return self.value.replace(" ", "-")

    @property
    def meaning(self) -> str:
        """Return what it says of the pod."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    FateChange.MOVED: "the pod has another node than under the baseline",
    FateChange.GAINED: "the pod has a node, and none under the baseline",
    FateChange.LOST: "the pod has no node, and one under the baseline",
    FateChange.OTHER: "the pod has no node either way, for another reason",
}


@attrs.frozen
class Move:
    """A pod whose outcome under a configuration differs from that under the baseline.

    `before` is its decision under the baseline, `after` under the other configuration. One of them is None if that
    configuration doesn't schedule the pod. `baseline_against` says why the baseline didn't choose the other
    configuration's node. `against` says why the other configuration didn't choose the baseline's node. `reason` has the
    changes between the two versions of Kubernetes that it comes from, if these were looked for.
    """

    pod: str
    before: Decision | None
    after: Decision | None
    baseline_against: Against | None = None
    against: Against | None = None
    reason: UpgradeReason | None = None

    @property
    def change(self) -> FateChange:
        had, has = place(self.before), place(self.after)
        if had is None:
            return FateChange.OTHER if has is None else FateChange.GAINED
        return FateChange.LOST if has is None else FateChange.MOVED

    def to_json(self) -> dict[str, object]:
        return {
            "pod": self.pod,
            "change": self.change.value,
            "code": self.change.code,
            "before": _decision_json(self.before),
            "after": _decision_json(self.after),
            "baselineAgainst": None if self.baseline_against is None else self.baseline_against.to_json(),
            "against": None if self.against is None else self.against.to_json(),
            "reason": None if self.reason is None else self.reason.to_json(),
        }


def fate(decision: Decision | None) -> object:
    """Return what counts of a pod's outcome in a comparison: its kind, and the node."""
    return None if decision is None else (decision.outcome, place(decision))


def place(decision: Decision | None) -> str | None:
    """Return the pod's final node."""
    return None if decision is None else decision.place


def _decision_json(decision: Decision | None) -> dict[str, object] | None:
    return None if decision is None else decision.to_json()


@attrs.frozen
class Moves:
    """The pods whose outcome under a configuration differs from that under the baseline, in the baseline's order."""

    baseline: str
    label: str
    moves: Sequence[Move]

    def count(self, change: FateChange) -> int:
        return sum(move.change is change for move in self.moves)

    @property
    def causes(self) -> Mapping[tuple[Ground, str], int]:
        """The reasons why the baseline's nodes weren't chosen: pods by ground and plugin, most frequent first."""
        counts = Counter(
            (move.against.ground, move.against.plugin) for move in self.moves if move.against is not None
        )
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def reasons(self) -> Mapping[str, int]:
        """The changes between versions that pods fared differently by: pods by reason, most frequent first."""
        counts = Counter(str(move.reason) for move in self.moves if move.reason is not None)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def to_json(self) -> dict[str, object]:
        return {
            "baseline": self.baseline,
            "label": self.label,
            "counts": {change.value: self.count(change) for change in FateChange},
            "causes": [
                {"ground": ground.value, "plugin": plugin or None, "pods": pods}
                for (ground, plugin), pods in self.causes.items()
            ],
            "reasons": [{"reason": reason, "pods": pods} for reason, pods in self.reasons.items()],
            "moves": [move.to_json() for move in self.moves],
        }


@attrs.frozen
class Comparison:
    """The same cluster and pods under several configurations. The first one is the baseline.

    `moves` has an entry for each of the others, in their order. An interruption ends the comparison early; the
    interrupted run is then the last of `runs` and has no moves.
    """

    seed: int
    runs: Sequence[ComparedRun]
    moves: Sequence[Moves]
    notes: Sequence[str] = ()

    @property
    def interrupted(self) -> bool:
        return any(run.report.interrupted for run in self.runs)

    @property
    def missing(self) -> Sequence[MissingObject]:
        """Objects that pods refer to and the cluster lacks."""
        return self.runs[0].report.missing

    @property
    def refused(self) -> Sequence[RefusedPod]:
        """Pods that an API server would refuse to create, so that no run has them."""
        return self.runs[0].report.refused

    def to_json(self) -> dict[str, object]:
        """The comparison in types that `json.dumps` knows; the keys are part of kschedfw's interface."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "seed": self.seed,
            "interrupted": self.interrupted,
            "baseline": self.runs[0].label,
            "notes": list(self.notes),
            "missing": [each.to_json() for each in self.missing],
            "refused": [each.to_json() for each in self.refused],
            "runs": [run.to_json() for run in self.runs],
            "moves": [moves.to_json() for moves in self.moves],
        }
