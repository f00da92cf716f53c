"""What one of several schedulers has achieved, in the terms of Omega's evaluation."""

from __future__ import annotations

import attrs


@attrs.define
class Accounts:
    """A scheduler's books. Times are in seconds.

    Terms: Schwarzkopf et al., "Omega", EuroSys 2013, section 4 (job wait time, scheduler busyness) and section 5
    (conflict fraction).
    """

    transactions: int = 0
    """Commits that were tried."""
    successful: int = 0
    """Of these, commits after which nothing of the decision was left to place again."""
    conflicting: int = 0
    """Of these, commits with at least one conflict."""
    claims: int = 0
    accepted: int = 0
    busy: float = 0.0
    """Time spent on decisions."""
    wasted: float = 0.0
    """Of this, the time of what had to be decided again."""
    waits: list[float] = attrs.field(factory=list)
    """Job wait times: from submission to the beginning of the first decision."""

    def note_decision(self, seconds: float, claims: int, accepted: int, *, conflicts: bool) -> None:
        """Count a decision that took so long, and the transaction of its claims, if it has any.

        Of a decision of which a part was accepted, the other part was wasted time.
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
        """Conflicting transactions for each successful one: 0 if all commit at once, 3 if the average decision is made
        four times."""
        return self.conflicting / max(self.successful, 1)

    @property
    def useful_work(self) -> float:
        """The part of the busy time that wasn't wasted: 0 to 1; 1 if there was none."""
        return 1 - self.wasted / self.busy if self.busy else 1.0

    @property
    def mean_wait(self) -> float:
        """The mean job wait time; 0 without jobs."""
        return sum(self.waits) / len(self.waits) if self.waits else 0.0

    def busyness(self, elapsed: float) -> float:
        """The part of so many seconds in which the scheduler made decisions."""
        return self.busy / elapsed if elapsed else 0.0
