"""How long a scheduler thinks about a job."""

from __future__ import annotations

import attrs


@attrs.frozen
class ThinkTime:
    """Seconds of a decision: `per_job`, and `per_task` for each of the job's tasks.

    The model, and 0.1 s and 5 ms as what Google's own measured about: Schwarzkopf et al., "Omega", EuroSys 2013,
    section 4.
    """

    per_job: float = 0.1
    per_task: float = 0.005

    def of(self, tasks: int) -> float:
        """Seconds for a job of so many tasks."""
        return self.per_job + self.per_task * tasks
