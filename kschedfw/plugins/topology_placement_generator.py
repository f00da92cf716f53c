"""TopologyPlacementGenerator: a group with a topology constraint goes into one domain.

Semantics: kube-scheduler v1.36 `topologyaware`; KEP-5732.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kschedfw import (
    MEMBER_STATES,
    CycleState,
    GroupPlacement,
    KschedfwError,
    NodeSelection,
    Plugin,
    QueuedGroup,
    hookimpl,
)


class ScheduledDomainError(KschedfwError):
    """The domain of a group's scheduled members can't be determined."""


class TopologyPlacementGenerator(Plugin):
    """Makes a placement of each domain: of the nodes with the same value of the constraint's label.

    If members are scheduled already, theirs is the only one.
    """

    name = "TopologyPlacementGenerator"

    @hookimpl
    def placement_generate(
        self, state: CycleState, group: QueuedGroup, placement: GroupPlacement
    ) -> Sequence[GroupPlacement]:
        key = "" if group.object is None else group.object.topology_key
        if not key:
            return [placement]
        fixed = self._domain_of_scheduled(state, key)
        table, rows = placement.nodes.table, placement.nodes.rows
        labels = table.label(key)
        codes = labels.codes.take(rows)
        # Stable, so that a domain's nodes stay in visiting order.
        order = codes.argsort(kind="stable")
        present, firsts = np.unique(codes[order], return_index=True)
        by_domain = zip(present.tolist(), np.split(rows[order], firsts[1:]), strict=True)
        domains = {value: found for code, found in by_domain if (value := labels.values[code]) is not None}
        # Sorted, since kube-scheduler's order is random and ours has to be reproducible.
        return [
            GroupPlacement(value, NodeSelection(table, domains[value]))
            for value in sorted(domains)
            if fixed is None or value == fixed
        ]

    def _domain_of_scheduled(self, state: CycleState, key: str) -> str | None:
        """The label's value on the nodes of the scheduled members; None without such members."""
        domain: str | None = None
        for pod in state.read(MEMBER_STATES).scheduled:
            info = self.handle.snapshot.find(pod.node_name)
            if info is None:
                missing = f'nodeinfo not found for node name "{pod.node_name}"'
                raise _undetermined(f"getting node for pod {pod.key}: {missing}")
            value = info.node.labels.get(key)
            if value is None:
                raise _undetermined(f"no topology domain found for pod {pod.key}")
            # As in kube-scheduler an empty value doesn't count as a domain here, so no clash is seen with it.
            if domain and domain != value:
                raise _undetermined(f"more than 1 domain found for pod group: {domain}, {value}")
            domain = value
        return domain


def _undetermined(problem: str) -> ScheduledDomainError:
    return ScheduledDomainError(f"cannot determine domain for already scheduled pods: {problem}")
