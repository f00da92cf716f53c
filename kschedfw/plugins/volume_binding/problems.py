"""The reasons why a pod can't run on a node because of its volumes."""

from __future__ import annotations

from typing import Final, TypeAlias

from kschedfw import Status

Problems: TypeAlias = int
"""A sum of the problems below: a node can have several."""

FINE: Final = 0
OUT_OF_REACH: Final = 1
"""A volume of the pod can't be used from the node."""
NO_VOLUME: Final = 2
"""There is no volume for a claim of the pod, and none can be made."""
NO_SPACE: Final = 4
"""A volume could be made, but there is too little room for it."""
LOST: Final = 8
"""A claim is bound to a volume that isn't there."""

_REASONS: Final = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)

STATUSES: Final = (
    Status.success(),
    *(
        Status.unresolvable(*(reason for bit, reason in enumerate(_REASONS) if problems >> bit & 1))
        for problems in range(1, 1 << len(_REASONS))
    ),
)
"""The verdict on a node, by its problems."""
