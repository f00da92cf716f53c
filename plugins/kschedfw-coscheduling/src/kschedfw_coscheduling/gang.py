"""What is known of a gang beside what the cluster has: who waits for the others, and how the last try ended."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.frozen
class Rejection:
    """The end of a try that came to nothing.

    `until` is when it may be tried again although nothing has happened. `members` (by uid) were known then. `number`
    is larger than those of all tries that had begun before.
    """

    until: float
    members: frozenset[str]
    number: int


@attrs.define
class Gang:
    """Pods of a gang on their way, by uid.

    * `held`: they have a place and wait for the others.
    * `let_go`: they are being bound.
    * `dropped`: they had to give up their place with the others; the scheduler hasn't taken it back yet.
    * `failed`: they fitted nowhere while the others waited.

    `began` is the number of its last try, whoever's tries are counted.
    A try begins when the first pod waits. It ends when all have a place, or too few are left that could get one.
    """

    held: dict[str, None] = attrs.field(factory=dict)
    let_go: set[str] = attrs.field(factory=set)
    dropped: set[str] = attrs.field(factory=set)
    failed: set[str] = attrs.field(factory=set)
    began: int = 0
    rejection: Rejection | None = None

    def copy(self) -> Gang:
        return attrs.evolve(
            self,
            held=dict(self.held),
            let_go=set(self.let_go),
            dropped=set(self.dropped),
            failed=set(self.failed),
        )

    def begin(self, number: int) -> None:
        """A try begins."""
        self.began = number
        self.failed.clear()
        self.rejection = None

    def let_all_go(self, uid: str) -> Iterable[str]:
        """The last one has come; gives those that waited for it."""
        released = tuple(self.held)
        self.let_go.update(released, (uid,))
        self.held.clear()
        self.failed.clear()
        self.rejection = None
        return released

    def drop_all(self, rejection: Rejection) -> Iterable[str]:
        """The try is over; gives those that have to give up their places."""
        dropped = tuple(self.held)
        self.dropped.update(dropped)
        self.held.clear()
        self.failed.clear()
        self.rejection = rejection
        return dropped

    def forget(self, uid: str) -> bool:
        """The pod is bound, or has lost its place; False if that was the gang's doing."""
        self.held.pop(uid, None)
        self.let_go.discard(uid)
        if uid in self.dropped:
            self.dropped.discard(uid)
            return False
        return True

    def hear_of_room(self, began: int) -> None:
        """Others give back what they have held since a try of this number; news if they had it at the rejection."""
        if self.rejection is not None and began < self.rejection.number:
            self.rejection = None

    @property
    def is_idle(self) -> bool:
        """True if no pod of the gang waits, is being bound, or was dropped or failed."""
        return not (self.held or self.let_go or self.dropped or self.failed)
