"""Numbers for statuses, so that thousands of them fit into an array."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import Codes
from kschedfw.framework.status import Status

PASS: Final = 0
ERROR: Final = 1
"""Stands for any ERROR: no two errors are equal, so they are kept by node."""


@attrs.frozen(eq=False)
class Translation:
    """The statuses that a plugin's verdicts refer to: as `given` by it, with its name, and the code of each."""

    given: Sequence[Status]
    statuses: Sequence[Status]
    codes: Codes
    has_error: bool


class StatusCodes:
    """Statuses by code, each distinct refusal once.

    `timed` are the codes of refusals that name a time (`retry_at`). The plugin may answer differently from then on, so
    they are never kept.
    """

    def __init__(self) -> None:
        self.statuses: list[Status] = [Status.success(), Status.from_error("see the node")]
        self.timed: set[int] = set()
        self._codes: dict[Status, int] = {}
        self._translations: dict[str, Translation] = {}

    def __len__(self) -> int:
        return len(self.statuses)

    def code_of(self, status: Status) -> int:
        """PASS, ERROR, or the code of a refusal, which is added if it is new."""
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

    def is_lasting(self, code: int) -> bool:
        """Whether the answer holds until something changes that it depends on."""
        return code != ERROR and code not in self.timed

    def fleeting(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which of the codes, shape (k,), must not be kept."""
        return np.isin(codes, [ERROR, *self.timed]) if self.timed else codes == ERROR

    def translation(self, statuses: tuple[Status, ...], plugin: str) -> Translation:
        """The codes of the statuses of a plugin's verdicts; most plugins have the same statuses every time."""
        known = self._translations.get(plugin)
        # Plugins may put the same statuses into a new tuple; comparing statuses by value would take longer.
        if known is None or len(known.given) != len(statuses) or not all(map(is_, known.given, statuses)):
            named = [status if status.is_success else refusal(status, plugin) for status in statuses]
            codes = [PASS, *map(self.code_of, named[1:])]
            array = np.array(codes, dtype=np.int32)
            known = self._translations[plugin] = Translation(statuses, named, array, ERROR in codes)
        return known


def refusal(status: Status, plugin: str) -> Status:
    """A filter's answer with its plugin named; a code that filters may not give becomes an ERROR."""
    if status.is_rejected:
        return status.with_plugin(plugin)
    return status.prefixed(f'running "{plugin}" filter plugin', plugin)
