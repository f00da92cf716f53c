"""The results of hooks other than a `Status`, and the arrays of the batch forms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kschedfw.api.records import frozen
from kschedfw.framework.status import Status

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100


@frozen
class PreFilterResult:
    """The only nodes on which a pod may still fit after pre_filter, by name. Names of unknown nodes are ignored."""

    node_names: frozenset[str]

    @classmethod
    def of(cls, node_names: Iterable[str]) -> PreFilterResult:
        return cls(frozenset(node_names))

    def intersect(self, other: PreFilterResult | None) -> PreFilterResult:
        return self if other is None else PreFilterResult(self.node_names & other.node_names)


def no_nodes_left(narrowing: Collection[str]) -> Status:
    """Return the status of a pod for which the PreFilterResults of these plugins have no node in common."""
    if len(narrowing) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {next(iter(narrowing))}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) {_listed(narrowing)} simultaneously")


def not_left_over(narrowing: Iterable[str]) -> Status:
    """Return the status of nodes that the PreFilterResults of these plugins exclude."""
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) {_listed(narrowing)}")


def _listed(names: Iterable[str]) -> str:
    """Return the names sorted and in brackets, as Go prints a list: `[A B]`."""
    return f"[{' '.join(sorted(names))}]"


class NominatingMode(Enum):
    """The effect of a post_filter result on the pod's nominated node."""

    NOOP = "noop"
    OVERRIDE = "override"


@frozen
class PostFilterResult:
    """The node on which a post_filter made room; an empty name with OVERRIDE clears an earlier nomination."""

    nominated_node_name: str = ""
    mode: NominatingMode = NominatingMode.NOOP

    @classmethod
    def nominate(cls, node_name: str) -> PostFilterResult:
        return cls(node_name, NominatingMode.OVERRIDE)


@frozen
class PreBindPreFlightResult:
    """The answer of pre_bind_pre_flight: pre_bind has work to do, or none with `skip`.

    With `allow_parallel`, pre_bind may run while its neighbours in profile order do. A skipped one joins the
    neighbours on its two sides.
    """

    allow_parallel: bool = False
    skip: bool = False


_ALL_PASS = (Status.success(),)


@frozen(eq=False)
class Verdicts:
    """The batch form of filter answers.

    `codes` has one entry per row asked for; 0 is a pass, and any other value an index into `statuses`
    (`statuses[0]` is the success).
    """

    codes: npt.NDArray[np.integer]
    statuses: tuple[Status, ...]

    @classmethod
    def passing(cls, count: int) -> Verdicts:
        """Return verdicts that let all rows pass."""
        return _passing(count)

    @classmethod
    def refuse(cls, refused: npt.NDArray[np.bool_], status: Status) -> Verdicts:
        """Return verdicts with one possible refusal: True refuses the row with `status`."""
        return cls(refused.astype(np.int8), (Status.success(), status))

    def of(self, index: int) -> Status | None:
        """Return the refusal at an index of `codes`; None where the row passed."""
        code = int(self.codes[index])
        return self.statuses[code] if code else None


@frozen(eq=False)
class ByDomain:
    """A value for each domain of a topology key: that of a node is `values[codes[row]]`.

    `codes` is a table's column of int32, -1 for nodes without the label, for which `values` ends with one more entry.
    """

    codes: npt.NDArray[np.int32]
    values: npt.NDArray[np.bool_] | npt.NDArray[np.int64]


class Normalizing(Enum):
    """A way to turn raw scores into 0–100; `low` and `high` are the least and the greatest among the feasible nodes."""

    STRETCHED = "stretched"
    """100 × (score − low) / (high − low), as a float that is cut off; all 0 where low is high."""
    REVERSED = "reversed"
    """100 × (high + low − score) / high, rounded down; all 100 where high is 0. Raw scores are 0 or more."""


@frozen(eq=False)
class DomainScores:
    """Raw scores of nodes, each the sum of its domains' values (int64), and how they are normalised.

    Without parts, all nodes have the same score.
    """

    parts: Sequence[ByDomain]
    normalizing: Normalizing


@lru_cache(maxsize=16)
def _passing(count: int) -> Verdicts:
    codes = np.zeros(count, dtype=np.int8)
    # All callers share the array.
    codes.setflags(write=False)
    return Verdicts(codes, _ALL_PASS)
