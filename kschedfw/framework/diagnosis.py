"""Why a pod fits nowhere (kube-scheduler `NodeToStatus`, `Diagnosis`, `FitError`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.framework.status import Code, Status


@attrs.define(eq=False)
class NodeToStatus:
    """The status that each refused node got, and one status that all nodes not listed share."""

    statuses: dict[str, Status] = attrs.field(factory=dict)
    absent: Status = attrs.field(factory=Status.unresolvable)

    def get(self, node_name: str) -> Status:
        return self.statuses.get(node_name, self.absent)

    def set(self, node_name: str, status: Status) -> None:
        self.statuses[node_name] = status

    def __iter__(self) -> Iterator[tuple[str, Status]]:
        """The nodes that have a status of their own."""
        return iter(self.statuses.items())

    def __len__(self) -> int:
        return len(self.statuses)


@attrs.define(eq=False)
class Diagnosis:
    """What the hooks said about a pod that doesn't fit.

    `pre_filter_message` is set when pre_filter rejected the pod outright. `unschedulable_plugins` are those
    whose opinion must change before the pod can fit; those among them that wait for something outside the cluster
    are `pending_plugins`, too.
    """

    node_to_status: NodeToStatus = attrs.field(factory=NodeToStatus)
    unschedulable_plugins: set[str] = attrs.field(factory=set)
    pending_plugins: set[str] = attrs.field(factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def add_plugin_status(self, status: Status) -> None:
        """Note the plugin behind a refusal."""
        if not status.plugin:
            return
        if status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)
        if status.code is Code.PENDING:
            self.pending_plugins.add(status.plugin)

    def reasons(self, number_of_nodes: int) -> Mapping[str, int]:
        """How many of `number_of_nodes` nodes gave each reason."""
        counts: Counter[str] = Counter()
        for _, status in self.node_to_status:
            counts.update(status.reasons)
        if (rest := number_of_nodes - len(self.node_to_status)) > 0:
            for reason in self.node_to_status.absent.reasons:
                counts[reason] += rest
        return counts


class NoNodesAvailableError(KschedfwError):
    """There isn't a single node to schedule onto."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


class FitError(KschedfwError):
    """The pod fits on no node; the text is the one kube-scheduler puts into the pod's condition."""

    def __init__(self, pod: Pod, number_of_nodes: int, diagnosis: Diagnosis) -> None:
        super().__init__(pod, number_of_nodes, diagnosis)
        self.pod = pod
        self.number_of_nodes = number_of_nodes
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        text = f"0/{self.number_of_nodes} nodes are available:"
        if self.diagnosis.pre_filter_message:
            # every node carries this very message, so counting reasons would only repeat it
            text += f" {self.diagnosis.pre_filter_message}."
        else:
            counts = self.diagnosis.reasons(self.number_of_nodes)
            if reasons := sorted(f"{count} {reason}" for reason, count in counts.items()):
                text += f" {', '.join(reasons)}."
        if self.diagnosis.post_filter_message:
            text += f" {self.diagnosis.post_filter_message}"
        return text
