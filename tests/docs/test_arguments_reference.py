"""docs/arguments.md is what its script writes, and so has every argument of every plugin of ours."""

from __future__ import annotations

import runpy
from pathlib import Path

import attrs
import pytest

from kschedfw import Registry
from kschedfw.api.convert import json_name

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def reference() -> str:
    return (DOCS / "arguments.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["NodeResourcesFit", "PodTopologySpread", "ServiceAffinity", "VolumeBinding"]
)
def test_a_plugins_section_has_its_arguments(reference: str, name: str) -> None:
    section = reference.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    args_type = Registry().load(name).args_type
    assert args_type is not None
    assert attrs.has(args_type)
    assert all(f"| `{json_name(field)}` |" in section for field in attrs.fields(args_type))


def test_it_is_what_the_script_writes(reference: str) -> None:
    generated = runpy.run_path(str(DOCS / "generate_arguments.py"))["arguments_reference"]()
    assert reference == generated, "run: python docs/generate_arguments.py"
