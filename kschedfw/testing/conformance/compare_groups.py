"""Comparison of the decisions on groups of pods with those recorded from kube-scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from kschedfw.testing.conformance.compare import Difference, value_differences
from kschedfw.testing.conformance.scenario import GroupScenario, Json

_UNITS: Final = ("potentialVictims", "violating", "reprieve", "victims")


def group_differences(scenario: GroupScenario, rounds: Sequence[Json]) -> Iterator[Difference]:
    """Yield every value of these rounds that differs from the recorded one; an absent value is an empty one."""
    nothing: Json = {}
    for number, (expected, decided) in enumerate(zip_longest(scenario.expected, rounds, fillvalue=nothing)):
        yield from _round_differences(f"{scenario.name} round-{number}", expected, decided)


def number_of_decisions(scenario: GroupScenario) -> int:
    """Return the number of recorded decisions: the cycles, and the queue at the end of each round."""
    return sum(1 + len(_cycles(each)) for each in scenario.expected)


def _round_differences(
    where: str, expected: Mapping[str, Any], decided: Mapping[str, Any]
) -> Iterator[Difference]:
    nothing: Json = {}
    cycles = zip_longest(_cycles(expected), _cycles(decided), fillvalue=nothing)
    for number, (one, other) in enumerate(cycles):
        yield from value_differences(f"{where}.cycle-{number}", _comparable(one), _comparable(other))
    ends = [{"queue": _without_empty(each.get("queue"))} for each in (expected, decided)]
    yield from value_differences(f"{where}.end", ends[0], ends[1])


def _cycles(round: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    cycles: Sequence[Mapping[str, Any]] = round.get("cycles") or ()
    return cycles


def _comparable(cycle: Mapping[str, Any]) -> object:
    """Return a cycle without empty values, and without the parts whose order is arbitrary."""
    known = dict(cycle)
    if algorithm := known.get("algorithm"):
        known["algorithm"] = {
            **algorithm,
            "placements": {each["name"]: each for each in algorithm.get("placements") or ()},
            "scores": {each["placement"]: each for each in algorithm.get("scores") or ()},
        }
    if preemption := known.get("preemption"):
        known["preemption"] = preemption | {
            key: [_unit(each) for each in preemption[key]] for key in _UNITS if key in preemption
        }
    known["events"] = sorted(
        json.dumps(_without_empty(each), sort_keys=True) for each in known.get("events") or ()
    )
    known["evicted"] = sorted(known.get("evicted") or ())
    return _without_empty(known)


def _unit(unit: Any) -> object:
    return unit | {"pods": sorted(unit["pods"])} if isinstance(unit, dict) else sorted(unit)


def _without_empty(value: object) -> object:
    if isinstance(value, dict):
        left = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in left.items() if each not in (None, "", [], {}, False)}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value
