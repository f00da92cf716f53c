"""The state of a gang that only the plugin knows: which pods wait for the others, and how the last try ended."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.frozen
class Rejection:
    """The rejection of a gang: it ended a try in which too few pods were placed.

    `until` is when the gang may be tried again even if nothing has changed, in the clock's seconds. `members` are the
    uids of the gang's pods at the rejection. Tries of all gangs are numbered together; `number` is larger than the
    number of every try that had begun before the rejection.
    """

    until: float
    members: frozenset[str]
    number: int


@attrs.define
class Gang:
    """The pods of a gang that are being scheduled, as uids.

    * `held`: pods that have a place and wait at permit for the others.
    * `let_go`: pods that are being bound.
    * `dropped`: pods that lost their place when the gang was rejected. The scheduler hasn't unreserved them yet.
    * `failed`: pods that fitted nowhere during this try.

    `began` is the number of the gang's last try; tries of all gangs are numbered together.

    A try begins when the first pod waits at permit. It ends when enough pods have a place, or when too few pods are
    left that could still get one.
    """

    # An ordered set: waits end in the order in which they began.
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
        """Begin a try with this number."""
        self.began = number
        self.failed.clear()
        self.rejection = None

    def let_all_go(self, uid: str) -> Iterable[str]:
        """Mark the pod and all waiting pods as being bound, since the gang is complete. Return the pods that waited."""
        released = tuple(self.held)
        self.let_go.update(released, (uid,))
        self.held.clear()
        self.failed.clear()
        self.rejection = None
        return released

    def drop_all(self, rejection: Rejection) -> Iterable[str]:
        """End the try with a rejection. Return the pods that have to give up their places."""
        dropped = tuple(self.held)
        self.dropped.update(dropped)
        self.held.clear()
        self.failed.clear()
        self.rejection = rejection
        return dropped

    def forget(self, uid: str) -> bool:
        """Forget a pod that was bound or unreserved.

        Return False if it was unreserved because its gang was rejected.
        """
        self.held.pop(uid, None)
        self.let_go.discard(uid)
        if uid in self.dropped:
            self.dropped.discard(uid)
            return False
        return True

    def hear_of_room(self, began: int) -> None:
        """Lift the rejection when another gang, whose try `began` before it, gives back its places."""
        if self.rejection is not None and began < self.rejection.number:
            self.rejection = None

    @property
    def is_idle(self) -> bool:
        """Return whether the gang has no pod that waits, is being bound, was dropped or failed."""
        return not (self.held or self.let_go or self.dropped or self.failed)
