"""Every command that reads files takes a dump with objects of all kinds."""

from __future__ import annotations

import json
import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from kschedfw_apiserver.forked import EndedProcess, run_forked

from kschedfw.testing import Command
from tests.api.any_objects import everything_of_a_dump, object_of

_COMMANDS = {
    "simulate": ("simulate", "FILE"),
    "explain": ("explain", "FILE", "default/web"),
    "pending": ("pending", "FILE"),
    "fit": ("fit", "FILE", "--pod", "FILE"),
    "drain": ("drain", "FILE", "web"),
    "scale-up": ("scale-up", "FILE", "--node-group", "NODE"),
    "scale-down": ("scale-down", "FILE"),
    "what-if": ("what-if", "FILE", "--changes", "CHANGES"),
    "compare": ("compare", "FILE", "--profile", "default", "--profile", "ClusterAutoscalerProvider"),
}
_SERVERS = {"explore", "mcp", "serve-extender"}
"""Commands that read files by the same function, and serve until they are ended."""


def kschedfw(directory: Path, *arguments: str) -> EndedProcess:
    return run_forked("-m", "kschedfw", *arguments, cwd=directory, env=os.environ)


def test_the_table_has_every_command_that_reads_files(kschedfw_command: Command) -> None:
    names = {each.name for each in entry_points(group="kschedfw.commands")}
    reading = {name for name in names if "--skip-invalid" in kschedfw_command(name, "--help").out}
    assert reading - _SERVERS == _COMMANDS.keys() & names


@pytest.mark.slow
def test_no_command_fails_by_a_dump_with_objects_of_all_kinds(tmp_path: Path) -> None:
    # In the other forms it is read as the same objects: see tests/api/test_any_objects.py.
    (tmp_path / "FILE").write_text("\n---\n".join(map(json.dumps, everything_of_a_dump())))
    # A group of nodes is described by nodes alone.
    (tmp_path / "CHANGES").write_text('[{"kind": "cordon", "nodes": ["web"]}]')
    (tmp_path / "NODE").write_text(json.dumps(object_of("v1", "Node", {"name": "new"})))
    installed = {each.name for each in entry_points(group="kschedfw.commands")}
    for name in _COMMANDS.keys() & installed:
        ended = kschedfw(tmp_path, *_COMMANDS[name])
        assert ended.code in (0, 1), (name, ended.output)
