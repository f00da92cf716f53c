"""`kschedfw plugins new`: creates a distribution with a plugin from a template."""

from __future__ import annotations

import keyword
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from importlib.metadata import packages_distributions, version
from pathlib import Path

import click

import kschedfw
from kschedfw.api.extensions import checkout, how_to_install
from kschedfw.api.records import frozen
from kschedfw.cli.commands import COMMANDS
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import ExitCode, complain
from kschedfw.cli.options import FILE, Values
from kschedfw.framework.runtime.registry import Registry

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
  141  the reader of the output has gone
"""


class Licence(StrEnum):
    """Licences whose texts the template has, by SPDX identifier."""

    APACHE = "Apache-2.0"
    MIT = "MIT"
    BSD = "BSD-3-Clause"


@click.command("new", help=NEW_HELP, short_help="Make a distribution with a plugin, to begin from.")
@click.argument("name", metavar="NAME", help="The distribution's name.")
@click.option(
    "--dest",
    type=FILE,
    metavar="DIR",
    help="Where to put it: a new or an empty directory. Without it, ./NAME.",
)
@click.option("--class-name", metavar="NAME", help="The plugin's name, if it isn't to be made from NAME.")
@click.option("--command", metavar="NAME", help="A subcommand to add to kschedfw.")
@click.option("--description", metavar="TEXT", help="What the plugin does, in one line.")
@click.option("--author", metavar="NAME", help="The copyright holder.")
@click.option("--license", "licence", type=Values(Licence), help="The project's licence.")
@click.option("--defaults", is_flag=True, help="Use defaults instead of asking.")
def new_plugin(
    name: str,
    dest: Path | None,
    class_name: str | None,
    command: str | None,
    description: str | None,
    author: str | None,
    licence: Licence | None,
    defaults: bool,
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
    except OSError as error:
        # Reworded: the message may name a temporary file of `_generate`.
        raise UsageError(
            f"{target}: {error.strerror or error}; give another directory with --dest"
        ) from error
    print(_next_steps(target, names, command))


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
        needs = f"plugins new needs the extra new: {how_to_install('kschedfw', 'new')}"
        raise click.exceptions.Exit(complain(needs, ExitCode.NOTHING_TO_DO)) from None

    # The nearest directory that exists is on the target's file system, where renaming works.
    there = next(path for path in (target, *target.absolute().parents) if path.is_dir())
    with tempfile.TemporaryDirectory(prefix=".kschedfw-new-", dir=there) as directory:
        project = Path(directory) / "project"
        try:
            copier.run_copy(
                str(TEMPLATE),
                project,
                dict(answers),
                # The user's settings are for other templates.
                settings=copier.Settings(),
                defaults=not ask,
                quiet=True,
            )
        except KeyboardInterrupt:
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
        except (CopierError, ValueError) as error:
            # copier refuses the value of an option.
            raise UsageError(_OF_COPIER.sub(r"--\1", str(error))) from error
        if there == target:
            for path in project.iterdir():
                path.rename(target / path.name)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            project.rename(target)


def _next_steps(target: Path, names: ProjectNames, command: str | None) -> str:
    called = f"\n  kschedfw {command} example/cluster.yaml" if command else ""
    return f"""\
{target} has the plugin {names.class_name}. Next:

  cd {shlex.quote(str(target))}
  pip install --editable '.[dev]'
  pytest
  kschedfw plugins show {names.class_name}
  kschedfw simulate example/cluster.yaml --config example/profile.yaml{called}

Its policy is in src/{names.package}/plugin.py, its arguments in src/{names.package}/args.py.{_not_from_an_index()}"""


def _not_from_an_index() -> str:
    """Return how to install kschedfw in another environment, if this one was installed from a checkout or a file."""
    if (found := checkout()) is None:
        return ""
    path, is_editable = found
    command = f"pip install {'--editable ' if is_editable else ''}{shlex.quote(str(path))}"
    return f"\n\nThis kschedfw is from no package index. In another environment install it first: {command}"


# With names of this length every line of the template is short enough.
MAX_DISTRIBUTION = 40
MAX_CLASS_NAME = 25
# Names that the template imports, in addition to kschedfw's public names.
_TAKEN_CLASSES = frozenset(
    {"Counter", "FakeClock", "FrameworkHarness", "Hashable", "Iterator", "Path", "PluginContract", "Sequence"}
)

# The grammar of names in the packaging specification.
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")
_COMMAND = re.compile(r"[a-z](?:[a-z0-9-]{0,18}[a-z0-9])?")
_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_OWN_PREFIX = "kschedfw"
_TAKEN_PACKAGES = frozenset({_OWN_PREFIX, "example", "src", "tests"})


@frozen
class ProjectNames:
    """The names of a new project.

    For example, `kschedfw-gpu-share` is imported as `kschedfw_gpu_share`, and its plugin is `GpuShare`.
    """

    distribution: str
    package: str
    class_name: str

    @classmethod
    def of(cls, name: str, class_name: str | None = None) -> ProjectNames:
        """Return the names of a distribution; by default the plugin's name is derived from it.

        Raises:
            UsageError: a name is invalid, or taken.
        """
        if not _DISTRIBUTION.fullmatch(name) or len(name) > MAX_DISTRIBUTION:
            raise UsageError(
                f"NAME {name!r} is no name of a distribution: letters, digits and inner -, _ and ., at most "
                f"{MAX_DISTRIBUTION}, such as kschedfw-rack"
            )
        words = _SEPARATORS.split(name)
        names = cls(
            "-".join(words).lower(),
            "_".join(words).lower(),
            class_name if class_name is not None else _class_name(words),
        )
        _check_package(name, names.package)
        if problem := _problem_with_class_name(names.class_name):
            if class_name is not None:
                raise UsageError(f"--class-name {class_name!r} {problem}")
            raise UsageError(
                f"NAME {name}: {names.class_name!r} {problem}; name the plugin with --class-name"
            )
        return names


def _class_name(words: list[str]) -> str:
    own = words[1:] if words[0].lower() == _OWN_PREFIX else words
    return "".join(word[0].upper() + word[1:] for word in own)


def _check_package(name: str, package: str) -> None:
    if not package.isidentifier() or keyword.iskeyword(package):
        raise UsageError(f"NAME {name}: {package!r} can't be imported; begin with a letter: kschedfw-{name}")
    if package in _TAKEN_PACKAGES or package in sys.stdlib_module_names:
        raise UsageError(f"NAME {name}: a package {package!r} would hide another one; try kschedfw-{name}")
    try:
        owners = packages_distributions().get(package)
    # One distribution with metadata that can't be read fails for all; whose packages there are is a hint alone.
    except Exception:
        owners = None
    if owners:
        raise UsageError(f"NAME {name}: {owners[0]}, which is installed, has a package {package!r}")


def _problem_with_class_name(class_name: str) -> str:
    """Return why a plugin can't have this name; empty if it can."""
    registry = Registry()
    if not _CLASS_NAME.fullmatch(class_name) or len(class_name) > MAX_CLASS_NAME:
        return (
            f"is no name of a class: a capital letter, then letters and digits, at most {MAX_CLASS_NAME}, "
            "such as RackAffinity"
        )
    if class_name in registry.names():
        return f"is a plugin of {registry.distribution(class_name)}"
    if class_name in _TAKEN_CLASSES or hasattr(kschedfw, class_name) or keyword.iskeyword(class_name):
        return "means something else to the plugin's code"
    if class_name.startswith("Test"):
        return "would be a test to pytest"
    return ""


def check_command(name: str | None) -> None:
    """Check the name of a subcommand; None means that there is no subcommand.

    Raises:
        UsageError: it is invalid, or an installed distribution has it.
    """
    if name is None:
        return
    if not _COMMAND.fullmatch(name):
        raise UsageError(
            f"--command {name!r}: lower-case letters, digits and inner -, at most 20, such as racks"
        )
    if name in {*COMMANDS.names(), *COMMANDS.homes}:
        raise UsageError(f"--command {name!r}: kschedfw has it already; give another name")
