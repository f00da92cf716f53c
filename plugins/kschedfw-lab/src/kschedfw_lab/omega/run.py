"""One run: a workload, an architecture, a seed."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from kschedfw import VirtualClock
from kschedfw_lab.cell import SHARED_STATE, Accounts, Architecture, ThinkTime
from kschedfw_lab.cell.architecture import NodeShares
from kschedfw_lab.cell.shared_state import CommitMode, Detection
from kschedfw_lab.cell.turns import Turns
from kschedfw_lab.omega.machines import Claims, Machines
from kschedfw_lab.omega.schedulers import Job, JobScheduler, think_of
from kschedfw_lab.omega.workload import BATCH, SERVICE, Shape, Workload

_SEED: Final = 20130415


@attrs.frozen
class Setting:
    """The varied settings of a run. Times are in seconds.

    `t_job` and `t_task` are those of service jobs; batch jobs have 0.1 s and 5 ms, as in Omega's paper. `detection` has
    no effect if no conflicts are possible: with one scheduler, partitions or offers.
    """

    architecture: Architecture = SHARED_STATE
    t_job: float = 0.1
    t_task: float = 0.005
    batch_schedulers: int = 1
    detection: Detection = Detection.FINE
    mode: CommitMode = CommitMode.INCREMENTAL
    seconds: float = 7200.0
    """The duration in virtual time."""


@attrs.frozen
class Figures:
    """A run's figures for one kind of jobs. Times are in seconds.

    `busyness` is the mean over the kind's schedulers. If one scheduler has all kinds, it is this kind's part.
    """

    kind: str
    jobs: int
    wait: float
    wait_90: float
    busyness: float
    conflict_fraction: float
    useful_work: float
    waiting: int
    """Jobs of all kinds that were still queued at the end, or were given up."""


def run(workload: Workload, setting: Setting, seed: int) -> list[Figures]:
    """Run once. Equal seeds give equal figures, and the same jobs in all settings."""
    return _Run(workload, setting, seed).figures()


class _Run:
    def __init__(self, workload: Workload, setting: Setting, seed: int) -> None:
        # Separate generators: how often schedulers draw doesn't change which jobs arrive.
        jobs, decisions = np.random.SeedSequence([_SEED, seed]).spawn(2)
        chance = np.random.default_rng(jobs)
        self._workload, self._setting = workload, setting
        self._clock = VirtualClock()
        self._machines = Machines.of(workload.capacity)
        times = {BATCH: ThinkTime(), SERVICE: ThinkTime(setting.t_job, setting.t_task)}
        architecture = setting.architecture
        count = setting.batch_schedulers + 1 if architecture.per_kind else 1
        think = think_of(times, one_path=architecture.one_path)
        self._schedulers = [
            JobScheduler(
                self._machines, self._clock, each, think, self._start, setting.detection, setting.mode
            )
            for each in map(np.random.default_rng, decisions.spawn(count))
        ]
        shares = NodeShares(architecture.access, range(len(workload.capacity)), count)
        self._turns = Turns[int](self._schedulers, shares, self._clock)
        self._batch_jobs = 0
        for kind in workload.kinds:
            for shape in kind.running(chance):
                self._fill(kind.name, shape, chance)
            for time, shape in kind.arrivals(chance, setting.seconds):
                self._plan_arrival(Job(kind.name, shape, time, shape.tasks))
        self._turns.run(setting.seconds)

    def _fill(self, kind: str, shape: Shape, chance: np.random.Generator) -> None:
        """Place a job that already runs at the beginning. Tasks that don't fit are left out."""
        claims = self._machines.place(shape.task, shape.tasks, chance, None)
        self._machines.commit(shape.task, claims, Detection.FINE, CommitMode.INCREMENTAL)
        self._start(Job(kind, shape, 0.0, 0), claims)

    def _plan_arrival(self, job: Job) -> None:
        # The last scheduler takes service jobs, and all jobs if it is the only one.
        scheduler = self._schedulers[-1]
        if job.kind == BATCH and len(self._schedulers) > 1:
            scheduler = self._schedulers[self._batch_jobs % self._setting.batch_schedulers]
            self._batch_jobs += 1
        self._turns.at(job.submitted, lambda: scheduler.queue.append(job))

    def _start(self, job: Job, claims: Claims) -> None:
        task = job.shape.task
        self._turns.at(self._clock.now() + job.shape.duration, lambda: self._machines.release(task, claims))

    def figures(self) -> list[Figures]:
        waiting = sum(len(each.queue) + each.abandoned for each in self._schedulers)
        return [self._figures_of(kind.name, waiting) for kind in self._workload.kinds]

    def _figures_of(self, kind: str, waiting: int) -> Figures:
        books = [each.accounts[kind] for each in self._schedulers if kind in each.accounts]
        total = Accounts()
        for each in books:
            total.busy += each.busy
            total.wasted += each.wasted
            total.successful += each.successful
            total.conflicting += each.conflicting
            total.waits += each.waits
        # Jobs that are still queued have waited at least until now.
        now = self._clock.now()
        for scheduler in self._schedulers:
            total.waits += [
                now - job.submitted for job in scheduler.queue if job.kind == kind and not job.attempts
            ]
        return Figures(
            kind,
            len(total.waits),
            total.mean_wait,
            float(np.percentile(total.waits, 90)) if total.waits else 0.0,
            total.busyness(self._setting.seconds) / max(len(books), 1),
            total.conflict_fraction,
            total.useful_work,
            waiting,
        )
