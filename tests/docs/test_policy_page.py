"""docs/policy.md has every predicate, priority and feature gate, and what each stands for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kschedfw_legacy.policy.tables import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    EQUAL,
    MANDATORY_PREDICATES,
    PREDICATE_ALIASES,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
)

from kschedfw.framework.gate_table import DECLARED_GATES

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")


def rows(section: str) -> dict[str, list[str]]:
    """The cells beside each name in the first column of a section's table; a row may have several names."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found: dict[str, list[str]] = {}
    for first, rest in re.findall(r"^\| (.+?) \| (.*) \|$", text, re.MULTILINE):
        for name in first.split(", "):
            found[name] = [cell.strip() for cell in rest.split("|")]
    return found


@pytest.mark.parametrize("name", [*PREDICATES, *PREDICATE_ALIASES])
def test_a_predicate_has_its_plugins_and_whether_it_is_a_default(name: str) -> None:
    real = PREDICATE_ALIASES.get(name, name)
    plugins, default = rows("Predicates")[name]
    assert plugins.partition(", at ")[0].split(", ") == [plugin for plugin, _ in PREDICATES[real]]
    assert (default == "mandatory") == (real in MANDATORY_PREDICATES)
    assert (default == "yes") == (real in DEFAULT_PREDICATES and real not in MANDATORY_PREDICATES)


@pytest.mark.parametrize("name", [*PRIORITIES, *PRIORITY_ALIASES])
def test_a_priority_has_its_plugin_and_its_default_weight(name: str) -> None:
    real = PRIORITY_ALIASES.get(name, name)
    plugin, weight = rows("Priorities")[name]
    if real != "SelectorSpreadPriority":  # which another plugin has taken over
        assert plugin == PRIORITIES[real][0]
    assert weight.isdigit() == (real in DEFAULT_PRIORITIES)
    assert not weight.isdigit() or int(weight) == DEFAULT_PRIORITIES[real]


def test_equal_priority_is_there() -> None:
    assert rows("Priorities")[EQUAL][0].startswith("none")


def test_the_gates_are_those_of_the_registry() -> None:
    gates = rows("Feature gates")
    known = {name: DECLARED_GATES.load(name) for name in DECLARED_GATES.names()}
    assert {name: gates[name] for name in known} == {
        name: [gate.last.stage.value, str(gate.last.default).lower(), gate.effect]
        for name, gate in known.items()
    }
