"""Recorded scenarios: a cluster, a configuration, pending pods, and kube-scheduler's decisions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kschedfw.api import KINDS, KschedfwError

Json = dict[str, object]
"""A JSON object; decisions stay in this form, since they are compared and printed in it."""

LISTS: Final = {kind.plural: kind.name for kind in KINDS.values()}
"""The object lists of a scenario, and the kind of what is in them; in the order to create objects in."""


class ScenarioError(KschedfwError):
    """The error of a scenario file that can't be read or isn't supported; names file and line, or scenario."""


@attrs.frozen
class Scenario:
    """One scenario. A `sequential` one assumes each pod on its recorded node before the next is decided.

    With `bind` its claims are written, too; otherwise they stay in flight.
    """

    name: str
    objects: Mapping[str, list[Json]]
    pending: list[Json]
    sequential: bool = False
    bind: bool = False
    config: Json | None = None
    expected: list[Json] | None = None
    error: str | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Scenario:
        """Return the scenario in this JSON. Raises KeyError or TypeError where the shape is wrong."""
        return cls(
            name=data["name"],
            objects=data["objects"],
            pending=data["pending"],
            sequential=data.get("mode") == "sequential",
            bind=bool(data.get("bind")),
            config=data.get("config"),
            expected=data.get("expected"),
            error=data.get("error"),
        )


@attrs.frozen
class GroupScenario:
    """A scenario with groups of pods: events, with rounds of scheduling between them."""

    name: str
    category: str
    objects: Mapping[str, list[Json]]
    events: list[Json]
    expected: list[Json]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> GroupScenario:
        """Return the scenario in this JSON. Raises KeyError or TypeError where the shape is wrong."""
        return cls(
            name=data["name"],
            category=data.get("category", ""),
            objects=data["objects"],
            events=data["events"],
            expected=data.get("expected") or [],
        )


def read_scenarios(path: Path) -> Iterator[Scenario | GroupScenario]:
    """Yield the scenarios of a `.jsonl` or `.jsonl.gz` file, one per line.

    Raises:
        ScenarioError: the file can't be read, or a line isn't a scenario.
    """
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")  # recordings of our own
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as file
        ):
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _parse(line, f"{path}:{number}")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {error}") from error


def _parse(line: str, where: str) -> Scenario | GroupScenario:
    try:
        data = json.loads(line)
        return GroupScenario.of(data) if "events" in data else Scenario.of(data)
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{where}: not JSON: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ScenarioError(
            f"{where}: not a scenario: it needs name, objects and pending or events ({error!r})"
        ) from error
