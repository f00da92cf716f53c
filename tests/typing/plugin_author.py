"""A plugin as its author would write it: arguments, cycle state, batch forms, books. Type-checked and run by tests."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    FieldError,
    Handle,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    PodInfo,
    PostFilterResult,
    PreFilterResult,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)

WRONG_RACK = Status.unresolvable("node(s) were in the wrong rack")


@attrs.frozen
class RackArgs:
    label: str = "rack"
    most_per_rack: int = 100

    def validate(self) -> Iterator[FieldError]:
        if self.most_per_rack < 1:
            yield FieldError("mostPerRack", f"Invalid value: {self.most_per_rack}: must be at least 1")


@attrs.define
class Counts:
    """Pods by rack; changes with every pod that is put somewhere for trial."""

    by_rack: dict[str, int]

    def clone(self) -> Counts:
        return Counts(dict(self.by_rack))


COUNTS = StateKey[Counts]("Rack.counts")


class Rack(Plugin[RackArgs]):
    """Keeps pods in the racks that they name, and spreads them over those."""

    name = "Rack"
    args_type = RackArgs
    reads = Reads.CLUSTER

    def __init__(self, args: RackArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._reserved: dict[str, str] = {}

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.labels.get("racks")

    def _rack(self, node_info: NodeInfo) -> str:
        return node_info.node.labels.get(self.args.label, "")

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)]

    @hookimpl
    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> PreFilterResult | Status | None:
        if "racks" not in pod.labels:
            return Status.skip()
        by_rack: dict[str, int] = {}
        for info in nodes:
            by_rack[self._rack(info)] = by_rack.get(self._rack(info), 0) + len(info.pods)
        state.write(COUNTS, Counts(by_rack))
        racks = pod.labels["racks"].split(".")
        return PreFilterResult.of(info.name for info in nodes if self._rack(info) in racks)

    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, pod_info_to_add: PodInfo, node_info: NodeInfo) -> None:
        counts: Counts = state.read(COUNTS)
        counts.by_rack[self._rack(node_info)] += 1

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        if state.read(COUNTS).by_rack[self._rack(node_info)] >= self.args.most_per_rack:
            return Status.unschedulable("node(s) were in a full rack")
        return None

    @hookimpl
    def filter_batch(
        self, state: CycleState, nodes: NodeTable, rows: npt.NDArray[np.int64]
    ) -> Verdicts | None:
        column = nodes.label(self.args.label)
        counts = state.read(COUNTS).by_rack
        full = np.array(
            [counts[rack or ""] >= self.args.most_per_rack for rack in column.values], dtype=np.bool_
        )
        if not full.any():
            return Verdicts(np.zeros(len(rows), dtype=np.int8), (Status.success(),))
        return Verdicts.refuse(full[column.codes[rows]], Status.unschedulable("node(s) were in a full rack"))

    @hookimpl
    def post_filter(self, pod: Pod) -> tuple[PostFilterResult | None, Status | None]:
        return None, Status.unschedulable(f"no rack has room for {pod.key}")

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return -len(node_info.pods)

    @hookimpl
    def normalize_score(self, scores: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        lowest = int(scores.min(initial=0))
        return scores * 0 + 100 if lowest == 0 else (scores - lowest) * 100 // -lowest

    @hookimpl
    def reserve(self, pod: Pod, node_name: str) -> Status | None:
        self._reserved[pod.uid] = node_name
        return None

    @hookimpl
    def unreserve(self, pod: Pod) -> None:
        self._reserved.pop(pod.uid, None)

    @hookimpl
    def permit(self, pod: Pod) -> Status:
        if len(self._reserved) < 2:
            return Status.wait(30.0, "waits for company")
        for waiting in self.handle.waiting_pods:
            waiting.allow(self.name)
        return Status.success()


def reserved(rack: Rack) -> Mapping[str, str]:
    return rack._reserved
