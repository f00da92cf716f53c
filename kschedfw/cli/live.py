"""From a live cluster to what the commands take from files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import attrs
import typer
from kschedfw_kubernetes.cluster.reading import LiveCluster, kinds_of_plugins, read_cluster

from kschedfw.api.custom import CustomKind
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.output import progress_bar

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Read a live cluster instead of files: the one that this kubeconfig names. Nothing is written to it.",
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Read the live cluster of this context of the kubeconfig."),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With a live cluster: where POD is looked for, and what is read where the user may not list all "
        "namespaces. Default: the context's.",
    ),
]


@attrs.frozen
class Live:
    """Which live cluster is meant, if any."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether a cluster was named; a namespace alone names none.

        Raises:
            UsageError: there is a namespace, and no cluster.
        """
        wanted = self.kubeconfig is not None or self.context is not None
        if self.namespace is not None and not wanted:
            raise UsageError(
                f"--namespace {self.namespace}: goes with a live cluster; say which with --context or --kubeconfig"
            )
        return wanted

    def read(self, custom_kinds: Iterable[CustomKind] = (), *, show_progress: bool = True) -> LiveCluster:
        """Read the cluster, with custom kinds that plugins have classes for and these.

        Raises:
            KubernetesError: it can't be reached, or may not be read.
        """
        kinds = dict.fromkeys((*kinds_of_plugins(), *custom_kinds))
        with progress_bar("reading the cluster", enabled=show_progress) as progress:
            return read_cluster(
                self.kubeconfig, self.context, self.namespace, custom_kinds=kinds, progress=progress
            )


NO_LIVE_CLUSTER = Live()
