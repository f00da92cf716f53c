"""docs/modelled.md is complete: every gate, plugin, kind and field is in it, with how much of it is here."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import kschedfw_devices
import pytest

import kschedfw.cluster
from kschedfw.api.convert import structure
from kschedfw.api.kinds import KINDS
from kschedfw.framework.gate_table import FEATURE_GATES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "modelled.md").read_text(encoding="utf-8")
SCRIPT: dict[str, Any] = runpy.run_path(str(DOCS / "generate_modelled.py"))
KNOWN: dict[str, dict[str, str]] = SCRIPT["known_types"]()
READ: dict[str, type] = SCRIPT["read_types"](KNOWN)
SHARED = {"apiVersion", "kind", "metadata"}
"""Fields that every kind has."""


def rows(section: str) -> Iterator[list[str]]:
    """The cells of each row of a section's table."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    for line in text[1].splitlines()[1:]:
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def fields(cell: str) -> list[str]:
    return [each for each in cell.split(", ") if each]


def test_it_is_what_the_script_writes() -> None:
    assert SCRIPT["modelled_page"]() == PAGE, "run: python docs/generate_modelled.py"


def test_every_gate_and_every_in_tree_plugin_is_there_with_its_mark() -> None:
    gates = {mark: fields(names) for mark, names in rows("Feature gates") if names != "gates"}
    assert list(gates) == ["✓", "partial", "no"]
    assert sorted(name for names in gates.values() for name in names) == sorted(FEATURE_GATES)
    assert [name for name in gates["✓"] if FEATURE_GATES[name].only is False] == []
    section = PAGE.partition("\n## In-tree plugins\n")[2].partition("\n## ")[0]
    (listed,) = re.findall(r"\(plugins\.md\): (.+)\.$", section, re.MULTILINE)
    assert listed.split(", ") == SCRIPT["in_tree_plugins"]()
    assert len(listed.split(", ")) > 20


def test_gates_that_are_called_partial_are_gates_that_can_not_be_on() -> None:
    assert [FEATURE_GATES[name].only for name in SCRIPT["PARTIAL_GATES"]] == [False]


def test_every_kind_that_is_read_is_there_with_each_of_its_known_fields_once() -> None:
    table = {
        name.strip("`"): [*fields(whole), *fields(partly), *fields(none)]
        for name, whole, partly, none in rows("Fields of objects")
        if name != "type"
    }
    (names,) = re.findall(r"^All fields are read of these types: (.+)\.$", PAGE, re.MULTILINE)
    whole = [name.strip("`") for name in names.split(", ")]
    assert KINDS.keys() <= {*table, *whole}
    assert [
        name for name in whole if set(SCRIPT["field_marks"](name, READ[name], KNOWN).values()) - {"✓"}
    ] == []
    for name, listed in table.items():
        assert sorted(listed) == sorted(KNOWN[name].keys() - SHARED), name


def needed(cls: type) -> set[str]:
    """The fields without which nothing can be read."""
    return {each.name for each in attrs.fields(cls) if each.init and each.default is attrs.NOTHING}


NEEDED = {"name": "a", "metadata": {"name": "a"}}
READABLE = sorted(name for name, cls in READ.items() if needed(cls) <= NEEDED.keys())


def test_most_types_can_be_read_from_a_name_alone() -> None:
    assert len(READABLE) > 100


@pytest.mark.parametrize("name", READABLE)
def test_a_field_that_is_called_unread_changes_nothing(name: str) -> None:
    marks = SCRIPT["field_marks"](name, READ[name], KNOWN)
    unread = {field: {"any": "thing"} for field, mark in marks.items() if mark == "no"}
    assert structure(NEEDED | unread, READ[name]) == structure(NEEDED, READ[name])


def test_the_controllers_of_kschedfw_are_there() -> None:
    offered = ["VolumeController", "ClaimController"]
    assert [
        each for each in offered if hasattr(kschedfw.cluster, each) or hasattr(kschedfw_devices, each)
    ] == offered
    assert [each for each in offered if f"`{each}`" not in PAGE] == []
