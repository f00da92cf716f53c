"""docs/hooks.md has every hook, and is what its script writes."""

from __future__ import annotations

import ast
import inspect
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from kschedfw.framework import hookspecs
from kschedfw.framework.hookspecs import HOOKS

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "generate_hooks.py"))
HOOK = {"arguments": ["pod", "node_info"], "point": "filter", "codes": ["Pending"], "goes_with": None}


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
    generated = SCRIPT["hooks_reference"]()
    assert reference == generated, "run: python docs/generate_hooks.py"


class TestContract:
    def version(self, hooks: dict[str, dict[str, Any]]) -> str:
        """The version after 2.3, whose only hook is HOOK, if these are the hooks then."""
        recorded = {"version": "2.3", "hooks": {"filter": HOOK}}
        return str(SCRIPT["next_contract"](recorded, hooks)["version"])

    def test_the_record_has_the_hooks_of_the_source(self) -> None:
        recorded = json.loads((DOCS / "hook-contract.json").read_text(encoding="utf-8"))
        assert recorded["hooks"] == SCRIPT["declared"](), "run: python docs/generate_hooks.py"

    def test_the_version_stays_where_nothing_differs(self) -> None:
        assert self.version({"filter": HOOK}) == "2.3"

    @pytest.mark.parametrize(
        "hooks",
        [
            {"filter": HOOK, "score": HOOK},
            {"filter": HOOK | {"arguments": ["state", "pod", "node_info"]}},
            {"filter": HOOK | {"codes": ["Pending", "Skip"]}},
        ],
        ids=["a hook more", "an argument more", "a code more"],
    )
    def test_the_minor_rises_where_plugins_go_on_fitting(self, hooks: dict[str, dict[str, Any]]) -> None:
        assert self.version(hooks) == "2.4"

    @pytest.mark.parametrize(
        "hooks",
        [
            {},
            {"filter": HOOK | {"arguments": ["pod"]}},
            {"filter": HOOK | {"codes": []}},
            {"filter": HOOK | {"codes": None}},
            {"filter": HOOK | {"point": "score"}},
            {"filter": HOOK | {"goes_with": "pre_filter"}},
        ],
        ids=["no hook", "an argument less", "a code less", "no status", "another point", "another hook too"],
    )
    def test_the_major_rises_where_a_plugin_may_no_longer_fit(self, hooks: dict[str, dict[str, Any]]) -> None:
        assert self.version(hooks) == "3.0"
