"""The list of pages for agents is that of docs/index.md, and the skill names commands and options that there are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from kschedfw.testing import Command

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
SKILL = (REPOSITORY / "plugins/kschedfw-mcp/skill/kschedfw/SKILL.md").read_text(encoding="utf-8")

SCRIPT: dict[str, Any] = runpy.run_path(str(DOCS / "generate_llms.py"))


def test_it_is_up_to_date_and_has_every_page() -> None:
    text = SCRIPT["OUTPUT"].read_text(encoding="utf-8")
    assert text == SCRIPT["written"](), "run: python docs/generate_llms.py"
    listed = set(re.findall(r"\(_sources/([\w-]+)\.md\.txt\)", text))
    assert listed == {page.stem for page in DOCS.glob("*.md")} - {"index"}


COMMANDS = sorted(set(re.findall(r"^kschedfw ([a-z-]+) .*$", SKILL, re.MULTILINE)))


def test_the_skill_has_a_name_and_says_when_to_use_it() -> None:
    header = re.match(r"---\nname: kschedfw\ndescription: (.+)\n---\n", SKILL)
    assert header is not None
    assert "Use when" in header[1]
    assert len(COMMANDS) >= 6


@pytest.mark.parametrize("command", COMMANDS)
def test_the_skill_names_options_that_there_are(kschedfw_command: Command, command: str) -> None:
    told = kschedfw_command(command, "--help").out
    lines = re.findall(rf"^kschedfw {command} .*$", SKILL, re.MULTILINE)
    options = {option for line in lines for option in re.findall(r"(?<= )--[a-z-]+", line)}
    assert [option for option in sorted(options) if option not in told] == []
