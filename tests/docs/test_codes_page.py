"""The page of codes and its JSON schema are what the tables of codes say."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT: dict[str, Any] = runpy.run_path(str(DOCS / "generate_codes.py"))


def test_page_and_schema_are_what_the_script_writes() -> None:
    page, schema = (DOCS / "codes.md").read_text("utf-8"), (DOCS / "codes.schema.json").read_text("utf-8")
    assert SCRIPT["codes_page"]() == page, "run: python docs/generate_codes.py"
    assert SCRIPT["codes_schema"]() == json.loads(schema), "run: python docs/generate_codes.py"


def test_codes_are_kebab_case_and_each_has_one_meaning() -> None:
    codes = [code for table in SCRIPT["tables"]().values() for code in table]
    assert len(codes) == len(set(codes))
    assert all(code == code.lower() and code.replace("-", "").isalnum() for code in codes)
