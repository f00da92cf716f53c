"""The results of hooks other than a `Status`, and the arrays of the batch forms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.records import frozen
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.encoded_column import EncodedColumn
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.status import Status, several_texts

if TYPE_CHECKING:
    from kschedfw.framework.nodes.table import NodeTable

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100


def _names(node_names: Iterable[str]) -> frozenset[str]:
    # The set that a plugin keeps for many pods isn't looked at each time.
    if type(node_names) is frozenset:
        return node_names
    return frozenset(several_texts(node_names, "node_names"))


@frozen
class PreFilterResult:
    """The only nodes on which a pod may still fit after pre_filter, by name. Names of unknown nodes are ignored.

    Raises TypeError where the names are a single text, or no texts.
    """

    node_names: frozenset[str] = attrs.field(converter=_names)

    @classmethod
    def of(cls, node_names: Iterable[str]) -> PreFilterResult:
        return cls(_names(node_names))

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
    """A value for each domain of a topology key: that of a node is `values[column.codes[row]]`.

    `column` has the labels of a table's nodes. Nodes without the label have the code -1, for which `values` ends with
    one more entry. It may be left out if all nodes have the label (`column.is_on_all`).
    """

    column: EncodedColumn[Any]
    values: npt.NDArray[np.integer] | npt.NDArray[np.bool_]

    def of(self, info: NodeInfo) -> int:
        """Return the value of one node."""
        return int(self.values[self.column.code_on(info)])

    def at(self, nodes: NodeTable, rows: IntArray) -> npt.NDArray[Any]:
        """Return the values of the nodes in these rows, shape (k,)."""
        found: npt.NDArray[Any] = self.values.take(nodes.take(self.column.codes, rows))
        return found

    def check(self, nodes: NodeTable) -> None:
        """Check that there is a value for each domain of these nodes: compiled loops read without looking.

        Raises:
            ValueError: too few or too many values, another table's column, or values that are neither bool nor integer.
        """
        column, values = self.column, self.values
        if len(column.codes) != len(nodes):
            raise ValueError(
                f"the column of a ByDomain has {len(column.codes)} nodes, the table {len(nodes)}; "
                "columns must be taken from the table that the hook is called with"
            )
        if not len(column.values) <= len(values) <= column.size + 1:
            raise ValueError(
                f"a ByDomain has {len(values)} values for {column.size} domains; "
                f"it must have {column.size + 1}: one for each, and one for nodes without the label"
            )
        if values.dtype.kind not in "biu":
            raise ValueError(f"the values of a ByDomain are {values.dtype}; they must be bool or integer")


@frozen(eq=False)
class DomainVerdicts:
    """The answers of a filter by domain; see `PluginByDomain`.

    Each part says which domains it refuses (bool), and `statuses` has its reason. If several parts refuse a node, the
    first of them gives the reason.
    """

    parts: Sequence[ByDomain]
    statuses: Sequence[Status]

    def check(self, nodes: NodeTable) -> None:
        """Check the parts, see `ByDomain.check`, and that each has a status; ValueError otherwise."""
        if len(self.parts) != len(self.statuses):
            raise ValueError(
                f"DomainVerdicts have {len(self.parts)} parts and {len(self.statuses)} statuses; each part needs one"
            )
        for part in self.parts:
            part.check(nodes)

    def of(self, info: NodeInfo) -> Status | None:
        """Return the refusal of one node; None if it passes."""
        for part, status in zip(self.parts, self.statuses, strict=True):
            if part.of(info):
                return status
        return None

    def at(self, nodes: NodeTable, rows: IntArray) -> Verdicts:
        """Return the verdicts on the nodes in these rows."""
        if not self.parts:
            return Verdicts.passing(len(rows))
        codes = np.zeros(len(rows), dtype=np.int16)
        for index in reversed(range(len(self.parts))):
            codes[self.parts[index].at(nodes, rows).astype(np.bool_, copy=False)] = index + 1
        return Verdicts(codes, (Status.success(), *self.statuses))

    @property
    def refused(self) -> Sequence[ByDomain]:
        """The refused domains, once for each column."""
        if len(self.parts) < 2:
            return self.parts
        found: dict[int, ByDomain] = {}
        for part in self.parts:
            other = found.get(id(part.column))
            if other is not None:
                part = ByDomain(part.column, np.logical_or(part.values, other.values))
            found[id(part.column)] = part
        return list(found.values())


class Normalizing(Enum):
    """A way to turn raw scores into 0–100; `low` and `high` are the least and the greatest among the feasible nodes."""

    STRETCHED = "stretched"
    """100 × (score − low) / (high − low), as a float that is cut off; all 0 where low is high."""
    REVERSED = "reversed"
    """100 × (high + low − score) / high, rounded down; all 100 where high is 0. Raw scores are 0 or more."""

    def of(self, scores: IntArray) -> IntArray:
        """Return the scores of all feasible nodes in 0–100, shape (k,)."""
        if not len(scores):
            return scores
        # NumPy finds the position of an extreme much faster than its value.
        low, high = int(scores[scores.argmin()]), int(scores[scores.argmax()])
        if self is Normalizing.STRETCHED:
            if low == high:
                return np.zeros_like(scores)
            # In float64 and in kube-scheduler's order of operations, then cut off: 100 × 0.29 is 28 to both.
            fractions = (scores - low) / float(high - low)
            fractions *= float(MAX_NODE_SCORE)
            return fractions.astype(np.int64)
        return (
            (high + low - scores) * MAX_NODE_SCORE // high if high else np.full_like(scores, MAX_NODE_SCORE)
        )


@frozen(eq=False)
class DomainScores:
    """Raw scores of nodes, each the sum of its domains' values (int64), and how they are normalised.

    Without parts, all nodes have the same score.
    """

    parts: Sequence[ByDomain]
    normalizing: Normalizing

    def check(self, nodes: NodeTable) -> None:
        """Check the parts, see `ByDomain.check`; ValueError otherwise."""
        for part in self.parts:
            part.check(nodes)

    def telling_apart(self) -> DomainScores:
        """Return scores that come out the same in 0–100, without the parts of which all nodes have the same value."""
        # A constant changes what is divided by the highest score, but not what is stretched.
        if self.normalizing is not Normalizing.STRETCHED:
            return self
        return DomainScores([part for part in self.parts if len(part.column.values) > 1], self.normalizing)

    def of(self, info: NodeInfo) -> int:
        """Return the raw score of one node."""
        return sum([part.of(info) for part in self.parts])

    def at(self, nodes: NodeTable, rows: IntArray) -> IntArray:
        """Return the raw scores of the nodes in these rows, shape (k,)."""
        scores = np.zeros(len(rows), dtype=np.int64)
        for part in self.parts:
            scores += part.at(nodes, rows)
        return scores


@lru_cache(maxsize=16)
def _passing(count: int) -> Verdicts:
    codes = np.zeros(count, dtype=np.int8)
    # All callers share the array.
    codes.setflags(write=False)
    return Verdicts(codes, _ALL_PASS)
