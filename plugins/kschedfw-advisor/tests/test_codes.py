"""Whatever the commands say in JSON has a code of the tables, and its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kschedfw_advisor import codes
from planted import answers

from kschedfw.explain import CAUSES, FINDINGS, GROUP_CAUSES, Code, code_of_plugin

TABLES = {
    "outcome": codes.outcomes(),
    "causes": CAUSES,
    "groupCause": GROUP_CAUSES,
    "findings": {**FINDINGS, **codes.findings()},
    "actions": codes.changes(),
}


def coded(value: Any, key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object with a code in a document, with the name of the field that it is in."""
    if isinstance(value, dict):
        if "code" in value:
            yield key, value
        for name, each in value.items():
            yield from coded(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from coded(each, key)


def check(key: str, found: dict[str, Any]) -> None:
    table: dict[str, Code] = dict(TABLES[key])
    if key == "causes" and found["code"] == code_of_plugin(found["plugin"]) and found["code"] not in table:
        assert list(found["parameters"]) == ["reason"]
        return
    assert set(found["parameters"]) <= set(table[found["code"]].parameters)
    assert found["text"]


def test_what_is_said_of_planted_mistakes_is_coded() -> None:
    # Not a test for each workload: every worker would ask about all of them in order to know their names.
    for workload, kind in answers().items():
        assert kind["outcome"] in TABLES["outcome"], workload
        assert kind["causes"] or kind["groupCause"] or kind["findings"], workload
        for key, found in coded(kind):
            check(key, found)
        for remedy in kind["helps"]:
            assert [each["text"] for each in remedy["actions"]] == remedy["changes"], workload
