"""`kschedfw dump`: writes a cluster's state to one file."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import click

from kschedfw import CustomKind
from kschedfw.api import Named, to_manifest
from kschedfw.cli import FILE, UsageError, counted, no_progress_option, progress_bar, tell
from kschedfw_kubernetes.anonymize import Anonymizer
from kschedfw_kubernetes.cli.options import connection_options, content_options
from kschedfw_kubernetes.cluster.reading import kinds_of_plugins, missing_lines, read_cluster
from kschedfw_kubernetes.cluster.scheduling_fields import scheduling_fields

DUMP_HELP = """Write the state of a live cluster to one file, which all commands read.

The file has what decisions depend on: nodes, pods that haven't ended, volumes, claims, and so on, each without what
scheduling doesn't read. So it has no Secrets nor their names, no environment of containers, no parameters of
devices, and only the annotations that scheduling reads. FILE ends in .json or .json.gz, and only you may
read it; - is the standard output.

\b
Exit codes:
  0    done; standard error says which rights were missing, if any
  2    bad usage, or the cluster can't be read; nothing was written
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""

_SUFFIXES: Final = (".json", ".json.gz")


@click.command("dump", help=DUMP_HELP)
@click.argument("file", type=FILE, metavar="FILE", help="What to write; - is the standard output.")
@connection_options
@click.option(
    "--namespace",
    metavar="NAME",
    help="What is read where the user may not list all namespaces. Default: the context's.",
)
@click.option(
    "--anonymize",
    is_flag=True,
    help="Replace names, labels, images and the like, each by the same everywhere: decisions stay the same.",
)
@content_options
@no_progress_option
def dump(
    file: Path,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    anonymize: bool,
    custom_kinds: Sequence[CustomKind],
    annotations: frozenset[str],
    no_progress: bool,
) -> None:
    if str(file) != "-" and not file.name.lower().endswith(_SUFFIXES):
        raise UsageError(f"{file}: the file must end in {' or '.join(_SUFFIXES)}")
    with progress_bar("reading the cluster", enabled=not no_progress) as progress:
        found = read_cluster(
            kubeconfig,
            context,
            namespace,
            custom_kinds=dict.fromkeys((*kinds_of_plugins(), *custom_kinds)),
            progress=progress,
            with_warnings=False,
        )
    tell(
        [
            *map(str, found.manifests.problems),
            *(f"warning: {line}" for line in missing_lines(found.missing_rights)),
        ]
    )
    objects: Iterable[Named] = (
        scheduling_fields(obj, annotations) for obj in found.manifests.objects(skip_invalid=True)
    )
    if anonymize:
        objects = Anonymizer().anonymized(objects)
    with _opened(file) as output:
        written = _write(output, objects)
    print(f"{file}: {counted(written, 'object')} of {found.source}", file=sys.stderr)


def _write(output: IO[str], objects: Iterable[Named]) -> int:
    """Write a List, one object a line. Return the number of objects."""
    count = 0
    output.write('{"apiVersion": "v1", "kind": "List", "items": [')
    for obj in objects:
        output.write(",\n" if count else "\n")
        # In ASCII, which is JSON in any encoding that stdout may have.
        json.dump(to_manifest(obj), output, separators=(",", ":"))
        count += 1
    output.write("\n]}\n")
    return count


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[IO[str]]:
    """Yield the file to write. It replaces an older file of the same name only when it is complete.

    Only its owner may read it, even if an older file had another mode: names and labels tell much about a cluster.
    """
    if str(file) == "-":
        yield sys.stdout
        return
    # Follow a symbolic link: its target is replaced, not the link.
    target = Path(os.path.realpath(file))
    # `mkstemp` creates files with mode 600.
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        # The error itself names the temporary file, which nobody asked for.
        raise UsageError(f"{file}: can't be written in {target.parent}: {error.strerror or error}") from None
    written = Path(name)
    try:
        with open(descriptor, "wb") as raw:  # noqa: PTH123  # a descriptor
            if target.name.lower().endswith(".gz"):
                with gzip.open(raw, "wt", encoding="utf-8") as packed:  # noqa: TID251  # written
                    yield packed
            else:
                with io.TextIOWrapper(raw, encoding="utf-8") as plain:
                    yield plain
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)
