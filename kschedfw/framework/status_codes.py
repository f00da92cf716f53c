"""Numbers for statuses, so that thousands of them fit into an array."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Final

import numpy as np
import numpy.typing as npt

from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.nodes.arrays import Codes
from kschedfw.framework.results import Verdicts
from kschedfw.framework.status import Status

PASS: Final = 0
ERROR: Final = 1
"""The code of any ERROR. Errors are kept by node, since no two are equal."""


class StatusCodes:
    """The distinct statuses, by code.

    `timed` are the codes of refusals that name a time (`retry_at`). They are never kept, since the plugin may
    answer differently from that time on.
    """

    def __init__(self) -> None:
        self.statuses: list[Status] = [Status.success(), Status.from_error("see the node")]
        self.timed: set[int] = set()
        self._codes: dict[Status, int] = {}
        self._translations: dict[str, tuple[Sequence[Status], Codes]] = {}
        """The statuses of each plugin's last verdicts, and their codes."""

    def __len__(self) -> int:
        return len(self.statuses)

    def code_of(self, status: Status) -> int:
        """Return PASS, ERROR, or the code of a refusal, which is added if it is new."""
        if status.is_success:
            return PASS
        if not status.is_rejected:
            return ERROR
        code = self._codes.get(status)
        if code is None:
            code = self._codes[status] = len(self.statuses)
            self.statuses.append(status)
            if status.retry_at is not None:
                self.timed.add(code)
        return code

    def fleeting(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Return which of the codes, shape (k,), must not be kept."""
        return np.isin(codes, [ERROR, *self.timed]) if self.timed else codes == ERROR

    def of_verdicts(self, verdicts: Verdicts, plugin: str) -> Codes:
        """Return the codes of a plugin's verdicts; most plugins have the same statuses every time."""
        statuses = verdicts.statuses
        known = self._translations.get(plugin)
        if known is None or not are_same(known[0], statuses):
            named = [status if status.is_success else refusal(status, plugin) for status in statuses]
            # The first one is the success, by the contract of `Verdicts`.
            codes = np.array([PASS, *map(self.code_of, named[1:])], dtype=np.int32)
            known = self._translations[plugin] = statuses, codes
        return known[1].take(verdicts.codes)


def are_same(statuses: Sequence[Status], others: Sequence[Status]) -> bool:
    """Return whether both have the same objects."""
    # Plugins may put the same statuses into a new tuple; comparing statuses by value would take longer.
    return statuses is others or (len(statuses) == len(others) and all(map(is_, statuses, others)))


def refusal(status: Status, plugin: str) -> Status:
    """Return a filter's answer with its plugin named. A code that filters may not give becomes an ERROR."""
    if status.is_rejected:
        return status.with_plugin(plugin)
    return HOOKS["filter"].explained(status).prefixed(f'running "{plugin}" filter plugin', plugin)
