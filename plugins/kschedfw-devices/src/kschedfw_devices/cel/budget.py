"""The limit on the work of a selector, or of a search for devices, in steps.

kube-scheduler stops a search by the wall clock. Here steps replace it: the same input gets the same answer on
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
`kschedfw_devices.dynamic_resources.pruning`).
"""


class OutOfStepsError(KschedfwError):
    """The error of work that has taken more steps than it may."""


class Budget:
    """The steps that are left.

    With `gets_further`, parts of the work are cached, so that the next try gets further.
    """

    __slots__ = ("gets_further", "left")

    def __init__(self, steps: float = math.inf) -> None:
        self.left = steps
        self.gets_further = False

    @classmethod
    def of_seconds(cls, timeout: float) -> Budget:
        """Return the budget for a timeout in seconds; 0 means no limit."""
        return cls(timeout * STEPS_PER_SECOND if timeout else math.inf)

    def spend(self, steps: float) -> None:
        """Subtract steps before the work is done. Raise OutOfStepsError if fewer are left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfStepsError("out of steps")
