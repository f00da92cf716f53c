"""The undoing of changes: a block whose operations are kept together, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Protocol, Self

from kschedfw.api.records import define, frozen
from kschedfw.cluster import RevertibleChange
from kschedfw.scheduler.placement import Placement
from kschedfw.what_if.checks import WhatIfError
from kschedfw.what_if.engine import Engine
from kschedfw.what_if.history import Mark


class TransactionStage(Enum):
    NEW = "hasn't begun: use it in a `with` statement"
    OPEN = "is open"
    ENDED = "has ended"


@frozen(eq=False)
class Preempted:
    """The state that `restore` needs: the pod's place in the transaction, and the changes by its deletion."""

    placement: Placement | None
    changes: Sequence[RevertibleChange]


@define
class OpenChange:
    """An operation under way. With `is_undone` it leaves no change."""

    is_undone: bool = False


class Parent(Protocol):
    """The owner of a transaction: a WhatIf, or the transaction around it."""

    _transaction: Undoable | None
    """The transaction in it that is open."""


class Undoable:
    """A `with` block whose changes are undone at its end, unless they are committed."""

    def __init__(self, engine: Engine, parent: Parent, outer: Undoable | None) -> None:
        self._engine = engine
        self._parent = parent
        self._outer = outer
        self._transaction: Undoable | None = None
        self._stage = TransactionStage.NEW
        self._mark: Mark | None = None
        self._preempted: dict[str, Preempted] = {}

    def commit(self) -> None:
        """Keep the changes: those of a nested transaction in the one around it, else in the WhatIf.

        Committing the outermost transaction binds the pods that have a place. The transaction can't be used
        afterwards.

        Raises:
            WhatIfError: pods couldn't be bound; everything else is kept, and they are pending.
        """
        with self._engine.one_thread:
            self._check_open()
            # Ended before anything is bound: a binding that fails doesn't leave the transaction open.
            mark = self._end()
            history = self._engine.history
            failed = history.commit() if self._outer is None else []
            history.merge(mark)
            if self._outer is not None:
                self._outer._preempted = self._preempted
        if failed:
            placement, error = failed[0]
            raise WhatIfError(
                f"{len(failed)} of the pods with a place couldn't be bound, {placement.pod.key} for one: {error}"
            )

    def __enter__(self) -> Self:
        one_thread = self._engine.one_thread
        with one_thread:
            if self._stage is not TransactionStage.NEW:
                raise WhatIfError("a transaction is used once; open another one")
            if self._parent._transaction is not None:
                raise WhatIfError(
                    "a transaction is open already; nest another one in it: trial.transaction()"
                )
            self._mark = self._engine.history.mark()
            self._parent._transaction = self
            self._stage = TransactionStage.OPEN
            if self._outer is not None:
                # A copy, which the outer transaction takes over if this one is committed.
                self._preempted = dict(self._outer._preempted)
            # Held until `_end`: no other thread may see the changes of the transaction.
            one_thread.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._stage is TransactionStage.OPEN:
            with self._engine.one_thread:
                self._engine.history.revert(self._end())

    def _end(self) -> Mark:
        self._stage = TransactionStage.ENDED
        self._parent._transaction = None
        self._engine.one_thread.__exit__()
        assert self._mark is not None
        return self._mark

    @contextmanager
    def _change(self) -> Iterator[OpenChange]:
        """Run a block as one operation: if it raises, or sets `is_undone`, all of it is undone."""
        with self._engine.one_thread:
            self._check_open()
            history, change = self._engine.history, OpenChange()
            mark, preempted = history.mark(), dict(self._preempted)
            try:
                yield change
            except BaseException:
                change.is_undone = True
                raise
            finally:
                if change.is_undone:
                    history.revert(mark)
                    self._preempted = preempted
                else:
                    history.merge(mark)

    def _check_open(self) -> None:
        if self._stage is not TransactionStage.OPEN:
            raise WhatIfError(f"the transaction {self._stage.value}")
        if self._transaction is not None:
            raise WhatIfError("a nested transaction is open: use that one until its end")
