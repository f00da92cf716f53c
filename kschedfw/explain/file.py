"""Explanations in a file: JSON lines, with the numbers of all nodes packed into columns.

A line with `nodes` has the names of the nodes for the lines that follow. Every other line is one decision. A column
has a number per node, or per feasible node, in these orders.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias, TypeVar

import numpy as np

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import shown
from kschedfw.api.files import UnreadableError, lines_of
from kschedfw.api.frozendict import FrozenDict
from kschedfw.explain.explanation import Explanation, Result
from kschedfw.explain.steps import (
    Beyond,
    FilterStep,
    PreemptionCandidate,
    PreemptionStep,
    PreFilterStep,
    Refusals,
    ScoreStep,
    Victim,
)
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.outcome import PluginScores
from kschedfw.framework.status import Code, Status

JsonColumn: TypeAlias = int | list[int] | str
"""One number if all are equal, a list, or `<dtype>:<base64>` of little-endian numbers, such as `i1:AAEC`."""

MOST_READABLE: Final = 32
"""Longer columns are packed, which takes a hundredth of the time to write and read."""

_LONGEST_LINE: Final = 64 << 20
"""Bytes of a line; a decision on 5,000 nodes takes about one MB."""
_BITS: Final = {f"i{size}": 8 * size - 1 for size in (1, 2, 4, 8)}
"""The number of bits of the largest number of each type."""


def packed(values: IntArray) -> JsonColumn:
    """The JSON of a column, int64 of shape (n,)."""
    if not len(values):
        return []
    low, high = int(values[values.argmin()]), int(values[values.argmax()])
    if low == high:
        return low
    if len(values) <= MOST_READABLE:
        return [int(value) for value in values]
    dtype = next(each for each, bits in _BITS.items() if -(1 << bits) <= low and high < 1 << bits)
    return f"{dtype}:{b64encode(values.astype(f'<{dtype}').tobytes()).decode('ascii')}"


def unpacked(column: object, count: int) -> IntArray:
    """The column of `count` numbers, int64 of shape (count,).

    Raises:
        ValueError: it isn't a column of that many numbers.
    """
    match column:
        case int() if _is_number(column):
            return np.full(count, column, dtype=np.int64)
        case list() if all(map(_is_number, column)):
            values = np.array(column, dtype=np.int64)
        case str() if column.partition(":")[0] in _BITS:
            dtype, _, text = column.partition(":")
            values = np.frombuffer(b64decode(text, validate=True), dtype=f"<{dtype}").astype(np.int64)
        case _:
            raise ValueError(
                f"expected a column: a number, numbers, or text such as i4:BASE64; found {shown(column)}"
            )
    if len(values) != count:
        raise ValueError(f"expected a column of {count} numbers, found {len(values)}")
    return values


def _is_number(value: object) -> bool:
    # By `type`, since True is an instance of int.
    return type(value) is int and -(1 << 63) <= value < 1 << 63


Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

_JSON_NAMES: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "an integer",
    float: "a decimal number",
    bool: "true or false",
}

_CODES: Final = {str(code): code for code in Code}


class ExplanationFileError(KschedfwError, ValueError):
    """A file, or a line of it, isn't an explanation."""


class ExplanationWriter:
    """Writes explanations to a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._nodes: tuple[str, ...] | None = None
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

    def write(self, explanation: Explanation) -> None:
        nodes = explanation.nodes
        # Identity first: attempts on the same nodes share one tuple, and comparing thousands of names takes long.
        if nodes is not self._nodes:
            if nodes != self._nodes:
                self._file.write(f"{self._encode({'nodes': nodes})}\n")
            self._nodes = nodes
        self._file.write(f"{self._encode(_written(explanation))}\n")


def read_explanations(path: Path) -> Iterator[Explanation]:
    """The explanations in a file, in their order.

    Raises:
        ExplanationFileError: a line isn't an explanation; names the file and the line.
        OSError: the file can't be read.
    """
    nodes: tuple[str, ...] | None = None
    try:
        for number, line in lines_of(path, _LONGEST_LINE):
            try:
                written = _as(dict, json.loads(line))
                if "nodes" in written:
                    nodes = _texts(written["nodes"])
                elif nodes is None:
                    raise ValueError("expected a line with 'nodes' before the first decision")
                else:
                    yield _read(written, nodes)
            except UnicodeDecodeError as error:
                raise ExplanationFileError(f"{path}: line {number}: it isn't UTF-8: {error}") from None
            except (ValueError, KeyError, OverflowError, RecursionError) as error:
                why = f"expected a field {error}" if isinstance(error, KeyError) else str(error)
                raise ExplanationFileError(
                    f"{path}: line {number}: no explanation, as `kschedfw simulate --explain` writes them: {why}"
                ) from None
    except UnreadableError as error:
        raise ExplanationFileError(f"{path}: {error}") from None


# Writing


def _written(explanation: Explanation) -> Json:
    line: Json = {
        "pod": explanation.pod,
        "profile": explanation.profile,
        "attempt": explanation.attempt,
        "result": explanation.result.value,
        "node": explanation.node,
        "nominated": explanation.nominated,
        "message": explanation.message,
        "preFilter": _written_pre_filter(explanation.pre_filter),
    }
    if (step := explanation.filter) is not None:
        line["filter"] = _written_filter(step, len(explanation.nodes))
    if (score := explanation.score) is not None:
        line["score"] = _written_score(score)
    if (preemption := explanation.preemption) is not None:
        line["preemption"] = _written_preemption(preemption)
    if (beyond := explanation.beyond) is not None:
        line["beyond"] = {plugin: _written_refusals(said) for plugin, said in beyond.refusals.items()}
        if beyond.evidence:
            line["evidence"] = {
                plugin: {row: [_written_evidence(each) for each in found] for row, found in by_row.items()}
                for plugin, by_row in beyond.evidence.items()
            }
    return line


def _written_pre_filter(step: PreFilterStep) -> Json:
    written: Json = {"skipped": step.skipped}
    if step.narrowing:
        written["narrowing"] = step.narrowing
    if step.left_over is not None:
        written["leftOver"] = _written_rows(step.left_over)
    if step.refusal is not None:
        written["refusal"] = _written_status(step.refusal)
    return written


def _written_filter(step: FilterStep, nodes: int) -> Json:
    written: Json = {
        "plugins": step.plugins,
        "start": step.start,
        "lookedAt": step.looked_at,
        "wanted": step.wanted,
        "refusals": _written_refusals(step.refusals),
    }
    if len(step.candidates) != nodes:
        written["candidates"] = _written_rows(step.candidates)
    if step.by_extenders is not None:
        written["byExtenders"] = _written_rows(step.by_extenders)
    if step.nominated:
        written["nominated"] = True
    if step.batch_of:
        written["batchOf"] = step.batch_of
    return written


def _written_refusals(refusals: Refusals) -> Json:
    if refusals.is_empty:
        return {}
    return {
        "statuses": [_written_status(status) for status in refusals.statuses[1:]],
        "codes": packed(refusals.codes.astype(np.int64, copy=False)),
    }


def _written_status(status: Status) -> Json:
    return {"code": str(status.code), "plugin": status.plugin, "reasons": status.reasons}


def _written_score(step: ScoreStep) -> Json:
    plugins = {}
    for name, scores in step.plugins.items():
        plugins[name] = {"weight": scores.weight, "raw": packed(scores.raw)}
        if (scores.raw != scores.normalized).any():
            plugins[name]["normalized"] = packed(scores.normalized)
    written: Json = {"plugins": plugins, "skipped": step.skipped}
    # The totals aren't written: they follow from this and the plugins' scores.
    if (extenders := packed(step.extenders)) != 0:
        written["extenders"] = extenders
    if step.beyond:
        written["beyond"] = True
    return written


def _written_preemption(step: PreemptionStep) -> Json:
    written: Json = {"message": step.message}
    if step.candidates:
        written["candidates"] = [_written_candidate(each) for each in step.candidates]
    if step.tied:
        written["tied"] = [_written_candidate(each) for each in step.tied]
    if step.refusals is not None:
        written["refusals"] = _written_refusals(step.refusals)
    return written


def _written_candidate(candidate: PreemptionCandidate) -> Json:
    victims = [[victim.pod, victim.priority] for victim in candidate.victims]
    return {"node": candidate.node, "victims": victims, "budgetViolations": candidate.budget_violations}


def _written_evidence(evidence: Evidence) -> Json:
    written: Json = {"asked": evidence.asked, "found": evidence.found, "values": dict(evidence.values)}
    if evidence.gap is not None:
        written["gap"] = evidence.gap
    if evidence.code:
        written["code"] = evidence.code
    return written


def _written_rows(rows: IntArray) -> Json:
    return {"count": len(rows), "rows": packed(rows)}


# Reading


def _read(written: Mapping[str, Any], nodes: tuple[str, ...]) -> Explanation:
    step = _read_filter(_as(dict, written["filter"]), len(nodes)) if "filter" in written else None
    feasible = 0 if step is None else len(step.feasible)
    preemption = written.get("preemption")
    beyond = written.get("beyond")
    return Explanation(
        pod=_as(str, written["pod"]),
        profile=_as(str, written["profile"]),
        result=Result(written["result"]),
        nodes=nodes,
        attempt=_as(int, written["attempt"]),
        node=_read_node(written["node"], nodes),
        nominated=None if written["nominated"] is None else _as(str, written["nominated"]),
        message=_as(str, written["message"]),
        pre_filter=_read_pre_filter(_as(dict, written["preFilter"]), len(nodes)),
        filter=step,
        score=_read_score(_as(dict, written["score"]), feasible) if "score" in written else None,
        preemption=None if preemption is None else _read_preemption(_as(dict, preemption), len(nodes)),
        beyond=None
        if beyond is None
        else Beyond(
            {plugin: _read_refusals(said, len(nodes)) for plugin, said in _as(dict, beyond).items()},
            {
                plugin: _read_evidence(given, len(nodes))
                for plugin, given in _as(dict, written.get("evidence", {})).items()
            },
        ),
    )


def _read_evidence(given: object, nodes: int) -> Mapping[int, tuple[Evidence, ...]]:
    found: dict[int, tuple[Evidence, ...]] = {}
    for row, pieces in _as(dict, given).items():
        if not row.isdecimal() or int(row) >= nodes:
            raise ValueError(f"evidence: expected the number of a node, 0–{nodes - 1}, found {row!r}")
        found[int(row)] = tuple(_read_piece(_as(dict, piece)) for piece in _as(list, pieces))
    return found


def _read_piece(written: Mapping[str, Any]) -> Evidence:
    values = _as(dict, written["values"])
    if any(isinstance(value, dict | list) for value in values.values()):
        raise ValueError(f"evidence: values: expected texts and numbers, found {shown(dict(values))}")
    gap = None if "gap" not in written else _as(float, written["gap"])
    code = _as(str, written.get("code", ""))
    return Evidence(_as(str, written["asked"]), _as(str, written["found"]), gap, FrozenDict(values), code)


def _read_pre_filter(written: Mapping[str, Any], nodes: int) -> PreFilterStep:
    return PreFilterStep(
        _texts(written["skipped"]),
        _texts(written.get("narrowing", [])),
        _read_rows(written["leftOver"], nodes) if "leftOver" in written else None,
        _read_status(written["refusal"]) if "refusal" in written else None,
    )


def _read_filter(written: Mapping[str, Any], nodes: int) -> FilterStep:
    return FilterStep(
        plugins=_texts(written["plugins"]),
        candidates=_read_rows(written["candidates"], nodes) if "candidates" in written else np.arange(nodes),
        start=_as(int, written["start"]),
        looked_at=_as(int, written["lookedAt"]),
        wanted=_as(int, written["wanted"]),
        refusals=_read_refusals(written["refusals"], nodes),
        by_extenders=_read_rows(written["byExtenders"], nodes) if "byExtenders" in written else None,
        nominated=_as(bool, written.get("nominated", False)),
        batch_of=_as(str, written.get("batchOf", "")),
    )


def _read_refusals(given: object, nodes: int) -> Refusals:
    written = _as(dict, given)
    statuses = (Status.success(), *map(_read_status, _as(list, written.get("statuses", []))))
    codes = _below(len(statuses), unpacked(written.get("codes", 0), nodes))
    return Refusals(codes.astype(np.int32), statuses)


def _read_status(given: object) -> Status:
    written = _as(dict, given)
    return Status(_CODES[_as(str, written["code"])], _texts(written["reasons"]), _as(str, written["plugin"]))


def _read_score(written: Mapping[str, Any], feasible: int) -> ScoreStep:
    plugins = {}
    for name, given in _as(dict, written["plugins"]).items():
        scores = _as(dict, given)
        raw = unpacked(scores["raw"], feasible)
        normalized = unpacked(scores["normalized"], feasible) if "normalized" in scores else raw
        plugins[name] = PluginScores(_as(int, scores["weight"]), raw, normalized)
    totals = unpacked(written.get("extenders", 0), feasible)
    for each in plugins.values():
        totals += each.weighted
    return ScoreStep(plugins, _texts(written["skipped"]), totals, _as(bool, written.get("beyond", False)))


def _read_preemption(written: Mapping[str, Any], nodes: int) -> PreemptionStep:
    return PreemptionStep(
        _as(str, written["message"]),
        tuple(map(_read_candidate, _as(list, written.get("candidates", [])))),
        tuple(map(_read_candidate, _as(list, written.get("tied", [])))),
        _read_refusals(written["refusals"], nodes) if "refusals" in written else None,
    )


def _read_candidate(given: object) -> PreemptionCandidate:
    written = _as(dict, given)
    victims = tuple(
        Victim(_as(str, pod), _as(int, priority))
        for pod, priority in (_as(list, victim) for victim in _as(list, written["victims"]))
    )
    return PreemptionCandidate(_as(str, written["node"]), victims, _as(int, written["budgetViolations"]))


def _read_node(given: object, nodes: Container[str]) -> str | None:
    if given is not None and given not in nodes:
        raise ValueError(f"expected the name of a node in 'nodes', found {shown(given)}")
    return None if given is None else _as(str, given)


def _read_rows(given: object, nodes: int) -> IntArray:
    written = _as(dict, given)
    count = _as(int, written["count"])
    if not 0 <= count <= nodes:
        raise ValueError(f"count: expected 0–{nodes}, since there are {nodes} nodes, found {count}")
    return _below(nodes, unpacked(written["rows"], count))


def _below(limit: int, numbers: IntArray) -> IntArray:
    """The numbers; raises unless all are from 0 to limit−1."""
    # NumPy would read a negative index from a file as one from the end.
    if ((numbers < 0) | (numbers >= limit)).any():
        outside = numbers[(numbers < 0) | (numbers >= limit)][0]
        raise ValueError(f"a column: expected numbers 0–{limit - 1}, found {outside}")
    return numbers


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_as(str, each) for each in _as(list, value))


def _as(kind: type[T], value: object) -> T:
    """The value; raises unless it has exactly this type, since True isn't a number."""
    if type(value) is not kind:
        raise ValueError(f"expected {_JSON_NAMES[kind]}, found {shown(value)}")
    return value
