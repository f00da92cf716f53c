"""Reads the clusters that `--context` and `--kubeconfig` name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kschedfw.cli import Given, Progress, Source, SourceCluster, SourceOption


def read(given: Given, progress: Progress | None) -> SourceCluster:
    """Return the cluster that the options name, with the custom kinds of plugins.

    Raises:
        KubernetesError: the API server can't be reached, or the user may not read.
    """
    from kschedfw_kubernetes.cluster.reading import kinds_of_plugins, missing_lines, read_cluster

    context, namespace = (
        None if name not in given else str(given[name]) for name in ("context", "namespace")
    )
    found = read_cluster(
        given.get("kubeconfig"), context, namespace, custom_kinds=kinds_of_plugins(), progress=progress
    )
    missing = tuple(missing_lines(found.missing_rights))
    return SourceCluster(found.manifests, found.source, missing, namespace)


KUBERNETES: Final = Source(
    options=(
        SourceOption(
            "kubeconfig",
            "FILE",
            "Read a live cluster instead of files: the one that this kubeconfig names. Nothing is written to it.",
            Path,
        ),
        SourceOption("context", "NAME", "Read the live cluster of this context of the kubeconfig."),
        SourceOption(
            "namespace",
            "NAME",
            "The namespace of POD, and of the pods that are shown. Of a live cluster that the user may not list as "
            "a whole, only this namespace is read; default: the context's.",
            names_cluster=False,
        ),
    ),
    read=read,
)
