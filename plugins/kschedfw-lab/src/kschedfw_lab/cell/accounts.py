"""One scheduler's achievements, in the terms of Omega's evaluation."""

from __future__ import annotations

import attrs


@attrs.define
class Accounts:
    """Counts of one scheduler. Times are in seconds.

    The terms are those of Schwarzkopf et al., "Omega", EuroSys 2013: section 4 (job wait time, scheduler busyness) and
    section 5 (conflict fraction).
    """

    transactions: int = 0
    """The number of attempted commits."""
    successful: int = 0
    """The number of commits without a conflict."""
    conflicting: int = 0
    """The number of commits with at least one conflict."""
    claims: int = 0
    accepted: int = 0
    busy: float = 0.0
    """Time spent on decisions."""
    wasted: float = 0.0
    """The part of `busy` that was spent on placements that weren't accepted."""
    waits: list[float] = attrs.field(factory=list)
    """Job wait times: from submission to the beginning of the first decision."""

    def note_decision(self, seconds: float, claims: int, accepted: int, *, conflicts: bool) -> None:
        """Count a decision that took `seconds`, and the transaction of its claims if there are any.

        If only some of the claims were accepted, the others' share of the time counts as wasted.
        """
        self.busy += seconds
        if not claims:
            return
        self.transactions += 1
        self.conflicting += conflicts
        self.successful += not conflicts
        self.claims += claims
        self.accepted += accepted
        self.wasted += seconds * (claims - accepted) / claims

    @property
    def conflict_fraction(self) -> float:
        """Conflicting transactions per successful one.

        It is 0 if every transaction succeeds at once, and 3 if it takes four transactions on average.
        """
        # Without any success, the number of conflicts.
        return self.conflicting / max(self.successful, 1)

    @property
    def useful_work(self) -> float:
        """The share of the busy time that wasn't wasted, from 0 to 1; 1 if the scheduler was never busy."""
        return 1 - self.wasted / self.busy if self.busy else 1.0

    @property
    def mean_wait(self) -> float:
        """The mean job wait time; 0 without jobs."""
        return sum(self.waits) / len(self.waits) if self.waits else 0.0

    def busyness(self, elapsed: float) -> float:
        """Return the share of `elapsed` seconds in which the scheduler made decisions."""
        return self.busy / elapsed if elapsed else 0.0
