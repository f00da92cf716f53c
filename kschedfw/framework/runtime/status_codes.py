"""Numbers for statuses, so that thousands of them fit into an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import Codes
from kschedfw.framework.runtime.filter_hooks import refusal
from kschedfw.framework.status import Status

PASS: Final = 0
ERROR: Final = 1
"""Stands for any ERROR: those are never equal, and are kept by node."""


@attrs.frozen(eq=False)
class Translation:
    """A plugin's own `statuses`, as `given` by it and with its name, and the code of each."""

    given: Sequence[Status]
    statuses: Sequence[Status]
    codes: Codes
    has_error: bool


class StatusCodes:
    """Statuses by code, each distinct refusal once. Codes hold until `clear`.

    `timed` are those of refusals that name a time: nobody may take them for what a plugin would say later.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew; who has the old `statuses` may go on using it."""
        self.statuses: list[Status] = [Status.success(), Status.from_error("see the node")]
        self.timed: set[int] = set()
        self._codes: dict[Status, int] = {}
        self._translations: dict[str, Translation] = {}

    def __len__(self) -> int:
        return len(self.statuses)

    def code_of(self, status: Status) -> int:
        """The code of a success, an error, or a refusal; the last of these is noted if it's new."""
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

    def lasts(self, code: int) -> bool:
        """Whether the answer is one for good, as long as nothing changes that it depends on."""
        return code != ERROR and code not in self.timed

    def fleeting(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which of the codes may not be kept."""
        return np.isin(codes, [ERROR, *self.timed]) if self.timed else codes == ERROR

    def translation(self, statuses: tuple[Status, ...], plugin: str) -> Translation:
        """The codes of statuses that a plugin's verdicts refer to; most plugins have the same ones every time."""
        known = self._translations.get(plugin)
        if known is None or known.given is not statuses:
            named = [status if status.is_success else refusal(status, plugin) for status in statuses]
            codes = [PASS, *map(self.code_of, named[1:])]
            array = np.array(codes, dtype=np.int32)
            known = self._translations[plugin] = Translation(statuses, named, array, ERROR in codes)
        return known
