"""The model of how long a scheduler takes for a decision about a job."""

from __future__ import annotations

import attrs


@attrs.frozen
class ThinkTime:
    """The seconds of a decision: `per_job`, plus `per_task` for each task of the job.

    The model and the values 0.1 s and 5 ms, which approximate Google's measurements, are from Schwarzkopf et al.,
    "Omega", EuroSys 2013, section 4.
    """

    per_job: float = 0.1
    per_task: float = 0.005

    def of(self, tasks: int) -> float:
        """Return the seconds for a job of `tasks` tasks."""
        return self.per_job + self.per_task * tasks
