"""Arguments and options that several commands share, as decorators of commands, and types of their values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum, StrEnum
from math import isnan
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import click

from kschedfw.api.field_errors import FieldErrors
from kschedfw.api.limits import DEFAULT_LIMITS
from kschedfw.api.manifests import FieldValidation
from kschedfw.api.scalars import read_duration, read_time
from kschedfw.cli.formats import FORMATS, MANIFESTS
from kschedfw.config import PRESETS
from kschedfw.framework.versions import VERSIONS
from kschedfw.scheduler import FirstByNameSelector, HostSelector, RoundRobinSelector

_NONE = "none is installed, kschedfw-legacy has some"

E = TypeVar("E", bound=Enum)
F = TypeVar("F", bound=Callable[..., object])

FILE: Final = click.Path(path_type=Path)
"""A file or a directory, which a shell completes."""


class Values(click.Choice[E]):
    """The values of an enum's members. (click itself takes their names.)"""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return super().normalize_choice(choice.value if isinstance(choice, Enum) else choice, ctx)


class IntRange(click.IntRange):  # noqa: TID251  # made here
    """A range of whole numbers."""

    def __init__(self, min: int | None = None, max: int | None = None) -> None:
        super().__init__(min, max)
        # click ends the error about a text that is no number with this name; its own is "integer range".
        self.name = f"whole number in the range {self._describe_range()}"


class FloatRange(click.FloatRange):  # noqa: TID251  # made here
    """A range of numbers, in which NaN isn't."""

    def __init__(self, min: float | None = None, max: float | None = None) -> None:
        super().__init__(min, max)
        self.name = f"number in the range {self._describe_range()}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


cluster_argument = click.argument(
    "cluster",
    nargs=-1,
    type=FILE,
    metavar="[CLUSTER]...",
    help="Files or directories of manifests, or a CSV of nodes; added to a live cluster if there is one.",
)
pods_option = click.option(
    "--pods", multiple=True, type=FILE, metavar="FILE", help="More manifests, or a CSV of pods. Repeatable."
)
format_option = click.option(
    "--format",
    default=MANIFESTS,
    metavar="FORMAT",
    help="manifests, or openb with kschedfw-lab: CLUSTER and --pods are CSVs of the OpenB trace.",
    shell_complete=lambda _context, _option, begun: [
        each for each in (MANIFESTS, *FORMATS.names()) if each.startswith(begun)
    ],
)
skip_invalid_option = click.option(
    "--skip-invalid", is_flag=True, help="Leave invalid objects out instead of ending with an error."
)
no_expand_option = click.option(
    "--no-expand",
    is_flag=True,
    help="Make no pods of Deployments, Jobs and the like that the input has no pods of.",
)
expand_custom_option = click.option(
    "--expand-custom",
    is_flag=True,
    help="Make pods of well-known custom kinds, too: JobSet, LeaderWorkerSet, RayCluster and the like.",
)
limit_option = click.option(
    "--limit",
    multiple=True,
    metavar="NAME=N",
    help="Change a limit of the input: "
    + ", ".join(f"{name}={limit}" for name, limit in attrs.asdict(DEFAULT_LIMITS).items())
    + ". Repeatable.",
)
field_validation_option = click.option(
    "--field-validation",
    type=Values(FieldValidation, case_sensitive=False),
    default=FieldValidation.STRICT.value,
    help="What to do about fields that Kubernetes doesn't know: refuse the object, warn, or ignore the field.",
)
config_option = click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="A KubeSchedulerConfiguration or a Policy. Without it, kube-scheduler's defaults.",
)
provider_option = click.option(
    "--algorithm-provider",
    metavar="NAME",
    help=f"Instead of a file, an algorithm provider: {' or '.join(PRESETS.names()) or _NONE}.",
)
gates_option = click.option(
    "--feature-gates",
    multiple=True,
    metavar="GATE=true|false,...",
    help="kube-scheduler's feature gates, and those of Policies. Repeatable.",
)
kube_version_option = click.option(
    "--kube-version",
    metavar="1.N",
    help=f"The version of Kubernetes whose feature gates are the defaults: {', '.join(VERSIONS)}.",
)
kube_versions_option = click.option(
    "--kube-version",
    "kube_versions",
    multiple=True,
    metavar="VERSION",
    help="Compare versions of Kubernetes instead, with one configuration or the default one, and find the changes "
    f"that pods move by: {', '.join(VERSIONS)}. Give it two times or more.",
)
html_option = click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Also write a page to look at: one file that loads nothing. Needs the extra html.",
)


class SelectHost(StrEnum):
    """The rule for choosing among equally good nodes."""

    RANDOM = "random"
    ROUND_ROBIN = "round-robin"
    FIRST_BY_NAME = "first-by-name"

    def selector(self) -> HostSelector | None:
        """Return a new selector; None for the scheduler's default one."""
        match self:
            case SelectHost.ROUND_ROBIN:
                return RoundRobinSelector()
            case SelectHost.FIRST_BY_NAME:
                return FirstByNameSelector()
        return None


select_host_option = click.option(
    "--select-host",
    type=Values(SelectHost),
    default=SelectHost.RANDOM.value,
    help=(
        "Which of the nodes with the highest score: a random one, each in turn as until v1.15, or the "
        "first by name."
    ),
)


def _time(text: str) -> datetime:
    try:
        return read_time(text, datetime)
    except FieldErrors:
        hint = f"; did you mean {text}Z?" if _is_time(f"{text}Z") else ""
        raise click.BadParameter(f"{text!r} is no time such as 2006-01-02T15:04:05Z{hint}") from None


def _is_time(text: str) -> bool:
    try:
        read_time(text, datetime)
    except FieldErrors:
        return False
    return True


def _seconds(text: str) -> float:
    from kschedfw.simulator.arguments import LONGEST_ATTEMPT  # only commands that simulate need it

    try:
        seconds = read_duration(text, float)
    except FieldErrors:
        raise click.BadParameter(f"{text!r} is no duration such as 3ms or 1.5s") from None
    if not 0 <= seconds <= LONGEST_ATTEMPT:
        raise click.BadParameter(f"{text!r} is not between 0s and 1h")
    return seconds


start_time_option = click.option(
    "--start-time",
    type=_time,
    metavar="TIME",
    help="When virtual time begins, e.g. 2006-01-02T15:04:05Z. Default: when the first pod was made.",
)
attempt_time_option = click.option(
    "--attempt-time",
    type=_seconds,
    default="0s",
    metavar="DURATION",
    help="Virtual time that each attempt to schedule a pod takes, e.g. 3ms.",
)
seed_option = click.option(
    "--seed",
    type=IntRange(0),
    default=0,
    metavar="N",
    help="Seed of what is random, such as the choice between nodes with equal scores.",
)
parallelism_option = click.option(
    "--parallelism",
    type=IntRange(1),
    default=1,
    metavar="N",
    help="Threads for plugins. Faster only if plugins block; decisions don't change.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, with everything.")


def json_lines_option(lines: str) -> Callable[[F], F]:
    """Return the option `--json` of a command that prints a line of JSON for each of these."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print a line of JSON for {lines}.")


no_progress_option = click.option("--no-progress", is_flag=True, help="No progress bar.")
