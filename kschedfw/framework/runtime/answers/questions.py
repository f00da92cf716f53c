"""The filters' answers about many nodes at once: kept ones, batch forms, and single calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.results import Verdicts
from kschedfw.framework.runtime.answers.columns import FEW_ROWS, UNKNOWN_CODE, Column, FirstRefusals
from kschedfw.framework.runtime.answers.plugins import FilterPlugin
from kschedfw.framework.runtime.answers.pod_class import Answers, FilterPlan, PodClass
from kschedfw.framework.runtime.answers.status_codes import ERROR, PASS, StatusCodes, refusal
from kschedfw.framework.runtime.hook_answers import as_verdicts
from kschedfw.framework.status import Status


@attrs.frozen(eq=False)
class RowVerdicts:
    """The filters' verdicts on some rows.

    `codes` has shape (k,), None where all rows pass. It may be another object's array, so copy it before
    keeping or changing it. `passing` are the rows that pass, in order. `errors` has the statuses behind the
    code ERROR, by row.
    """

    rows: IntArray
    codes: Codes | None
    passing: IntArray
    errors: Mapping[int, Status] = EMPTY

    @classmethod
    def of(cls, rows: IntArray, codes: Codes, errors: Mapping[int, Status] = EMPTY) -> RowVerdicts:
        if not np.count_nonzero(codes):
            return cls(rows, None, rows)
        return cls(rows, codes, rows.take((codes == PASS).nonzero()[0]), errors)

    @property
    def all_codes(self) -> Codes:
        return np.zeros(len(self.rows), dtype=np.int32) if self.codes is None else self.codes


Reused: TypeAlias = WeakKeyDictionary[Verdicts, tuple[StatusCodes, RowVerdicts]]
"""The result of reusable verdicts, with the StatusCodes in whose codes it is written."""


@attrs.define(eq=False)
class Questions:
    """One pod's questions to filters in one cycle.

    A filter's answer counts only for nodes that all filters before it let pass, as if nodes were asked about
    one by one. A filter isn't called for other nodes, unless all kept answers let them pass.

    `errors` has the statuses behind the code ERROR, by row.
    """

    _parallelizer: Parallelizer
    _reused: Reused
    _state: CycleState
    _pod: Pod
    _pods: PodClass
    _table: NodeTable
    errors: dict[int, Status] = attrs.field(factory=dict)

    # Filters whose answers are kept together

    def bring_up_to_date(self, kept: FirstRefusals, plan: FilterPlan) -> None:
        """Ask again about rows that have changed if they are few; else forget their codes."""
        table = self._table
        stale = kept.stale(table)
        if stale is None:
            kept.forget_moved(table)
            return
        # Rows of `again` may be among the stale ones. Forgotten here, they are asked about once, with those
        # that never had a code.
        if kept.again:
            kept.forget(list(kept.again))
            kept.again.clear()
        if not stale:
            return
        # Many rows are asked about together, by the batch forms, when their codes are needed (`fill`).
        if len(stale) > FEW_ROWS:
            kept.forget(stale)
        else:
            only_pods_changed = kept.only_pods_changed(table)
            for row in stale:
                before = int(kept.values[row])
                if before == UNKNOWN_CODE:
                    continue
                # The node object has passed and is the same, so only filters that read the pods can answer
                # differently now.
                if before == PASS and only_pods_changed:
                    code = self._ask_in_turn(plan.kept_reading_pods, row)
                else:
                    code = self._first_refusal(plan.kept, row)
                kept.put(row, code)
                if not self._pods.codes.is_lasting(code):
                    kept.again.add(row)
        kept.mark_current(table)

    def fill(self, kept: FirstRefusals, plan: FilterPlan, rows: IntArray) -> None:
        """Ask about the rows that have no code."""
        missing = kept.missing(rows)
        if not len(missing):
            return
        codes = self._in_turn(plan.kept, missing)
        kept.fill(missing, codes)
        fleeting = self._pods.codes.fleeting(codes)
        if fleeting.any():
            kept.again.update(missing[fleeting].tolist())

    def kept_codes(self, kept: FirstRefusals, plan: FilterPlan, rows: IntArray) -> Codes:
        """Return the codes of the rows, shape (k,). Not to be changed."""
        if not kept.is_complete:
            self.fill(kept, plan, rows)
        codes: Codes = self._table.take(kept.values, rows)
        return codes

    def _in_turn(self, filters: Sequence[FilterPlugin], rows: IntArray) -> Codes:
        """Return the first refusal for each row.

        A filter is only called for rows that the filters before it let pass.
        """
        # In a table of a few nodes the rows may be the whole table, whose batch forms are called as in any
        # other.
        if len(rows) <= FEW_ROWS < len(self._table):
            return np.array([self._first_refusal(filters, row) for row in rows.tolist()], dtype=np.int32)
        found = np.zeros(len(rows), dtype=np.int32)
        passing = np.arange(len(rows))
        for each in filters:
            if not len(passing):
                break
            # The same array, not a copy: `NodeTable.take` knows all rows, and a slice of them, by identity.
            asked = rows if len(passing) == len(rows) else rows[passing]
            codes = self._kept_of_one(each, self._pods.answers[each.name], asked)
            refused = codes != PASS
            if refused.any():
                # The codes of rows that pass are PASS, which they have already.
                found[passing] = codes
                passing = passing[~refused]
        return found

    def _first_refusal(self, filters: Sequence[FilterPlugin], row: int) -> int:
        """Return the code of the first refusal of one row; PASS if there is none."""
        for each in filters:
            values = self._pods.answers[each.name].codes(self._table).values
            code = int(values[row])
            if code == UNKNOWN_CODE:
                code = self._ask(each, row)
                if self._pods.codes.is_lasting(code):
                    values[row] = code
            if code != PASS:
                return code
        return PASS

    # Filters one after another

    def verdicts(self, each: FilterPlugin, rows: IntArray) -> RowVerdicts | None:
        """Return a filter's verdicts on the rows; None if it can only be called node by node."""
        answers = self._pods.answers.get(each.name)
        if answers is None:
            return self._by_batch(each, rows)
        return RowVerdicts.of(rows, self._kept_of_one(each, answers, rows))

    def _kept_of_one(self, each: FilterPlugin, answers: Answers, rows: IntArray) -> Codes:
        """Return the codes of one filter for the rows, shape (k,). Ask about unknown ones, and keep the answers."""
        column = answers.codes(self._table)
        codes: Codes = self._table.take(column.values, rows)
        unknown = codes == UNKNOWN_CODE
        if not unknown.any():
            return codes
        missing = rows[unknown]
        fresh = None
        if len(missing) > FEW_ROWS or len(missing) == len(rows):
            answer = self._by_batch(each, missing)
            if answer is not None:
                fresh = answer.all_codes
        if fresh is None:
            fresh = self.one_by_one(each, missing)
        # A copy: `take` may have lent the column itself.
        codes = codes.astype(np.int32)
        codes[unknown] = fresh
        self._keep(column, missing, fresh)
        return codes

    def _keep(self, column: Column, rows: IntArray, codes: Codes) -> None:
        fleeting = self._pods.codes.fleeting(codes)
        column.values[rows] = np.where(fleeting, UNKNOWN_CODE, codes) if fleeting.any() else codes

    def _by_batch(self, each: FilterPlugin, rows: IntArray) -> RowVerdicts | None:
        if each.batch is None:
            return None
        # The rows may be those of a selection or of the table; a plugin that writes to them gets an error.
        rows.setflags(write=False)
        try:
            answer = each.batch(self._state, self._pod, self._table, rows)
            if answer is None:
                return None
            # Identity: these are made once for each number of rows, and need neither a check nor a translation.
            if answer is Verdicts.passing(len(rows)):
                each.counts.rows_asked += len(rows)
                return RowVerdicts(rows, None, rows)
            if type(answer) is Verdicts and answer.is_reusable:
                meaning, reused = self._reused.get(answer, (None, None))
                # Codes mean statuses of one `StatusCodes`, and after `Memo.clear` there is another. The rows may
                # be others: verdicts are about whatever rows were asked for.
                if reused is not None and meaning is self._pods.codes and np.array_equal(reused.rows, rows):
                    each.counts.rows_asked += len(rows)
                    return reused
            verdicts = as_verdicts("filter_batch", answer, len(rows))
        except HOOK_FAILURES as error:
            return self._failed(each, error, rows)
        each.counts.rows_asked += len(rows)
        return self._translated(each, verdicts, rows)

    def _translated(self, each: FilterPlugin, verdicts: Verdicts, rows: IntArray) -> RowVerdicts:
        if len(verdicts.statuses) == 1:
            return RowVerdicts(rows, None, rows)
        translation = self._pods.codes.translation(verdicts.statuses, each.name)
        codes: Codes = translation.codes.take(verdicts.codes)
        found = RowVerdicts.of(rows, codes)
        if translation.has_error:
            for position in np.flatnonzero(codes == ERROR).tolist():
                self.errors[int(rows[position])] = translation.statuses[verdicts.codes[position]]
        # Not with an error: a reused answer would leave `errors` of the next pod without its status.
        elif verdicts.is_reusable:
            self._reused[verdicts] = self._pods.codes, found
        return found

    # Nodes one by one

    def _ask(self, each: FilterPlugin, row: int) -> int:
        """Return one filter's code for one row, by the scalar form."""
        status = each.ask(self._state, self._pod, self._table.node_infos[row])
        return PASS if status.is_success else self._code_of(row, status)

    def _ask_in_turn(self, filters: Sequence[FilterPlugin], row: int) -> int:
        for each in filters:
            code = self._ask(each, row)
            if code != PASS:
                return code
        return PASS

    def one_by_one(self, each: FilterPlugin, rows: IntArray) -> Codes:
        """Return one filter's codes for the rows, shape (k,), by the scalar form."""
        wanted, infos = rows.tolist(), self._table.node_infos
        statuses = self._parallelizer.map(
            len(wanted), lambda index: each.ask(self._state, self._pod, infos[wanted[index]])
        )
        # Only the hook runs on several threads. Codes are given here, on the caller's: `StatusCodes` has no
        # lock, and their numbers shall not depend on timing.
        return np.array(list(map(self._code_of, wanted, statuses)), dtype=np.int32)

    def _code_of(self, row: int, status: Status) -> int:
        code = self._pods.codes.code_of(status)
        if code == ERROR:
            self.errors[row] = status
        return code

    def _failed(self, each: FilterPlugin, error: BaseException, rows: IntArray) -> RowVerdicts:
        status = refusal(Status.from_error(error), each.name)
        # A batch form that fails has failed at every node. The search ends with the first of them in its
        # order.
        self.errors.update(dict.fromkeys(rows.tolist(), status))
        return RowVerdicts.of(rows, np.full(len(rows), ERROR, dtype=np.int32))
