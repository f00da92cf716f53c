"""Tries preemption out, node by node, without touching anything (kube-scheduler `DryRunPreemption`)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.extender import Victims
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import Candidate
from kschedfw.framework.preemption.rules import PreemptionRules
from kschedfw.framework.status import Code, Status

_NOT_HELPFUL = Status.unresolvable("Preemption is not helpful for scheduling")
_NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")


def no_candidates() -> NodeToStatus:
    """Statuses that say of all nodes that preemption doesn't help."""
    return NodeToStatus(absent=_NOT_HELPFUL)


@attrs.define(eq=False)
class DryRun:
    """What came of it: the candidates, those without violated budgets first, and why other nodes are none.

    Nodes that weren't tried, because there were candidates enough or because they can't help, have no status
    of their own. `errors` are the statuses of nodes where a plugin failed.
    """

    candidates: tuple[Candidate, ...] = ()
    node_to_status: NodeToStatus = attrs.field(factory=no_candidates)
    errors: tuple[Status, ...] = ()


@attrs.define(eq=False)
class _Collector:
    """Takes outcomes in order of the nodes and knows when there are enough: as many as wanted, one of them harmless."""

    wanted: int
    harmless: list[Candidate] = attrs.field(factory=list)
    violating: list[Candidate] = attrs.field(factory=list)

    def add(self, outcome: tuple[str, Victims | Status]) -> bool:
        node_name, victims = outcome
        if isinstance(victims, Status):
            return False
        into = self.violating if victims.num_pdb_violations else self.harmless
        if len(into) < self.wanted:
            into.append(Candidate(node_name, victims))
        return bool(self.harmless) and len(self.harmless) + len(self.violating) >= self.wanted


def dry_run(
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    budgets: DisruptionBudgets,
    *,
    offset: int,
    wanted: int,
) -> DryRun:
    """Try the nodes from `offset` on, round the end, until there are `wanted` candidates (see `_Collector`).

    Nodes are tried on the parallelizer's threads, each on its own copy of state and node; the result is that of a
    serial run. Exceptions of the rules come through.
    """

    def try_node(index: int) -> tuple[str, Victims | Status]:
        node_info = nodes[(offset + index) % len(nodes)]
        return node_info.name, _try_node(rules, state, pod, node_info, budgets)

    collector = _Collector(wanted)
    outcomes = rules.handle.parallelizer.map_until(len(nodes), try_node, collector.add)
    result = DryRun((*collector.harmless, *collector.violating))
    for node_name, outcome in outcomes:
        if isinstance(outcome, Status):
            result.node_to_status.set(node_name, outcome)
    result.errors = tuple(status for _, status in result.node_to_status if status.code is Code.ERROR)
    return result


def _try_node(
    rules: PreemptionRules, state: CycleState, pod: Pod, node_info: NodeInfo, budgets: DisruptionBudgets
) -> Victims | Status:
    potential = rules.potential_victims(pod, node_info)
    if not potential:
        # Nothing would change, so there is no need for the copies.
        return _NO_VICTIMS
    outcome = rules.select_victims(state.clone(), pod, node_info.clone(), potential, budgets)
    if isinstance(outcome, Victims) and not outcome.pods:
        return Status.from_error(f'expected at least one victim pod on node "{node_info.name}"')
    return outcome
