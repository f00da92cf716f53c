"""`kschedfw dump`: a cluster's state in one file."""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Any, Final

import attrs
import typer

from kschedfw.api.anonymize import Anonymizer
from kschedfw.api.custom import CustomKind
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named
from kschedfw.api.objects import to_manifest
from kschedfw.api.workloads import ReplicaSet, ReplicationController, StatefulSet
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import tell
from kschedfw.cli.live import ContextOption, KubeconfigOption, Live, NamespaceOption
from kschedfw.cli.options import NoProgressOption
from kschedfw.cli.tables import counted

DUMP_HELP = """Write the state of a live cluster to one file, which all commands read.

The file has what decisions depend on: nodes, pods that haven't ended, volumes, claims, and so on, each without what
scheduling doesn't read. So it has no Secrets, no environment of containers and no managedFields. FILE ends in .json or
.json.gz; - is the standard output.

\b
Exit codes:
  0    done; standard error says which rights were missing, if any
  2    bad usage, or the cluster can't be read; nothing was written
  70   a bug in kschedfw
  130  interrupted
"""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of a manifest, with all that is left out here."""
_SUFFIXES: Final = (".json", ".json.gz")


dump_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dump_app.command(help=DUMP_HELP)
def dump(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write; - is the standard output.")],
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    anonymize: Annotated[
        bool,
        typer.Option(
            "--anonymize",
            help="Replace names, labels, images and the like, each by the same everywhere: decisions stay the same.",
        ),
    ] = False,
    custom_kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP/VERSION/KIND",
            help="Objects of a custom kind, too, such as scheduling.x-k8s.io/v1alpha1/PodGroup. Repeatable.",
        ),
    ] = None,
    no_progress: NoProgressOption = False,
) -> None:
    if str(file) != "-" and not file.name.lower().endswith(_SUFFIXES):
        raise UsageError(f"{file}: the file must end in {' or '.join(_SUFFIXES)}")
    kinds = [_custom_kind(given) for given in custom_kind or ()]
    live = Live(kubeconfig, context, namespace)
    found = live.read(kinds, show_progress=not no_progress)
    tell([*map(str, found.manifests.problems), *(f"warning: {right}" for right in found.missing_rights)])
    objects: Iterable[Named] = map(_as_it_is, found.manifests.objects(skip_invalid=True))
    if anonymize:
        objects = Anonymizer().anonymized(objects)
    with _opened(file) as output:
        written = _write(output, objects)
    print(f"{file}: {counted(written, 'object')} of {found.source}", file=sys.stderr)


def _as_it_is(obj: Named) -> Named:
    """The object such that nothing is made of it when it is loaded: a pod that isn't there wasn't to be scheduled."""
    if _LAST_APPLIED in obj.annotations:
        rest = {key: value for key, value in obj.annotations.items() if key != _LAST_APPLIED}
        obj = obj.with_metadata(attrs.evolve(obj.metadata, annotations=FrozenDict(rest)))
    if isinstance(obj, ReplicaSet | ReplicationController | StatefulSet):
        spec: Any = obj.spec
        return attrs.evolve(obj, spec=attrs.evolve(spec, replicas=0))
    return obj


def _write(output: IO[str], objects: Iterable[Named]) -> int:
    """Write a List, an object a line; how many there are."""
    count = 0
    output.write('{"apiVersion": "v1", "kind": "List", "items": [')
    for obj in objects:
        output.write(",\n" if count else "\n")
        json.dump(to_manifest(obj), output, ensure_ascii=False, separators=(",", ":"))
        count += 1
    output.write("\n]}\n")
    return count


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[IO[str]]:
    if str(file) == "-":
        yield sys.stdout
    elif file.name.lower().endswith(".gz"):
        with gzip.open(file, "wt", encoding="utf-8") as packed:
            yield packed
    else:
        with file.open("w", encoding="utf-8") as plain:
            yield plain


def _custom_kind(given: str) -> CustomKind:
    parts: Sequence[str] = given.split("/")
    if len(parts) != 3 or not all(parts):
        raise UsageError(
            f"--custom-kind {given}: expected GROUP/VERSION/KIND, such as scheduling.x-k8s.io/v1alpha1/PodGroup"
        )
    return CustomKind("/".join(parts[:2]), parts[2])
