"""`kschedfw serve-extender`: serves plugins to a stock kube-scheduler."""

from __future__ import annotations

import gc
import os
import ssl
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kschedfw import Profile, Registry
from kschedfw.api import how_to_install, without_collections
from kschedfw.cli import (
    FILE,
    ExitCode,
    IntRange,
    ReadingOptions,
    UsageError,
    complain,
    enabled_plugin,
    given_args,
    read_manifest_input,
    reading_options,
    refusal_notes,
    selected_configuration,
    selected_profile,
    tell,
)
from kschedfw.cluster import Cluster
from kschedfw_kubernetes.cli.options import connection_options
from kschedfw_kubernetes.cluster import KubernetesCluster, NotSyncedError, connect

if TYPE_CHECKING:
    import socket

    import uvicorn

_LISTING_SECONDS = 60.0
"""Seconds that listing a live cluster may take before the server starts."""


SERVE_EXTENDER_HELP = """Serve plugins to a stock kube-scheduler, as a scheduler extender.

The plugins are those of --plugin, with arguments by --args, or those of a profile of --config.

The server answers POST /filter, /prioritize and /preempt as k8s.io/kube-scheduler/extender/v1 says, and GET
/healthz. Configure it in kube-scheduler with filterVerb: filter, prioritizeVerb: prioritize and, with a cluster,
preemptVerb: preempt. The pods on the nodes, and nodes of which kube-scheduler sends only the names (nodeCacheCapable:
true), are those of a live cluster (--context or --kubeconfig), which is followed, or those of --cluster, which don't
change while the server runs. Nothing is written to a live cluster.

It serves until Ctrl-C or SIGTERM. Then requests in progress have 5 seconds to finish, and the server ends within 8; a
second signal ends it at once.

\b
Exit codes:
  0    ended by Ctrl-C or SIGTERM
  1    the extra serve isn't installed
  2    bad usage or bad input, the address is taken, or the live cluster
       can't be read
  70   a bug in kschedfw
  130  ended at once by a second Ctrl-C, or by one before it served
  143  ended at once by a second SIGTERM, or by one before it served
"""


@click.command("serve-extender", help=SERVE_EXTENDER_HELP)
@click.option(
    "--plugin",
    multiple=True,
    metavar="NAME[=WEIGHT]",
    help="A plugin to run, and the weight of its score. Repeatable; one is needed, or a --config.",
)
@click.option(
    "--args",
    multiple=True,
    metavar="NAME=JSON",
    help="Arguments of a --plugin, as in a configuration's pluginConfig. Repeatable.",
)
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="Instead of --plugin: run the plugins of a profile of this configuration.",
)
@click.option("--scheduler-name", metavar="NAME", help="Which profile of --config, if there are several.")
@click.option(
    "--cluster",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Manifests of nodes, pods and so on, or a directory. Repeatable.",
)
@connection_options
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port",
    type=IntRange(0, 65535),
    default=8888,
    metavar="N",
    help="0 takes a free port and prints it.",
)
@click.option("--tls-cert", type=FILE, metavar="FILE", help="Serve https with this certificate (PEM).")
@click.option("--tls-key", type=FILE, metavar="FILE", help="Its key (PEM).")
@click.option(
    "--tls-client-ca",
    type=FILE,
    metavar="FILE",
    help="Answer only clients with a certificate signed by one of these authorities (PEM).",
)
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="A name by which clients may address the server; addresses and localhost are always allowed, "
    "* allows all. Repeatable.",
)
@click.option(
    "--max-body-mib",
    type=IntRange(1, 1024),
    default=64,
    metavar="N",
    help="The largest request body. All requests together may have twice as much.",
)
@click.option(
    "--parallelism",
    type=IntRange(1),
    default=1,
    metavar="N",
    help="Threads for plugins. Faster only if plugins block.",
)
@reading_options
def serve_extender(
    plugin: Sequence[str],
    args: Sequence[str],
    config: Path | None,
    scheduler_name: str | None,
    cluster: Sequence[Path],
    kubeconfig: Path | None,
    context: str | None,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    allowed_host: Sequence[str],
    max_body_mib: int,
    parallelism: int,
    reading: ReadingOptions,
) -> None:
    try:
        # Imported here, since other commands don't need it.
        from kschedfw_kubernetes.web.http_server import Server, configured, listen
    except ModuleNotFoundError:
        needs = f"serve-extender needs the extra serve: {how_to_install('kschedfw-kubernetes', 'serve')}"
        raise click.exceptions.Exit(complain(needs, ExitCode.NOTHING_TO_DO)) from None

    from kschedfw_kubernetes.extender_server import ExtenderApp, ServerLimits

    registry = Registry()
    profile = _profile(plugin, args, config, scheduler_name, registry)
    with _cluster(cluster, reading, kubeconfig, context) as known:
        app = ExtenderApp(
            profile,
            registry=registry,
            cluster=known,
            parallelism=parallelism,
            limits=ServerLimits(body_bytes=max_body_mib << 20),
            allowed_hosts=allowed_host,
        )
        settings = configured(app)
        _set_certificates(settings, tls_cert, tls_key, tls_client_ca)
        listening = listen(host, port)
        if tls_client_ca is None and not _is_here(listening):
            print(
                f"kschedfw: warning: everybody who reaches {host} is answered; --tls-client-ca asks for certificates",
                file=sys.stderr,
            )
        url = _url(host, listening, "https" if settings.is_ssl else "http")

        def say_where() -> None:
            # Print this only now: from here on, signals end the server gracefully.
            print(f"kschedfw: extender at {url}; Ctrl-C ends it", file=sys.stderr, flush=True)

        with listening:
            Server(settings, say_where, _end_at_once).run(sockets=[listening])


def _end_at_once() -> None:
    print("kschedfw: a plugin is still at work; ended all the same", file=sys.stderr, flush=True)
    os._exit(0)


def _is_here(listening: socket.socket) -> bool:
    return ip_address(listening.getsockname()[0]).is_loopback


def _url(host: str, listening: socket.socket, scheme: str) -> str:
    shown_host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown_host}:{listening.getsockname()[1]}"


def _set_certificates(
    settings: uvicorn.Config, cert: Path | None, key: Path | None, client_ca: Path | None
) -> None:
    if (cert is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key belong together")
    if client_ca is not None and cert is None:
        raise UsageError("--tls-client-ca goes with --tls-cert and --tls-key")
    if cert is not None and key is not None:
        settings.ssl_certfile, settings.ssl_keyfile = str(cert), str(key)
    if client_ca is not None:
        settings.ssl_ca_certs, settings.ssl_cert_reqs = str(client_ca), ssl.CERT_REQUIRED
    try:
        settings.load()
    except OSError as error:
        clients = "" if client_ca is None else f" and --tls-client-ca {client_ca}"
        raise UsageError(f"certificate {cert} with key {key}{clients} can't be used: {error}") from error


def _profile(
    plugins: Sequence[str],
    args: Sequence[str],
    config: Path | None,
    scheduler_name: str | None,
    registry: Registry,
) -> Profile:
    if config is not None:
        if plugins or args:
            raise UsageError(
                "--config has the plugins and their arguments; --plugin and --args are instead of it"
            )
        return selected_profile(selected_configuration(config), scheduler_name)
    if scheduler_name is not None:
        raise UsageError("--scheduler-name goes with --config")
    if not plugins:
        raise UsageError(
            f"give at least one --plugin, or a --config; installed are: {', '.join(registry.names())}"
        )
    enabled = [enabled_plugin("--plugin", text) for text in plugins]
    given = dict(given_args("--args", text) for text in args)
    if missing := given.keys() - {plugin.name for plugin in enabled}:
        name = min(missing)
        raise UsageError(f"--args {name}: there is no such --plugin; --plugin {name} adds it")
    return Profile(enabled, args=given)


@contextmanager
def _cluster(
    files: Sequence[Path], reading: ReadingOptions, kubeconfig: Path | None, context: str | None
) -> Iterator[Cluster | None]:
    """Yield the cluster that plugins see; None if none is named. A live cluster is followed until the end of the block.

    Raises:
        UsageError: both files and a live cluster are named.
        KubernetesError: the live cluster can't be read.
    """
    if kubeconfig is None and context is None:
        if files:
            loaded = read_manifest_input(files, reading)
            tell((*loaded.problems, *loaded.notes, *refusal_notes(loaded.refused)))
        yield loaded.cluster if files else None
        return
    if files:
        raise UsageError("--cluster has the nodes and pods; --context and --kubeconfig are instead of it")
    with (
        connect(kubeconfig, context, user_agent="kschedfw-extender") as client,
        KubernetesCluster(client) as live,
    ):
        with without_collections():
            synced = live.wait_for_sync(_LISTING_SECONDS)
        if not synced:
            missing = [status for status in live.sync_status().values() if not status.synced]
            why = "; ".join(f"{status.kind}: {status.last_error or 'no answer yet'}" for status in missing)
            raise NotSyncedError(f"the live cluster isn't listed after {_LISTING_SECONDS:g} s: {why}")
        # The listed objects stay in memory, so the garbage collector needn't traverse them during every answer.
        gc.freeze()
        yield live
