"""Compares decisions with recorded ones, and knows what can't be compared."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw.config import ConfigurationError
from kschedfw.testing.conformance.refusals import same_reason
from kschedfw.testing.conformance.scenario import Json, Scenario


@attrs.frozen
class Difference:
    """One value that isn't as recorded, and where: `mixed-1-0001 default/pod-0 scores.NodeAffinity.raw.node-1`."""

    where: str
    expected: object
    actual: object

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected!r}, got {self.actual!r}"


MISSING = "(nothing)"


def differences(scenario: Scenario, decisions: list[Json]) -> Iterator[Difference]:
    """Every value of these decisions that isn't the recorded one; what they leave out is not compared."""
    for expected, actual in zip(scenario.expected or (), decisions, strict=True):
        where = f"{scenario.name} {expected['pod']}"
        recorded_devices, decided_devices = _devices(expected), _devices(actual)
        comparable = {key: value for key, value in expected.items() if key in actual} | recorded_devices
        actual = actual | decided_devices
        if "postFilter" in comparable:
            recorded, planned = expected["postFilter"], actual["postFilter"]
            comparable["postFilter"] = _preemption(recorded, following=planned)
            actual = actual | {"postFilter": _preemption(planned)}
        yield from _compare(where, comparable, actual)


def refused_otherwise(scenario: Scenario, error: ConfigurationError | None) -> Iterator[Difference]:
    """The difference, if any, between the refusal of a configuration and what was recorded."""
    assert scenario.error is not None
    if error is None or not same_reason(scenario.error, error.errors):
        yield Difference(
            f"{scenario.name} error", scenario.error, "accepted" if error is None else str(error)
        )


def _devices(decision: Json) -> Json:
    """What is said about devices, and which error ended the attempt; to say nothing is to say that there is none."""
    on_nodes = decision.get("nodeAllocations")
    return {key: decision.get(key) or {} for key in ("abort", "allocations", "extendedResources")} | {
        "nodeAllocations": {name: found for name, found in on_nodes.items() if found}
        if isinstance(on_nodes, dict)
        else {}
    }


def _preemption(post_filter: object, following: object = None) -> object:
    """The outcome of preemption without what chance decides: the order of victims, and which of the tied nodes won.

    Where the one that it is `following` took another of the tied nodes, so it does.
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


def _compare(where: str, expected: object, actual: object) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        separator = "." if " " in where.split(" ", 1)[-1] else " "
        for key in sorted({*expected, *actual}, key=str):
            yield from _compare(
                f"{where}{separator}{key}", expected.get(key, MISSING), actual.get(key, MISSING)
            )
    elif expected != actual:
        yield Difference(where, expected, actual)
