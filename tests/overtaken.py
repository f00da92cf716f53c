"""A cluster whose other clients are faster: they change an object right before the scheduler's update of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named
from kschedfw.cluster import ConflictError, InMemoryCluster, T


def labelled(obj: T, label: str) -> T:
    return obj.with_metadata(attrs.evolve(obj.metadata, labels=FrozenDict({**obj.labels, label: ""})))


class OvertakenCluster(InMemoryCluster):
    """Others write as many labels before each update as `turns` says, by kind; none once they are used up.

    The labels are `other1`, `other2` and so on. `tells` is false for a cluster whose conflicts don't have the present
    state.
    """

    def __init__(self, turns: Mapping[type[Named], Sequence[int]], *, tells: bool = True) -> None:
        super().__init__()
        self.others = 0
        self._turns = {kind: list(times) for kind, times in turns.items()}
        self._tells = tells

    def update(self, obj: T) -> T:
        turns = self._turns.get(type(obj))
        for _ in range(turns.pop(0) if turns else 0):
            present = self.get(type(obj), obj.key)
            assert present is not None
            self.others += 1
            super().update(labelled(present, f"other{self.others}"))
        try:
            return super().update(obj)
        except ConflictError as conflict:
            if not self._tells:
                conflict.present = None
            raise
