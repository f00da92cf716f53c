"""The schedulers of an experiment: queues of jobs, decisions on copies of the machines, and transactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import attrs
import numpy as np

from kschedfw import VirtualClock
from kschedfw_lab.cell import Accounts, ThinkTime
from kschedfw_lab.cell.shared_state import CommitMode, Detection
from kschedfw_lab.omega.machines import Claims, Counts, Machines
from kschedfw_lab.omega.workload import Shape

MOST_ATTEMPTS: Final = 1000
"""The number of decisions after which a job is given up, as in the paper's simulator."""


@attrs.define(eq=False)
class Job:
    """A job in a queue. `left` is the number of its tasks without a place."""

    kind: str
    shape: Shape
    submitted: float
    left: int
    attempts: int = 0


@attrs.define(eq=False)
class JobScheduler:
    """A `Member` of `Turns` that takes jobs in the order of their arrival.

    A decision uses a copy of the machines at its beginning, and is committed when its time has passed. If some tasks
    remain, the job is decided again: at once after a conflict, otherwise after the other jobs in the queue.
    """

    machines: Machines
    clock: VirtualClock
    chance: np.random.Generator
    think: Callable[[Job], float]
    started: Callable[[Job, Claims], None]
    """Called with a job and the tasks that were placed."""
    detection: Detection = Detection.FINE
    mode: CommitMode = CommitMode.INCREMENTAL
    accounts: dict[str, Accounts] = attrs.field(factory=dict)
    """Accounts by kind of jobs."""
    abandoned: int = 0
    queue: deque[Job] = attrs.field(factory=deque)
    _decided: tuple[Job, Claims, float] | None = None
    _mask: tuple[frozenset[int], Counts] | None = None

    @property
    def has_work(self) -> bool:
        return bool(self.queue)

    def begin(self, nodes: frozenset[int]) -> float:
        """Begin a decision; see `Member`."""
        job = self.queue.popleft()
        accounts = self.accounts.setdefault(job.kind, Accounts())
        if not job.attempts:
            accounts.waits.append(self.clock.now() - job.submitted)
        job.attempts += 1
        # Decide on the current machines without copying them: `claims` has everything that the commit needs.
        claims = self.machines.place(job.shape.task, job.left, self.chance, self._masked(nodes))
        if self.mode is CommitMode.ALL_OR_NOTHING and claims.tasks < job.left:
            claims = Claims(claims.rows[:0], claims.counts[:0], claims.sequences[:0])
        seconds = self.think(job)
        self._decided = job, claims, seconds
        return seconds

    def end(self) -> None:
        """Commit the decision; see `Member`."""
        assert self._decided is not None
        (job, claims, seconds), self._decided = self._decided, None
        outcome = self.machines.commit(job.shape.task, claims, self.detection, self.mode)
        is_conflict = outcome.tasks < claims.tasks
        self.accounts[job.kind].note_decision(seconds, claims.tasks, outcome.tasks, conflicts=is_conflict)
        job.left -= outcome.tasks
        if outcome.tasks:
            self.started(job, outcome)
        if not job.left:
            return
        if job.attempts >= MOST_ATTEMPTS:
            self.abandoned += 1
        elif is_conflict:
            self.queue.appendleft(job)
        else:
            self.queue.append(job)

    def _masked(self, nodes: frozenset[int]) -> Counts | None:
        if len(nodes) == len(self.machines.free):
            return None
        # By identity: a partition is the same object every time.
        if self._mask is None or self._mask[0] is not nodes:
            mask = np.zeros(len(self.machines.free), np.int64)
            mask[list(nodes)] = 1
            self._mask = nodes, mask
        return self._mask[1]


def think_of(times: dict[str, ThinkTime], *, one_path: bool) -> Callable[[Job], float]:
    """Return a function for the seconds of a decision about a job's remaining tasks.

    With `one_path`, a decision takes as long as that of the slowest kind.
    """

    def think(job: Job) -> float:
        if one_path:
            return max(each.of(job.left) for each in times.values())
        return times[job.kind].of(job.left)

    return think
