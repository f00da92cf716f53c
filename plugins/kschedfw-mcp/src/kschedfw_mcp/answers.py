"""Answers in a form for agents: with codes, with the command that shows the same, and not longer than they may be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, Field

from kschedfw_mcp.questions import Limits, QuestionError, Result

_LENGTHS: Final = (200, 100, 50, 20, 10, 5, 3, 1)
"""Numbers of items of each list that are tried, until the answer is short enough."""
_LONGEST_TEXT: Final = 2000
_MOST_FIELDS: Final = 40
"""A mapping with more entries is one by name, such as amounts by node, and is as long as a list."""


class Answer(BaseModel):
    """The answer to a question."""

    command: str = Field(
        description="The command that shows the same; a file that isn't the cluster's is an argument."
    )
    code: str = Field(description="What came of it, as a stable code.")
    codes: list[str] = Field(description="All codes in the answer, for programs.")
    answer: Any = Field(description="What the command says, as JSON.")
    omitted: dict[str, int] = Field(
        description="By path, how many items of a list were left out for length; ask for less to see them."
    )
    messages: str = Field(description="Warnings on the input.")


def answer_of(result: Result, code: str, content: Any, limits: Limits) -> Answer:
    """Return the answer with this outcome, shortened to the limit.

    Raises:
        QuestionError: it can't be shortened enough.
    """
    codes = sorted({code, *codes_in(content)})
    for most in _LENGTHS:
        omitted: dict[str, int] = {}
        shown = shortened(content, most, "", omitted)
        if len(json.dumps(shown, ensure_ascii=False).encode()) <= limits.most_bytes:
            return Answer(
                command=result.command,
                code=code,
                codes=codes,
                answer=shown,
                omitted=omitted,
                messages=result.messages,
            )
    raise QuestionError(
        f"the answer is longer than {limits.most_bytes} bytes; ask about less: {result.command}"
    )


def codes_in(content: Any) -> Iterator[str]:
    """Return the values of all fields `code`."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key == "code" and isinstance(value, str):
                yield value
            else:
                yield from codes_in(value)
    elif isinstance(content, list):
        for item in content:
            yield from codes_in(item)


def shortened(content: Any, most: int, path: str, omitted: dict[str, int]) -> Any:
    """Return the content with at most so many items of each list and mapping; `omitted` gets what was left out."""
    if isinstance(content, dict):
        items = list(content.items())
        if len(items) > max(most, _MOST_FIELDS):
            where = path or "."
            omitted[where] = omitted.get(where, 0) + len(items) - most
            items = items[:most]
        return {
            key: shortened(value, most, f"{path}.{key}" if path else key, omitted) for key, value in items
        }
    if isinstance(content, list):
        if len(content) > most:
            where = f"{path}[]"
            omitted[where] = omitted.get(where, 0) + len(content) - most
        return [shortened(item, most, f"{path}[]", omitted) for item in content[:most]]
    if isinstance(content, str) and len(content) > _LONGEST_TEXT:
        return content[:_LONGEST_TEXT] + "…"
    return content
