"""Formats of the files that describe a cluster, beside manifests (entry-point group `kschedfw.formats`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kschedfw.api.extensions import Extensions
from kschedfw.api.records import frozen

if TYPE_CHECKING:
    from kschedfw.cli.inputs import Input

MANIFESTS: Final = "manifests"
"""The format that needs no extension: Kubernetes manifests as YAML or JSON."""


@frozen
class Format:
    """A format of input files.

    Attributes:
        read: called with the paths of CLUSTER and with those of `--pods`. It raises a `KschedfwError` or an OSError
            where a file can't be read.
    """

    read: Callable[[Sequence[Path], Sequence[Path]], Input]


FORMATS: Final = Extensions("kschedfw.formats", "format", Format, {"openb": "kschedfw-lab"}, (MANIFESTS,))
