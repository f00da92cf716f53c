"""Arguments and options that several commands share, named after the parameters that they annotate."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import attrs
import typer

from kschedfw.api.field_errors import FieldErrors
from kschedfw.api.limits import DEFAULT_LIMITS
from kschedfw.api.manifests import FieldValidation
from kschedfw.api.scalars import read_duration, read_time
from kschedfw.cli.formats import FORMATS, MANIFESTS
from kschedfw.config import PRESETS
from kschedfw.framework.versions import VERSIONS
from kschedfw.scheduler import FirstByNameSelector, HostSelector, RoundRobinSelector

_NONE = "none is installed, kschedfw-legacy has some"

ClusterArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="CLUSTER",
        help="Files or directories of manifests, or a CSV of nodes; added to a live cluster if there is one.",
        show_default=False,
    ),
]
PodsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="More manifests, or a CSV of pods. Repeatable."),
]
FormatOption = Annotated[
    str,
    typer.Option(
        metavar="FORMAT",
        help="manifests, or openb with kschedfw-lab: CLUSTER and --pods are CSVs of the OpenB trace.",
        autocompletion=lambda: [MANIFESTS, *FORMATS.names()],
    ),
]
SkipInvalidOption = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave invalid objects out instead of ending with an error.")
]
NoExpandOption = Annotated[
    bool,
    typer.Option(
        "--no-expand", help="Make no pods of Deployments, Jobs and the like that the input has no pods of."
    ),
]
ExpandCustomOption = Annotated[
    bool,
    typer.Option(
        "--expand-custom",
        help="Make pods of well-known custom kinds, too: JobSet, LeaderWorkerSet, RayCluster and the like.",
    ),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=N",
        help="Change a limit of the input: "
        + ", ".join(f"{name}={limit}" for name, limit in attrs.asdict(DEFAULT_LIMITS).items())
        + ". Repeatable.",
    ),
]
FieldValidationOption = Annotated[
    FieldValidation,
    typer.Option(
        case_sensitive=False,
        help="What to do about fields that Kubernetes doesn't know: refuse the object, warn, or ignore the field.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A KubeSchedulerConfiguration or a Policy. Without it, kube-scheduler's defaults.",
    ),
]
ProviderOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm-provider",
        metavar="NAME",
        help=f"Instead of a file, an algorithm provider: {' or '.join(PRESETS.names()) or _NONE}.",
    ),
]
GatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=true|false,...",
        help="kube-scheduler's feature gates, and those of Policies. Repeatable.",
    ),
]
KubeVersionOption = Annotated[
    str | None,
    typer.Option(
        "--kube-version",
        metavar="1.N",
        help=f"The version of Kubernetes whose feature gates are the defaults: {', '.join(VERSIONS)}.",
    ),
]

HtmlOption = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Also write a page to look at: one file that loads nothing. Needs the extra html.",
    ),
]


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


SelectHostOption = Annotated[
    SelectHost,
    typer.Option(
        help=(
            "Which of the nodes with the highest score: a random one, each in turn as until v1.15, or the "
            "first by name."
        )
    ),
]


def _time(text: str) -> datetime:
    try:
        return read_time(text, datetime)
    except FieldErrors:
        hint = f"; did you mean {text}Z?" if _is_time(f"{text}Z") else ""
        raise typer.BadParameter(f"{text!r} is no time such as 2006-01-02T15:04:05Z{hint}") from None


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
        raise typer.BadParameter(f"{text!r} is no duration such as 3ms or 1.5s") from None
    if not 0 <= seconds <= LONGEST_ATTEMPT:
        raise typer.BadParameter(f"{text!r} is not between 0s and 1h")
    return seconds


StartTimeOption = Annotated[
    datetime | None,
    typer.Option(
        parser=_time,
        metavar="TIME",
        help="When virtual time begins, e.g. 2006-01-02T15:04:05Z. Default: when the first pod was made.",
    ),
]
AttemptTimeOption = Annotated[
    float | None,
    typer.Option(
        parser=_seconds,
        metavar="DURATION",
        help="Virtual time that each attempt to schedule a pod takes, e.g. 3ms. Default: none.",
    ),
]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="Seed of the random choice between nodes with equal scores.")
]
ParallelismOption = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Threads for plugins. Faster only if plugins block; decisions don't change."
    ),
]
NoProgressOption = Annotated[bool, typer.Option("--no-progress", help="No progress bar.")]
