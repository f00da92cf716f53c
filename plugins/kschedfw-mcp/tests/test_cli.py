"""What `kschedfw mcp` refuses before it serves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kschedfw.testing import Command


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "a cluster is needed: CLUSTER..., --context NAME or --kubeconfig FILE"),
        (("none.yaml",), "none.yaml: No such file or directory"),
        (("-",), "-: standard input is where the agent speaks; name a file"),
        (("--context", "c", "--config", "none.yaml"), "none.yaml: No such file or directory"),
    ],
)
def test_what_there_is_nothing_to_ask_about_is_told_at_once(
    kschedfw_command: Command, arguments: tuple[str, ...], problem: str
) -> None:
    result = kschedfw_command("mcp", *arguments)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err


def test_without_the_sdk_it_names_the_command_that_installs_it(
    kschedfw_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith(("kschedfw_mcp.", "mcp."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    file = tmp_path / "c.yaml"
    file.write_text("{}")
    result = kschedfw_command("mcp", file)
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert result.err.startswith("kschedfw: mcp needs mcp, which isn't installed: pip install ")
