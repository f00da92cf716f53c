"""The names of a new plugin, its package and its distribution."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.metadata import packages_distributions

import attrs

import kschedfw
from kschedfw.cli.commands import COMMANDS
from kschedfw.cli.enabled import UsageError
from kschedfw.framework.runtime.registry import Registry

# With names of this length every line of the template is short enough.
MAX_DISTRIBUTION = 40
MAX_CLASS_NAME = 25
# Names that the template imports, in addition to kschedfw's public names.
_TAKEN_CLASSES = frozenset(
    {"Counter", "FakeClock", "FrameworkHarness", "Hashable", "Iterator", "Path", "PluginContract", "Sequence"}
)

# As in the packaging specification.
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")
_COMMAND = re.compile(r"[a-z](?:[a-z0-9-]{0,18}[a-z0-9])?")
_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_OWN_PREFIX = "kschedfw"
_TAKEN_PACKAGES = frozenset({_OWN_PREFIX, "example", "src", "tests"})


@attrs.frozen
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
    owners = packages_distributions().get(package)
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
