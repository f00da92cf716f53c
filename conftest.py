"""Runs the examples in README.md, docs/ and examples/*/README.md.

* `python` and `pycon` blocks are run in order, in one namespace per file; those with `>>>` are doctests.
* In `console` blocks the lines `$ kschedfw …` are run at the root of the repository. Where the block shows
  what they print, that must be so (`...` stands for anything, white space may differ); where it doesn't, they
  must succeed. Other commands are not run.
* `<!-- directory: new -->` lets the commands after it run in a new directory instead; with the path of a directory of
  the repository, in a copy of that.
* `<!-- skip: next -->` before a block leaves it out.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

from kschedfw_apiserver.forked import EndedProcess, run_forked
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer

from kschedfw.testing.waiting import PATIENCE

REPOSITORY = Path(__file__).parent
SHELLS = frozenset("|&;<>$`*?~")
QUOTED = re.compile(r"'[^']*'")

pytest_plugins = ["tests.fixtures", "kschedfw_apiserver.control_plane"]
FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE


class PyconParser(PythonCodeBlockParser):
    def __init__(self) -> None:
        super().__init__(doctest_optionflags=FLAGS)
        self.codeblock_parser = CodeBlockParser("pycon", PythonEvaluator())


def change_directory(example: Example) -> None:
    """Let the file's further commands run in a new directory, or in a copy of one of the repository."""
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    if example.parsed != "new":
        shutil.copytree(REPOSITORY / example.parsed, directory, dirs_exist_ok=True)
    example.namespace["console directory"] = directory


def directories(document: Document) -> Iterator[Region]:
    for found in DirectiveInHTMLCommentLexer("directory", r"\S+")(document):
        yield Region(found.start, found.end, found.lexemes["arguments"], change_directory)


def _run(command: str, cwd: Path) -> EndedProcess:
    """Run a command line, in a shell only if it has something that only a shell understands."""
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    name, *arguments = shlex.split(command)
    if name == "kschedfw" and SHELLS.isdisjoint(QUOTED.sub("", command)):
        return run_forked("-m", "kschedfw", *arguments, cwd=cwd, env=env)
    done = subprocess.run(
        command,
        shell=True,
        check=False,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    return EndedProcess(done.returncode, done.stdout)


def run_console(example: Example) -> str | None:
    """Run the `kschedfw` commands of a block; return the first that is wrong, if any."""
    for step in f"\n{example.parsed}".split("\n$ ")[1:]:
        command, _, expected = step.replace("\\\n", " ").partition("\n")
        if command.split(maxsplit=1)[0] != "kschedfw":
            continue
        code, output = _run(command, example.namespace.get("console directory", REPOSITORY))
        if expected.strip():
            if not OutputChecker().check_output(expected, output, FLAGS):
                return f"$ {command}\nexpected:\n{expected}\ngot:\n{output}"
        elif code:
            return f"$ {command}\nexit code {code}\n{output}"
    return None


pytest_collect_file = Sybil(
    parsers=[
        SkipParser(),
        directories,
        PythonCodeBlockParser(doctest_optionflags=FLAGS),
        PyconParser(),
        CodeBlockParser("console", run_console),
    ],
    patterns=["*.md"],
).pytest()
