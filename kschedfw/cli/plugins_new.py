"""`kschedfw plugins new`: creates a distribution with a plugin from a template."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import typer

from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import ExitCode, complain
from kschedfw.cli.plugins_new_names import ProjectNames, check_command

NEEDS_EXTRA = "plugins new needs the extra new: pip install 'kschedfw[new]'"
_OF_COPIER = re.compile(r"^Validation error for question '(\w+)'")
TEMPLATE = Path(__file__).parent / "plugin_template"

NEW_HELP = """Make a distribution with a plugin: code, tests, an example, CI.

NAME is the distribution's name. kschedfw-gpu-share has the package kschedfw_gpu_share and the plugin GpuShare, a small
working plugin with a filter, a score and an argument. Its tests pass as they are. With --command it also adds a
subcommand to kschedfw, and a source of clusters to all that ask about one.

On a terminal, options that aren't given are asked for, unless --defaults is given.

\b
Exit codes:
  0    the project was written
  1    the extra new isn't installed
  2    bad usage, or the directory isn't empty; nothing was written
  70   a bug in kschedfw
  130  interrupted; nothing was written
"""


class Licence(StrEnum):
    """Licences whose texts the template has, by SPDX identifier."""

    APACHE = "Apache-2.0"
    MIT = "MIT"
    BSD = "BSD-3-Clause"


def new_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The distribution's name.")],
    dest: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to put it: a new or an empty directory. Without it, ./NAME."),
    ] = None,
    class_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The plugin's name, if it isn't to be made from NAME.")
    ] = None,
    command: Annotated[
        str | None, typer.Option(metavar="NAME", help="A subcommand to add to kschedfw.")
    ] = None,
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the plugin does, in one line.")
    ] = None,
    author: Annotated[str | None, typer.Option(metavar="NAME", help="The copyright holder.")] = None,
    licence: Annotated[Licence | None, typer.Option("--license", help="The project's licence.")] = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Use defaults instead of asking.")] = False,
) -> None:
    names = ProjectNames.of(name, class_name)
    target = Path(names.distribution) if dest is None else dest
    _check_free(target)
    check_command(command)
    given = {"command": command, "description": description, "author": author, "license": licence}
    answers = {
        "distribution": names.distribution,
        "package": names.package,
        "class_name": names.class_name,
        "kschedfw_version": version("kschedfw"),
        **{question: str(answer) for question, answer in given.items() if answer is not None},
    }
    try:
        _generate(target, answers, ask=not defaults and sys.stdin.isatty())
    except OSError as error:  # the file in its message may be a temporary one of `_generate`
        raise UsageError(
            f"{target}: {error.strerror or error}; give another directory with --dest"
        ) from error
    print(_next_steps(target, names))


def _check_free(target: Path) -> None:
    if target.is_symlink() or target.exists():
        if not target.is_dir():
            raise UsageError(f"{target} is no directory; give another one with --dest")
        if any(target.iterdir()):
            raise UsageError(f"{target} isn't empty; give another directory with --dest")


def _generate(target: Path, answers: Mapping[str, str], *, ask: bool) -> None:
    """Fill the template with copier in a temporary directory first, so that the target gets all files or none."""
    try:
        import copier
        from copier.errors import CopierError
    except ModuleNotFoundError:
        raise typer.Exit(complain(NEEDS_EXTRA, ExitCode.NOTHING_TO_DO)) from None

    there = next(path for path in (target, *target.absolute().parents) if path.is_dir())
    with tempfile.TemporaryDirectory(prefix=".kschedfw-new-", dir=there) as directory:
        project = Path(directory) / "project"
        try:
            copier.run_copy(
                str(TEMPLATE),
                project,
                dict(answers),
                settings=copier.Settings(),  # the user's settings for other templates don't apply
                defaults=not ask,
                quiet=True,
            )
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except (CopierError, ValueError) as error:  # an option's answer that isn't valid
            raise UsageError(_OF_COPIER.sub(r"--\1", str(error))) from error
        if there == target:
            for path in project.iterdir():
                path.rename(target / path.name)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            project.rename(target)


def _next_steps(target: Path, names: ProjectNames) -> str:
    return f"""\
{target} has the plugin {names.class_name}. Next:

  cd {shlex.quote(str(target))}
  pip install --editable '.[dev]'
  pytest
  kschedfw plugins show {names.class_name}
  kschedfw simulate example/cluster.yaml --config example/profile.yaml

Its policy is in src/{names.package}/plugin.py, its arguments in src/{names.package}/args.py.{_from_a_checkout()}"""


def _from_a_checkout() -> str:
    """Return how to install kschedfw in another environment, if this one wasn't installed from an index (PEP 610)."""
    found = json.loads(distribution("kschedfw").read_text("direct_url.json") or "{}")
    path = found.get("url", "").removeprefix("file://")
    if not path.startswith("/"):
        return ""
    editable = "--editable " if found.get("dir_info", {}).get("editable") else ""
    command = f"pip install {editable}{shlex.quote(unquote(path))}"
    return f"\n\nThis kschedfw is from a checkout. In another environment install it first: {command}"
