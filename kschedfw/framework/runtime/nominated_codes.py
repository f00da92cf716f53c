"""Verdicts that leave room for nominated pods, kept in step with nodes and nominations."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.columns import CombinedCodes
from kschedfw.framework.runtime.filter_columns import Findings
from kschedfw.framework.runtime.filter_hooks import FilterHooks, FilterPlugin
from kschedfw.framework.runtime.memo import Cycle
from kschedfw.framework.runtime.status_codes import ERROR, PASS, StatusCodes


class NominatedCodes(CombinedCodes):
    """The first refusal for pods of one priority, with and without the nominated pods that they leave room for."""

    __slots__ = ("nominations",)

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table, Reads.PODS)
        self.nominations = 0
        """The nominator's version that this is in step with."""


class NominatedRoom:
    """Takes nominated pods into account where every filter's answers are kept.

    Only nodes that have changed, or whose nominations have, are asked about with their nominated pods; without them
    the filters' verdict is known already.
    """

    def __init__(self, hooks: FilterHooks, status_codes: StatusCodes, nominator: Nominator) -> None:
        self._hooks = hooks
        self._status_codes = status_codes
        self._nominator = nominator

    def leave(
        self, filters: tuple[FilterPlugin, ...], cycle: Cycle, nodes: NodeSelection, findings: Findings
    ) -> bool:
        """Change the findings, which are those without nominated pods; False if that isn't possible here."""
        alone = findings.combined
        if alone is None or not self._hooks.are_local(cycle.state, cycle.pods.answers):
            return False
        table = nodes.table
        key = (filters, "nominated", cycle.pod.priority)
        beside = cycle.pods.column(key, lambda: NominatedCodes(table))
        rows = self._to_ask(beside, alone, table)
        own = table.rows.get(self._nominator.node_of(cycle.pod.uid), -1)
        failed: list[int] = []
        for row in rows:
            if row != own:
                code = self._code(filters, cycle, table, row, alone, findings)
                if (beside.values[row] == PASS) != (code == PASS):
                    beside.passing = None
                beside.values[row] = code
            if row == own or not self._status_codes.lasts(code):
                failed.append(row)
        beside.failed = failed
        if beside.passing is None:
            beside.passing = np.flatnonzero(beside.values == PASS)
        if own >= 0:
            # To this pod alone, its own nomination is no obstacle.
            values, passing = beside.values.copy(), None
            values[own] = self._code(filters, cycle, table, own, alone, findings)
        else:
            values, passing = beside.values, beside.passing
        whole = nodes.is_whole_table
        findings.codes, findings.owned = values if whole else values[nodes.rows], own >= 0 or not whole
        findings.passing = passing if whole else None
        return True

    def _to_ask(self, beside: NominatedCodes, alone: CombinedCodes, table: NodeTable) -> Iterable[int]:
        """The rows whose codes may be others now; all that aren't among them are right."""
        stale = None if beside.failed is None else beside.stale(table)
        since, beside.nominations = beside.nominations, self._nominator.version
        names = None if stale is None else self._nominator.changed_since(since)
        beside.note(table)
        if stale is None or names is None:
            beside.values, beside.passing, beside.failed = alone.values.copy(), None, ()
            stale, names = (), self._nominator.nominated_nodes()
        return {
            *stale,
            *(beside.failed or ()),
            *(alone.failed or ()),
            *(table.rows[name] for name in names if name in table.rows),
        }

    def _code(
        self,
        filters: tuple[FilterPlugin, ...],
        cycle: Cycle,
        table: NodeTable,
        row: int,
        alone: CombinedCodes,
        findings: Findings,
    ) -> int:
        status = self._hooks.run_beside_nominated_pods(filters, cycle.state, cycle.pod, table.node_infos[row])
        if status.is_success:
            return int(alone.values[row])
        code = self._status_codes.code_of(status)
        if code == ERROR:
            findings.errors[row] = status
        else:
            findings.errors.pop(row, None)
        return code
