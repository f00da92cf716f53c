"""The table of concepts names what there is, where it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| .+ \| `((?!kschedfw_)[\w/]+\.py)` \|$", re.MULTILINE)


def concepts() -> list[tuple[str, str]]:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return [(name, module) for names, module in ROW.findall(text) for name in re.findall(r"\w+", names)]


def test_there_is_a_table() -> None:
    assert len(concepts()) > 30


def test_no_name_stands_for_two_things() -> None:
    names = [name for name, _ in concepts()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "module"), concepts())
def test_a_concept_is_a_class_of_its_module(name: str, module: str) -> None:
    tree = ast.parse((ROOT / "kschedfw" / module).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
