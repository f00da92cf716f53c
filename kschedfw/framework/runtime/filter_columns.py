"""The filters' verdicts on many nodes at once: by batch forms, and from what is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.results import Verdicts
from kschedfw.framework.runtime.columns import UNKNOWN_CODE, Column, CombinedCodes
from kschedfw.framework.runtime.filter_hooks import FilterPlugin, refusal
from kschedfw.framework.runtime.memo import Answers, Cycle, PodClass
from kschedfw.framework.runtime.status_codes import ERROR, PASS, StatusCodes
from kschedfw.framework.status import Status

FEW_ROWS: Final = 4
"""So many rows out of many are asked about one by one even where there is a batch form: calling NumPy costs more."""

_MOST_KNOWN: Final = 16


@attrs.define(eq=False)
class Findings:
    """What filters said of a selection of nodes.

    `codes` has shape (k,), one per node, by `StatusCodes`; unless it is `owned`, who wants to change or keep it makes a
    copy. `errors` has what is behind code ERROR, by row. `left` are the filters that could only be asked node by
    node, and so weren't. `passing` are the rows that have passed, in the selection's order, if they are known
    already. `combined` is where the codes come from, if they are what is kept of all filters together.
    """

    codes: Codes
    errors: dict[int, Status] = attrs.field(factory=dict)
    left: Sequence[FilterPlugin] = ()
    passing: IntArray | None = None
    combined: CombinedCodes | None = None
    owned: bool = False

    def own(self) -> Codes:
        """The codes, to be changed."""
        if not self.owned:
            self.codes, self.owned = self.codes.copy(), True
        return self.codes

    def refuse(self, refusals: Refusals) -> None:
        """Take what another filter says about the nodes that have passed until now."""
        assert self.passing is not None
        if refusals.passing is self.passing:
            return
        if len(self.passing) == len(self.codes):
            self.codes, self.owned = refusals.codes, False
        else:
            own = self.own()
            own[own == PASS] = refusals.codes
        self.passing = refusals.passing


@attrs.frozen(eq=False)
class Refusals:
    """One filter's codes about some rows, and those of the rows that it lets pass: the same array if it is all."""

    codes: Codes
    passing: IntArray

    @classmethod
    def of(cls, codes: Codes, rows: IntArray) -> Refusals:
        refused = np.count_nonzero(codes)
        return cls(codes, rows.take((codes == PASS).nonzero()[0]) if refused else rows)


@attrs.frozen(eq=False)
class _KnownVerdicts:
    """Verdicts that may be given again, about these rows, and what they came to while codes meant these statuses."""

    verdicts: Verdicts
    rows: IntArray
    statuses: Sequence[Status]
    refusals: Refusals


class FilterColumns:
    """Asks filters about many nodes at once.

    For a node a filter counts only if all before it have let the pod pass, as if nodes were asked about one by one;
    and it isn't asked about other nodes, unless they have been let pass by everything that is remembered.
    """

    def __init__(self, parallelizer: Parallelizer, status_codes: StatusCodes) -> None:
        self._parallelizer = parallelizer
        self._status_codes = status_codes
        self._known: dict[tuple[str, int, int], _KnownVerdicts] = {}

    def ask(
        self,
        filters: tuple[FilterPlugin, ...],
        cycle: Cycle,
        nodes: NodeSelection,
    ) -> Findings:
        """The verdicts of as many of the filters, from the first on, as can be asked about many nodes at once."""
        pods = cycle.pods
        asking = _Asking(
            self._parallelizer, self._status_codes, cycle.state, cycle.pod, nodes.table, self._known
        )
        local = _local(filters, pods) if len(nodes.rows) == len(nodes.table) else ()
        if local:
            combined = _combined(local, asking, pods)
            if nodes.is_whole_table:
                findings = Findings(combined.values, asking.errors, passing=_passing(combined, asking.table))
            else:
                findings = Findings(combined.values[nodes.rows], asking.errors)
            if len(local) == len(filters):
                findings.combined = combined
        else:
            findings = Findings(np.zeros(len(nodes.rows), dtype=np.int32), asking.errors, passing=nodes.rows)
        if len(local) < len(filters):
            _ask_others(filters[len(local) :], nodes, asking, findings, cycle)
        return findings


def still_hold(
    combined: CombinedCodes, reading_pods: Sequence[FilterPlugin], cycle: Cycle, table: NodeTable
) -> bool:
    """Whether what filters together said of all rows is as it was, which is noted; where it may not be, ask anew.

    As with nearly every pod, only pods were placed since then, and the filters that read pods still let this one pass.
    """
    stale = combined.stale(table)
    if stale is None or combined.failed or len(stale) > FEW_ROWS:
        return False
    if stale:
        if not combined.only_pods_changed(table):
            return False
        for row in stale:
            if combined.values[row] != PASS:
                return False
            for each in reading_pods:
                if not each.ask(cycle.state, cycle.pod, table.node_infos[row]).is_success:
                    return False
        combined.note(table)
    return True


def _local(filters: tuple[FilterPlugin, ...], pods: PodClass) -> tuple[FilterPlugin, ...]:
    """The first filters, as far as their answers depend on the single node and can be kept."""
    if filters in pods.combined:
        return filters
    for index, each in enumerate(filters):
        if each.name not in pods.answers:
            return filters[:index]
    return filters


def _combined(local: tuple[FilterPlugin, ...], asking: _Asking, pods: PodClass) -> CombinedCodes:
    """What the local filters together say of all rows, brought up to date."""
    table = asking.table
    combined = pods.combined.get(local)
    if combined is None:
        reads = Reads.PODS if any(each.plugin.reads is Reads.PODS for each in local) else Reads.NODE
        combined = pods.combined[local] = CombinedCodes(table, reads)
    stale = combined.stale(table)
    if stale is None or combined.failed is None:
        combined.values = asking.in_turn(_columns(local, pods, table), table.all_rows)
        combined.passing = combined.outcome = None
    elif stale or combined.failed:
        rows = {*stale, *combined.failed} if combined.failed else stale
        if len(rows) <= FEW_ROWS:
            codes: Iterable[int] = [_code_anew(combined, local, asking, pods, row) for row in rows]
        else:
            every = np.fromiter(rows, np.int64, len(rows))
            codes = asking.in_turn(_columns(local, pods, table), every).tolist()
        for row, code in zip(rows, codes, strict=True):
            before = combined.values[row]
            if before != code:
                combined.outcome = None
                if PASS in (before, code):
                    combined.passing = None
                combined.values[row] = code
    combined.failed = tuple(asking.errors.keys() | asking.timed)
    combined.note(table)
    return combined


def _code_anew(
    combined: CombinedCodes, local: tuple[FilterPlugin, ...], asking: _Asking, pods: PodClass, row: int
) -> int:
    """The first refusal for a row that has changed."""
    if combined.values[row] == PASS and combined.only_pods_changed(asking.table):
        # As with nearly every pod that was placed: what looks at the node alone has let the pod pass, and still does.
        for each in local:
            if each.plugin.reads is not Reads.NODE:
                code = asking.one(each, row)
                if code != PASS:
                    return code
        return PASS
    return asking.first_refusal(_columns(local, pods, asking.table), row)


def _columns(
    local: tuple[FilterPlugin, ...], pods: PodClass, table: NodeTable
) -> Sequence[tuple[FilterPlugin, Column]]:
    return [(each, _codes_of(pods.answers[each.name], each, table)) for each in local]


def _passing(combined: CombinedCodes, table: NodeTable) -> IntArray:
    if combined.passing is None:
        passing = (combined.values == PASS).nonzero()[0]
        combined.passing = table.all_rows if len(passing) == len(table) else passing
    return combined.passing


def _ask_others(
    filters: Sequence[FilterPlugin],
    nodes: NodeSelection,
    asking: _Asking,
    findings: Findings,
    cycle: Cycle,
) -> None:
    for index, each in enumerate(filters):
        if findings.passing is None:
            findings.passing = nodes.rows[findings.codes == PASS]
        rows = findings.passing
        if not len(rows):
            return
        answers = cycle.answers(each.plugin)
        if answers is None:
            refusals = asking.refusals(each, rows)
        else:
            refusals = Refusals.of(asking.codes(each, _codes_of(answers, each, asking.table), rows), rows)
        if refusals is None:
            findings.left = filters[index:]
            return
        findings.refuse(refusals)


@attrs.define(eq=False)
class _Asking:
    """One pod's questions in one cycle."""

    parallelizer: Parallelizer
    status_codes: StatusCodes
    state: CycleState
    pod: Pod
    table: NodeTable
    known: dict[tuple[str, int, int], _KnownVerdicts]
    errors: dict[int, Status] = attrs.field(factory=dict)
    timed: set[int] = attrs.field(factory=set)
    """Rows where a refusal names a time."""

    def in_turn(self, columns: Sequence[tuple[FilterPlugin, Column]], rows: IntArray) -> Codes:
        """The first refusal for each row; a filter is asked only about rows that those before it let pass."""
        found = np.zeros(len(rows), dtype=np.int32)
        passing = np.arange(len(rows))
        for each, column in columns:
            codes = self.codes(each, column, rows if len(passing) == len(rows) else rows[passing])
            refused = codes != PASS
            if refused.any():
                found[passing] = codes
                passing = passing[~refused]
        return found

    def first_refusal(self, columns: Sequence[tuple[FilterPlugin, Column]], row: int) -> int:
        """The same for one row."""
        for each, column in columns:
            code = int(column.values[row])
            if code == UNKNOWN_CODE:
                code = self.one(each, row)
                if self.status_codes.lasts(code):
                    column.values[row] = code
            if code != PASS:
                return code
        return PASS

    def one(self, each: FilterPlugin, row: int) -> int:
        """One filter's code for one row, by the scalar form."""
        status = each.ask(self.state, self.pod, self.table.node_infos[row])
        if status.retry_at is not None:
            self.timed.add(row)
        return PASS if status.is_success else self._noted(row, status)

    def codes(self, each: FilterPlugin, column: Column, rows: IntArray) -> Codes:
        """One filter's codes for the rows; what isn't known is asked, and remembered."""
        codes: Codes = column.values[rows].astype(np.int32, copy=False)
        unknown = codes == UNKNOWN_CODE
        if unknown.any():
            missing = rows[unknown]
            few = len(missing) <= FEW_ROWS and len(missing) < len(rows)
            fresh = None if few else self.by_batch(each, missing)
            if fresh is None:
                fresh = self._one_by_one(each, missing)
            codes[unknown] = fresh
            fleeting = self.status_codes.fleeting(fresh)
            column.values[missing] = np.where(fleeting, UNKNOWN_CODE, fresh)
            if self.status_codes.timed:
                self.timed.update(missing[fleeting].tolist())
        return codes

    def by_batch(self, each: FilterPlugin, rows: IntArray) -> Codes | None:
        """The answer of the batch form; None where there is none."""
        refusals = self.refusals(each, rows)
        return None if refusals is None else refusals.codes

    def refusals(self, each: FilterPlugin, rows: IntArray) -> Refusals | None:
        """The same with the rows that pass."""
        if each.batch is None:
            return None
        rows.setflags(write=False)
        try:
            answer = each.batch(self.state, self.pod, self.table, rows)
        except HOOK_FAILURES as error:
            return self._failed(each, error, rows)
        if isinstance(answer, Verdicts):
            key = each.name, id(answer), id(rows)
            known = self.known.get(key)
            # What is known keeps both alive, so that nothing else has their ids.
            if known is not None and known.statuses is self.status_codes.statuses:
                each.counts.rows_asked += len(rows)
                return known.refusals
        if (problem := _problem(answer, len(rows))) is not None:
            return self._failed(each, problem, rows)
        if not isinstance(answer, Verdicts):
            return None
        each.counts.rows_asked += len(rows)
        return self._translated(each, answer, rows)

    def _translated(self, each: FilterPlugin, verdicts: Verdicts, rows: IntArray) -> Refusals:
        if len(verdicts.statuses) == 1:
            refusals = Refusals(np.zeros(len(rows), dtype=np.int32), rows)
        else:
            translation = self.status_codes.translation(verdicts.statuses, each.name)
            codes: Codes = translation.codes.take(verdicts.codes)
            refusals = Refusals.of(codes, rows)
            if translation.has_error:
                for position in np.flatnonzero(codes == ERROR).tolist():
                    self.errors[int(rows[position])] = translation.statuses[verdicts.codes[position]]
                return refusals
        if not verdicts.codes.flags.writeable:
            if len(self.known) >= _MOST_KNOWN:
                del self.known[next(iter(self.known))]
            statuses = self.status_codes.statuses
            self.known[each.name, id(verdicts), id(rows)] = _KnownVerdicts(verdicts, rows, statuses, refusals)
        return refusals

    def _one_by_one(self, each: FilterPlugin, rows: IntArray) -> Codes:
        wanted, infos = rows.tolist(), self.table.node_infos
        statuses = self.parallelizer.map(
            len(wanted), lambda index: each.ask(self.state, self.pod, infos[wanted[index]])
        )
        return np.array(list(map(self._noted, wanted, statuses)), dtype=np.int32)

    def _noted(self, row: int, status: Status) -> int:
        code = self.status_codes.code_of(status)
        if code == ERROR:
            self.errors[row] = status
        return code

    def _failed(self, each: FilterPlugin, error: BaseException | str, rows: IntArray) -> Refusals:
        status = refusal(Status.from_error(error), each.name)
        self.errors.update(dict.fromkeys(rows.tolist(), status))
        return Refusals.of(np.full(len(rows), ERROR, dtype=np.int32), rows)


def _codes_of(answers: Answers, each: FilterPlugin, table: NodeTable) -> Column:
    """The plugin's codes, brought up to date."""
    column = answers.codes
    if column is None:
        assert each.plugin.reads is not None
        column = answers.codes = Column(table, each.plugin.reads, np.int32, UNKNOWN_CODE)
    column.follow(table)
    return column


def _problem(answer: object, count: int) -> str | None:
    """What is wrong with an answer of filter_batch, if anything."""
    if answer is None:
        return None
    if not isinstance(answer, Verdicts):
        return f"filter_batch must return None or Verdicts, not {answer!r}"
    codes = np.asarray(answer.codes)
    if codes.dtype.kind not in "iu" or codes.shape != (count,):
        return f"the verdicts' codes must be integers of shape ({count},), not {codes.dtype} of shape {codes.shape}"
    for status in answer.statuses:
        if not isinstance(status, Status):
            return f"the verdicts' statuses must be Statuses, not {status!r}"
    # As an unsigned number, a negative one is too large.
    if count and codes.view(f"u{codes.itemsize}").max() >= len(answer.statuses):
        outside = codes[(codes < 0) | (codes >= len(answer.statuses))][0]
        return f"the verdicts have a code {outside} but {len(answer.statuses)} statuses"
    return None
