"""`kschedfw serve-extender`: plugins for a stock kube-scheduler."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kschedfw.api.limits import Limits
from kschedfw.api.manifests import FieldValidation
from kschedfw.cli.enabled import UsageError, enabled_plugin
from kschedfw.cli.exits import ExitCode, complain, tell
from kschedfw.cli.inputs import ReadingOptions, read_manifest_input
from kschedfw.cli.options import FieldValidationOption, LimitOption, SkipInvalidOption
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.profile import Profile
from kschedfw.framework.registry import Registry

if TYPE_CHECKING:
    import uvicorn

NEEDS_EXTRA = "serve-extender needs the extra serve: pip install 'kschedfw[serve]'"

SERVE_EXTENDER_HELP = """Offer plugins to a stock kube-scheduler, as a scheduler extender.

The server answers POST /filter, /prioritize and /preempt as k8s.io/kube-scheduler/extender/v1 says, and GET
/healthz. Configure it in kube-scheduler with filterVerb: filter, prioritizeVerb: prioritize and, with --cluster,
preemptVerb: preempt. The pods on the nodes, and nodes that kube-scheduler only names (nodeCacheCapable: true),
are looked up in what --cluster gives, which doesn't change while the server runs.

It serves until Ctrl-C or SIGTERM.

\b
Exit codes:
  0    ended by Ctrl-C
  1    the extra serve isn't installed
  2    bad usage or bad input, or the address is taken
  70   a bug in kschedfw
"""


def serve_extender(
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=WEIGHT]",
            help="A plugin to run, and the weight of its score. Repeatable; at least one is needed.",
        ),
    ] = None,
    cluster: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Manifests of nodes, pods and so on, or a directory. Repeatable."),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="0: any free one; it is printed.")
    ] = 8888,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve https with this certificate (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key (PEM).")] = None,
    parallelism: Annotated[
        int, typer.Option(min=1, metavar="N", help="Threads for plugins. Pays off where they block.")
    ] = 1,
    skip_invalid: SkipInvalidOption = False,
    field_validation: FieldValidationOption = FieldValidation.STRICT,
    limit: LimitOption = None,
) -> None:
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise typer.Exit(complain(NEEDS_EXTRA, ExitCode.NOTHING_TO_DO)) from None

    from kschedfw.extender_server import ExtenderApp  # other commands needn't wait for it

    registry = Registry()
    app = ExtenderApp(
        _profile(plugin or [], registry),
        registry=registry,
        cluster=_read_cluster(
            cluster, ReadingOptions(skip_invalid, field_validation, Limits.of(limit or []))
        ),
        parallelism=parallelism,
    )
    config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_keep_alive=75)
    _set_certificate(config, tls_cert, tls_key)
    with _listen(host, port) as listening:
        scheme = "https" if config.is_ssl else "http"
        shown_host = f"[{host}]" if ":" in host else host
        url = f"{scheme}://{shown_host}:{listening.getsockname()[1]}"

        class Server(uvicorn.Server):
            """Says where it is when Ctrl-C really ends it, and not while it still starts."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                if self.started:
                    print(f"kschedfw: extender at {url}; Ctrl-C ends it", file=sys.stderr, flush=True)

        try:
            Server(config).run(sockets=[listening])
        except KeyboardInterrupt:  # after it has shut down: this is how a server is meant to end
            return


def _set_certificate(config: uvicorn.Config, cert: Path | None, key: Path | None) -> None:
    if (cert is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key belong together")
    if cert is not None and key is not None:
        config.ssl_certfile, config.ssl_keyfile = str(cert), str(key)
    try:
        config.load()
    except OSError as error:
        raise UsageError(f"certificate {cert} with key {key} can't be used: {error}") from error


def _profile(plugins: list[str], registry: Registry) -> Profile:
    if not plugins:
        raise UsageError(f"give at least one --plugin; installed are: {', '.join(registry.names())}")
    return Profile(enabled_plugin("--plugin", text) for text in plugins)


def _read_cluster(files: list[Path] | None, options: ReadingOptions) -> InMemoryCluster | None:
    if not files:
        return None
    loaded = read_manifest_input(files, options)
    tell((*loaded.problems, *loaded.notes))
    return loaded.cluster


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # `strerror` repeats the address, where it isn't about finding it
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise UsageError(f"can't listen on {host}, port {port}: {why}") from error
