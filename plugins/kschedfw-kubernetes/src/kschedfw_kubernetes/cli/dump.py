"""`kschedfw dump`: a cluster's state in one file."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Any, Final

import attrs
import typer

from kschedfw import CustomKind, FrozenDict, ObjectMeta
from kschedfw.api import (
    Anonymizer,
    DeviceClass,
    Named,
    PersistentVolume,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    StatefulSet,
    to_manifest,
)
from kschedfw.cli import NoProgressOption, UsageError, counted, progress_bar, tell
from kschedfw.plugins import MIGRATED_PLUGINS
from kschedfw.simulator import ANNOTATIONS
from kschedfw_kubernetes.cluster.reading import kinds_of_plugins, read_cluster

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
"""

_AVOIDED_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"  # which kschedfw-legacy reads

_OF_AUTOSCALER: Final = frozenset(  # which kschedfw-advisor reads
    f"cluster-autoscaler.kubernetes.io/{key}"
    for key in ("safe-to-evict", "safe-to-evict-local-volumes", "scale-down-disabled")
)

_ANNOTATIONS: Final = ANNOTATIONS | {MIGRATED_PLUGINS, _AVOIDED_PODS} | _OF_AUTOSCALER
"""The annotations that commands and in-tree plugins read; others may hold anything, such as a copy of a manifest."""
_SUFFIXES: Final = (".json", ".json.gz")


dump_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dump_app.command(help=DUMP_HELP)
def dump(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write; - is the standard output.")],
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the cluster that this kubeconfig names.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the cluster of this context of the kubeconfig.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What is read where the user may not list all namespaces. Default: the context's.",
        ),
    ] = None,
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
    annotation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Keep this annotation, too, since a plugin of yours reads it. Repeatable.",
        ),
    ] = None,
    no_progress: NoProgressOption = False,
) -> None:
    if str(file) != "-" and not file.name.lower().endswith(_SUFFIXES):
        raise UsageError(f"{file}: the file must end in {' or '.join(_SUFFIXES)}")
    kinds = [_custom_kind(given) for given in custom_kind or ()]
    with progress_bar("reading the cluster", enabled=not no_progress) as progress:
        found = read_cluster(
            kubeconfig,
            context,
            namespace,
            custom_kinds=dict.fromkeys((*kinds_of_plugins(), *kinds)),
            progress=progress,
        )
    tell([*map(str, found.manifests.problems), *(f"warning: {right}" for right in found.missing_rights)])
    annotations = _ANNOTATIONS.union(annotation or ())
    objects: Iterable[Named] = (
        _as_it_is(obj, annotations) for obj in found.manifests.objects(skip_invalid=True)
    )
    if anonymize:
        objects = Anonymizer().anonymized(objects)
    with _opened(file) as output:
        written = _write(output, objects)
    print(f"{file}: {counted(written, 'object')} of {found.source}", file=sys.stderr)


def _as_it_is(obj: Named, annotations: Collection[str]) -> Named:
    """The object without fields that scheduling doesn't read, in a form from which loading creates no further objects.

    A pod that isn't there wasn't to be scheduled, so workloads have no replicas.
    """
    kept = {key: value for key, value in obj.annotations.items() if key in annotations}
    if len(kept) < len(obj.annotations):
        obj = obj.with_metadata(attrs.evolve(obj.metadata, annotations=FrozenDict(kept)))
    match obj:
        case ReplicaSet() | ReplicationController() | StatefulSet():
            spec: Any = obj.spec
            return attrs.evolve(obj, spec=attrs.evolve(spec, replicas=0, template=_labelled(spec.template)))
        case PersistentVolume() if obj.spec.azure_file is not None:
            share = attrs.evolve(obj.spec.azure_file, secret_name="", secret_namespace="")
            return attrs.evolve(obj, spec=attrs.evolve(obj.spec, azure_file=share))
        case DeviceClass():
            return attrs.evolve(obj, spec=attrs.evolve(obj.spec, config=()))
        case ResourceClaim():
            return attrs.evolve(obj, spec=_without_parameters(obj.spec), status=_allocated(obj.status))
        case ResourceClaimTemplate():
            inner = attrs.evolve(obj.spec, spec=_without_parameters(obj.spec.spec))
            return attrs.evolve(obj, spec=inner)
    return obj


def _labelled(template: PodTemplateSpec | None) -> PodTemplateSpec | None:
    """The template with labels, which the selector must match, as its only metadata."""
    if template is None:
        return None
    return PodTemplateSpec(ObjectMeta(labels=template.metadata.labels), template.spec)


def _without_parameters(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    return attrs.evolve(spec, devices=attrs.evolve(spec.devices, config=()))


def _allocated(status: ResourceClaimStatus) -> ResourceClaimStatus:
    """The claim's status, with its allocation but without device parameters."""
    if status.allocation is None:
        return status
    devices = attrs.evolve(status.allocation.devices, config=())
    return attrs.evolve(status, allocation=attrs.evolve(status.allocation, devices=devices))


def _write(output: IO[str], objects: Iterable[Named]) -> int:
    """Write a List, one object a line. Return the number of objects."""
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
    """The file to write, which replaces an older one of its name only when it is complete.

    Only its owner may read it, whatever the mode of an older file was: names and labels tell much about a cluster.
    """
    if str(file) == "-":
        yield sys.stdout
        return
    target = Path(os.path.realpath(file))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # of mode 600
    written = Path(name)
    try:
        with open(descriptor, "wb") as raw:  # noqa: PTH123  # a descriptor
            if target.name.lower().endswith(".gz"):
                with gzip.open(raw, "wt", encoding="utf-8") as packed:
                    yield packed
            else:
                with io.TextIOWrapper(raw, encoding="utf-8") as plain:
                    yield plain
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)


def _custom_kind(given: str) -> CustomKind:
    parts: Sequence[str] = given.split("/")
    if len(parts) != 3 or not all(parts):
        raise UsageError(
            f"--custom-kind {given}: expected GROUP/VERSION/KIND, such as scheduling.x-k8s.io/v1alpha1/PodGroup"
        )
    return CustomKind("/".join(parts[:2]), parts[2])
