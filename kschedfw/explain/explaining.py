"""Who wants to know what."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kschedfw.api.pod import Pod
from kschedfw.explain.explanation import Explanation


def _every(_: Pod) -> bool:
    return True


@attrs.frozen
class Explaining:
    """What to explain, and who takes the explanations, in the order of the attempts.

    Only pods that are `wanted` are explained. `beyond` asks plugins more than the decisions need; it takes as long as
    asking every filter about every node one by one.
    """

    take: Callable[[Explanation], None]
    wanted: Callable[[Pod], bool] = _every
    beyond: bool = False
