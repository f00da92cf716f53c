"""The machines of a cell as arrays, with transactions: a `SharedState` for tasks that have only amounts."""

from __future__ import annotations

from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw_lab.cell.shared_state import CommitMode, Detection

Amounts: TypeAlias = npt.NDArray[np.int64]
"""An amount per resource, or an array with such a row per machine."""
Rows: TypeAlias = npt.NDArray[np.intp]
Counts: TypeAlias = npt.NDArray[np.int64]

# The number of tasks that fit if a task asks for nothing.
_MANY = 1 << 40


@attrs.frozen(eq=False)
class Claims:
    """Tasks of one job on machines: the number per machine, and the machines' sequence numbers in the copy."""

    rows: Rows
    counts: Counts
    sequences: Counts

    @property
    def tasks(self) -> int:
        return int(self.counts.sum())


@attrs.define(eq=False)
class Machines:
    """The free amounts of each machine, and its sequence number.

    A property test checks that `commit` decides as `SharedState.commit` does.
    """

    free: Amounts
    sequences: Counts

    @classmethod
    def of(cls, capacity: Amounts) -> Machines:
        """Return empty machines. `capacity` has a row of amounts per machine."""
        return cls(capacity.copy(), np.zeros(len(capacity), np.int64))

    def copy(self) -> Machines:
        """Return a private copy."""
        return Machines(self.free.copy(), self.sequences.copy())

    def fits(self, task: Amounts, rows: Rows | None = None) -> Counts:
        """Return how many such tasks fit on each machine, or on each of the machines `rows`."""
        free = self.free if rows is None else self.free[rows]
        most = np.full(len(free), _MANY, np.int64)
        for resource, amount in enumerate(task.tolist()):
            if amount:
                np.minimum(most, free[:, resource] // amount, out=most)
        return np.maximum(most, 0)

    def place(self, task: Amounts, tasks: int, chance: np.random.Generator, mask: Counts | None) -> Claims:
        """Return places for as many of the tasks as fit.

        Each machine, in random order, gets one task; this repeats until all tasks are placed or none fits. `mask` has 1
        for usable machines and 0 for others; None means that all are usable.
        """
        fits = self.fits(task)
        if mask is not None:
            fits *= mask
        rows = chance.permutation(np.flatnonzero(fits))
        left, fits = tasks, fits[rows]
        counts = np.zeros(len(rows), np.int64)
        while left and (able := np.flatnonzero(fits > counts)).size:
            able = able[:left]
            counts[able] += 1
            left -= able.size
        rows, counts = rows[counts > 0], counts[counts > 0]
        return Claims(rows, counts, self.sequences[rows])

    def commit(self, task: Amounts, claims: Claims, detection: Detection, mode: CommitMode) -> Claims:
        """Allocate the claims that don't conflict, and return them."""
        rows, accepted = claims.rows, claims.counts
        if detection is Detection.COARSE:
            accepted = np.where(self.sequences[rows] == claims.sequences, accepted, 0)
        accepted = np.minimum(accepted, self.fits(task, rows))
        if mode is CommitMode.ALL_OR_NOTHING and (accepted < claims.counts).any():
            accepted = np.zeros_like(accepted)
        taken = accepted > 0
        outcome = Claims(rows[taken], accepted[taken], claims.sequences[taken])
        self._change(task, outcome, -1)
        return outcome

    def release(self, task: Amounts, claims: Claims) -> None:
        """Release the claims of tasks that have ended."""
        self._change(task, claims, 1)

    def _change(self, task: Amounts, claims: Claims, sign: int) -> None:
        self.free[claims.rows] += sign * claims.counts[:, None] * task
        self.sequences[claims.rows] += claims.counts
