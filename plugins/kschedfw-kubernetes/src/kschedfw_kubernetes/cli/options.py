"""Options that commands about a live cluster share, as decorators of commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from kschedfw import CustomKind
from kschedfw.cli import FILE, UsageError
from kschedfw_kubernetes.cluster.scheduling_fields import SCHEDULING_ANNOTATIONS

F = TypeVar("F", bound=Callable[..., object])


def connection_options(command: F) -> F:
    """Give a command `--kubeconfig` and `--context`, as its parameters of these names."""
    kubeconfig = click.option(
        "--kubeconfig", type=FILE, metavar="FILE", help="The live cluster that this kubeconfig names."
    )
    context = click.option(
        "--context",
        metavar="NAME",
        help="The live cluster of this context. Default: the kubeconfig's current one.",
    )
    return kubeconfig(context(command))


def content_options(command: F) -> F:
    """Give a command that writes a cluster's objects `--custom-kind` and `--annotation`.

    Its parameter `custom_kinds` has the kinds that are written, too; `annotations` has the keys of all annotations
    that are kept, those that scheduling reads included.
    """
    kinds = click.option(
        "--custom-kind",
        "custom_kinds",
        multiple=True,
        type=_custom_kind,
        metavar="GROUP/VERSION/KIND",
        help="Objects of a custom kind, too, such as scheduling.x-k8s.io/v1alpha1/PodGroup. Repeatable.",
    )
    annotations = click.option(
        "--annotation",
        "annotations",
        multiple=True,
        callback=lambda _context, _option, keys: SCHEDULING_ANNOTATIONS.union(keys),
        metavar="KEY",
        help="Keep this annotation, too, since a plugin of yours reads it. Repeatable.",
    )
    return kinds(annotations(command))


def _custom_kind(text: str) -> CustomKind:
    parts = text.split("/")
    if len(parts) != 3 or not all(parts):
        raise UsageError(
            f"--custom-kind {text}: expected GROUP/VERSION/KIND, such as scheduling.x-k8s.io/v1alpha1/PodGroup"
        )
    return CustomKind("/".join(parts[:2]), parts[2])
