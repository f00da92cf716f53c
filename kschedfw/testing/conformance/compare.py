"""Compares decisions with recorded ones, and knows what can't be compared."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw.testing.conformance.scenario import Json, Scenario

VOLUME_PLUGINS = frozenset({"NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"})
VOLUME_OBJECTS = frozenset({"persistentvolumes", "persistentvolumeclaims", "storageclasses", "csinodes"})


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
        comparable = {key: value for key, value in _without_volumes(expected).items() if key in actual}
        if "postFilter" in comparable:
            recorded, planned = expected["postFilter"], actual["postFilter"]
            comparable["postFilter"] = _preemption(recorded, following=planned)
            actual = actual | {"postFilter": _preemption(planned)}
        yield from _compare(where, comparable, actual)


def not_compared(scenario: Scenario) -> str | None:
    """Why the scenario as a whole can't be compared yet, if so."""
    config = scenario.config
    if scenario.error is not None or (config is not None and _beyond_arguments(config)):
        return "configurations beyond plugin arguments"
    if any(scenario.objects.get(field) for field in VOLUME_OBJECTS):
        return "volumes"
    return None


def _beyond_arguments(config: Json) -> bool:
    profiles = config.get("profiles")
    if not isinstance(profiles, list) or len(profiles) != 1:
        return True
    return bool(set(profiles[0]) - {"schedulerName", "pluginConfig"})


def _without_volumes(decision: Json) -> Json:
    """The decision without the volume plugins' skips."""
    pre_filter = decision["preFilter"]
    skipped = decision["preScoreSkip"]
    assert isinstance(pre_filter, dict)
    assert isinstance(skipped, list)
    return decision | {
        "preFilter": pre_filter
        | {"skip": [name for name in pre_filter["skip"] if name not in VOLUME_PLUGINS]},
        "preScoreSkip": [name for name in skipped if name not in VOLUME_PLUGINS],
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
