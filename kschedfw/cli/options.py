"""Arguments and options that several commands share; each is called as the parameter that it annotates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import attrs
import typer

from kschedfw.api.limits import DEFAULT_LIMITS
from kschedfw.api.manifests import FieldValidation
from kschedfw.cli.inputs import InputFormat
from kschedfw.config import FEATURE_GATES, PROVIDERS

ClusterArgument = Annotated[
    list[Path],
    typer.Argument(metavar="CLUSTER", help="Files or directories of manifests; or a node CSV."),
]
PodsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="More manifests to read, or the pod CSV. Repeatable."),
]
FormatOption = Annotated[
    InputFormat, typer.Option(help="openb: CLUSTER and --pods are CSVs of the OpenB trace.")
]
SkipInvalidOption = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave invalid objects out instead of giving up.")
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=N",
        help="Read more, or less: "
        + ", ".join(f"{name}={limit}" for name, limit in attrs.asdict(DEFAULT_LIMITS).items())
        + ". Repeatable.",
    ),
]
FieldValidationOption = Annotated[
    FieldValidation,
    typer.Option(
        case_sensitive=False,
        help="What to do about fields that Kubernetes doesn't know: refuse their object, warn, or pass over them.",
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
        help=f"Instead of a file, what kube-scheduler v1.20 had: {' or '.join(PROVIDERS)}.",
    ),
]
GatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=true|false,...",
        help=f"For a Policy or an algorithm provider: {', '.join(FEATURE_GATES)}. Repeatable.",
    ),
]
SeedOption = Annotated[int, typer.Option(metavar="N", help="Decides between nodes of equal score.")]
ParallelismOption = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Threads for plugins. Pays off where they block; changes no decision."
    ),
]
NoProgressOption = Annotated[bool, typer.Option("--no-progress", help="No progress bar.")]
