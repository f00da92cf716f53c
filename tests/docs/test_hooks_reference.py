"""docs/hooks.md has every hook, and is what its script writes."""

from __future__ import annotations

import ast
import inspect
import runpy
from pathlib import Path

import pytest

from kschedfw.framework import hookspecs
from kschedfw.framework.hookspecs import HOOKS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def reference() -> str:
    return (DOCS / "hooks.md").read_text(encoding="utf-8")


def signatures_in_source() -> dict[str, str]:
    """The hooks' signatures, read without the script under test."""
    return {
        node.name: f"def {node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"
        for node in ast.parse(inspect.getsource(hookspecs)).body
        if isinstance(node, ast.FunctionDef) and node.returns is not None
    }


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_every_hook_is_there_with_its_exact_signature(reference: str, name: str) -> None:
    assert f"\n## {name}\n" in reference
    assert f"\n{signatures_in_source()[name]}\n" in reference


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_every_contract_is_there(reference: str, name: str) -> None:
    contract = inspect.getdoc(getattr(hookspecs, name))
    assert contract
    assert contract in reference


def test_it_is_what_the_script_writes(reference: str) -> None:
    generated = runpy.run_path(str(DOCS / "generate_hooks.py"))["hooks_reference"]()
    assert reference == generated, "run: python docs/generate_hooks.py"
