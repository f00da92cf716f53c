"""The rejections of nodes, as a column."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.status import Status

_SUCCESS = Status.success()


@attrs.frozen(eq=False)
class Refusals:
    """The statuses of the n nodes of a cluster, of which some were rejected.

    `codes` has an index into `statuses` for each node, integers of shape (n,); the first status is the success of
    nodes that weren't rejected.
    """

    codes: Codes
    statuses: tuple[Status, ...] = (_SUCCESS,)

    @classmethod
    def taken_from(cls, node_to_status: NodeToStatus, rows: Mapping[str, int]) -> Refusals:
        """The rejections in `node_to_status`; `rows` has the rows of all nodes."""
        codes = np.zeros(len(rows), dtype=np.int32)
        statuses = [_SUCCESS]
        if (given := node_to_status.codes) is not None:
            present = np.flatnonzero(np.bincount(given.codes, minlength=1))
            present = present[present != 0]
            compact = np.zeros(len(given.statuses), dtype=np.int32)
            compact[present] = np.arange(1, len(present) + 1)
            codes[given.nodes.rows] = compact[given.codes]
            statuses.extend(given.statuses[code] for code in present.tolist())
        for name, status in node_to_status.statuses.items():
            if name in rows:
                if status not in statuses:
                    statuses.append(status)
                codes[rows[name]] = statuses.index(status)
        return cls(codes, tuple(statuses))

    def of(self, row: int) -> Status | None:
        code = int(self.codes[row])
        return self.statuses[code] if code else None

    @property
    def is_empty(self) -> bool:
        return len(self.statuses) == 1

    def by_status(self) -> Mapping[Status, IntArray]:
        """The rows of the nodes with each status, the most frequent status first."""
        groups = {
            status: np.flatnonzero(self.codes == code)
            for code, status in enumerate(self.statuses)
            if code and (self.codes == code).any()
        }
        return dict(sorted(groups.items(), key=lambda item: -len(item[1])))
