"""The work that a selector, or a search for devices, may do, counted in steps.

kube-scheduler stops a search by the wall clock. Steps stand in for it here: the same input gets the same answer on
every machine, also in simulations, whose clock stands still while the scheduler works.
"""

from __future__ import annotations

import math
from typing import Final

from kschedfw.api import KschedfwError

STEPS_PER_SECOND: Final = 20_000
"""Steps of a search for each second of `filterTimeout`.

A step takes 2 to 5 µs, so that the default of 10 s ends within 1 s. As in kube-scheduler, the timeout is that of
one node in one attempt, and the first that meets it ends the attempt; a command makes up to ten such attempts for its
pods. kube-scheduler does more in 10 s, but tries alike devices again and again (see
`kschedfw.plugins.dynamic_resources.pruning`).
"""


class OutOfStepsError(KschedfwError):
    """The work has taken more steps than it may."""


class Budget:
    """The steps that are left, and whether a part of the work is remembered, so that the next try `gets_further`."""

    __slots__ = ("gets_further", "left")

    def __init__(self, steps: float = math.inf) -> None:
        self.left = steps
        self.gets_further = False

    @classmethod
    def of_seconds(cls, timeout: float) -> Budget:
        """The steps for a timeout in seconds; 0: as many as it takes."""
        return cls(timeout * STEPS_PER_SECOND if timeout else math.inf)

    def spend(self, steps: float) -> None:
        """Raises OutOfStepsError where fewer are left; work is paid before it is done."""
        self.left -= steps
        if self.left < 0:
            raise OutOfStepsError("out of steps")
