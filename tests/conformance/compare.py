"""Comparison of decisions on pods and groups, and of refused configurations, with those of kube-scheduler."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import attrs

from kschedfw.api.field_errors import FieldError
from kschedfw.config import ConfigurationError
from tests.conformance.scenario import GroupScenario, Json, Scenario


@attrs.frozen
class Difference:
    """A value that differs from the recorded one, and its place: `mixed-1-0001 default/pod-0
    scores.NodeAffinity.raw.node-1`.
    """

    where: str
    expected: object
    actual: object

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected!r}, got {self.actual!r}"


MISSING = "(nothing)"


def differences(scenario: Scenario, decisions: list[Json]) -> Iterator[Difference]:
    """Yield every value of these decisions that differs from the recorded one; missing values aren't compared."""
    for expected, actual in zip(scenario.expected or (), decisions, strict=True):
        where = f"{scenario.name} {expected['pod']}"
        recorded_devices, decided_devices = _devices(expected), _devices(actual)
        comparable = {key: value for key, value in expected.items() if key in actual} | recorded_devices
        actual = actual | decided_devices
        if "postFilter" in comparable:
            recorded, planned = expected["postFilter"], actual["postFilter"]
            comparable["postFilter"] = _preemption(recorded, following=planned)
            actual = actual | {"postFilter": _preemption(planned)}
        yield from value_differences(where, comparable, actual)


def refused_otherwise(scenario: Scenario, error: ConfigurationError | None) -> Iterator[Difference]:
    """Yield the difference, if any, between the refusal of a configuration and the recorded one."""
    assert scenario.error is not None
    if error is None or not same_reason(scenario.error, error.errors):
        yield Difference(
            f"{scenario.name} error", scenario.error, "accepted" if error is None else str(error)
        )


def _devices(decision: Json) -> Json:
    """Return the values about devices, and the error that ended the attempt; a missing value means none."""
    on_nodes = decision.get("nodeAllocations")
    return {key: decision.get(key) or {} for key in ("abort", "allocations", "extendedResources")} | {
        "nodeAllocations": {name: found for name, found in on_nodes.items() if found}
        if isinstance(on_nodes, dict)
        else {}
    }


def _preemption(post_filter: object, following: object = None) -> object:
    """Return the outcome of preemption without its random parts: the order of victims, the choice of a tied node.

    If `following` chose another one of the tied nodes, that one is taken.
    """
    if not isinstance(post_filter, dict):
        return post_filter
    candidates = {
        name: candidate | {"victims": sorted(candidate["victims"])}
        for name, candidate in post_filter["candidates"].items()
    }
    outcome = post_filter | {"candidates": candidates, "tied": sorted(post_filter["tied"])}
    node_name = following.get("nominatedNode") if isinstance(following, dict) else None
    if node_name in outcome["tied"]:
        outcome |= {"nominatedNode": node_name, **candidates[node_name]}
    return outcome | {"victims": sorted(outcome["victims"])}


def value_differences(where: str, expected: object, actual: object) -> Iterator[Difference]:
    """Yield every value in which two JSON values differ, with its path after `where`."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        separator = "." if " " in where.split(" ", 1)[-1] else " "
        for key in sorted({*expected, *actual}, key=str):
            yield from value_differences(
                f"{where}{separator}{key}", expected.get(key, MISSING), actual.get(key, MISSING)
            )
    elif expected != actual:
        yield Difference(where, expected, actual)


_UNKNOWN_PLUGIN = re.compile(r'scheduler name (?P<profile>.+?): \w+Plugin "(?P<name>.+)" does not exist$')
_MISPLACED = re.compile(r'plugin "(?P<name>.+)" does not extend (?P<point>\w+)Plugin plugin$')
_ARGS = re.compile(r'initializing plugin ".+?": (?P<error>.+)$', re.DOTALL)
_UNKNOWN_FIELD = re.compile(r'unknown field "(?P<path>.+?)"')
_TWICE = re.compile(r'key ".+" already set in map')
_VERSION = re.compile(r'no kind ".+" is registered for version ".+?"')


def same_reason(recorded: str, errors: Iterable[FieldError]) -> bool:
    """Whether the errors include kube-scheduler's; there may be more, and they may name the place more precisely."""
    texts = [str(error) for error in errors]
    if match := _UNKNOWN_PLUGIN.search(recorded):
        return _some(texts, f'plugin "{match["name"]}" does not exist', f'profile "{match["profile"]}"')
    if match := _MISPLACED.search(recorded):
        point = match["point"][0].lower() + match["point"][1:]
        return _some(texts, f'plugin "{match["name"]}" does not extend {point};')
    if match := _ARGS.search(recorded):
        return any(text.endswith(f".args.{match['error']}") for text in texts)
    if paths := _UNKNOWN_FIELD.findall(recorded):
        return all(
            any(re.search(rf'unknown field "(.*\.)?{re.escape(path)}"', text) for text in texts)
            for path in paths
        )
    for pattern in (_TWICE, _VERSION):
        if match := pattern.search(recorded):
            return _some(texts, match[0])
    if recorded.startswith("Object '"):
        return _some(texts, recorded.partition(" in ")[0])
    if recorded.startswith("yaml: "):
        return any(text.startswith("yaml: ") for text in texts)
    if recorded.startswith("decoding ."):
        return recorded.removeprefix("decoding .") in texts
    return recorded in texts


def _some(texts: Sequence[str], *parts: str) -> bool:
    return any(all(part in text for part in parts) for text in texts)


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
