"""`kschedfw mcp`: a server of the Model Context Protocol that answers questions about a cluster."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kschedfw.api import how_to_install
from kschedfw.cli import FILE, ExitCode, FloatRange, IntRange, UsageError, cluster_argument, complain
from kschedfw_mcp.questions import Limits, Source

TOKEN: Final = "KSCHEDFW_MCP_TOKEN"
"""The environment variable that has the token of the HTTP server."""

MCP_HELP = f"""Answer agents' questions about a cluster, as a server of the Model Context Protocol (MCP).

CLUSTER are manifests or dumps, as for simulate; with --context or --kubeconfig it is a live cluster, which is read anew
for each question. Nothing is written to it, and no other files are read. The tools are why-pending, what-helps,
explain, fit, drain, scale, compare and what-if. Each runs a command of kschedfw, and names it.

The server speaks on standard input and output, which is what agents expect that start it themselves. With --http it
listens on 127.0.0.1, and answers those who send `Authorization: Bearer TOKEN`. The token is printed, unless
{TOKEN} has it.

\b
Exit codes:
  0    the client has gone, or Ctrl-C or SIGTERM with --http
  1    the MCP SDK isn't installed
  2    bad usage, or the address is taken
  70   a bug in kschedfw
  130  interrupted
"""


@click.command("mcp", help=MCP_HELP)
@cluster_argument
@click.option("--context", metavar="NAME", help="Read the live cluster of this context of the kubeconfig.")
@click.option(
    "--kubeconfig", type=FILE, metavar="FILE", help="Read a live cluster: the one that this kubeconfig names."
)
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="A KubeSchedulerConfiguration or a Policy; compare has its own.",
)
@click.option(
    "--skip-invalid", is_flag=True, help="Leave invalid objects out instead of ending with an error."
)
@click.option(
    "--http",
    type=IntRange(0, 65535),
    metavar="PORT",
    help="Serve streamable HTTP on 127.0.0.1; 0 takes a free port.",
)
@click.option(
    "--seconds",
    type=FloatRange(1, 3600),
    default=60.0,
    metavar="N",
    help="How long an answer may take.",
)
@click.option(
    "--most-bytes",
    type=IntRange(2000, 10_000_000),
    default=30_000,
    metavar="N",
    help="The size of an answer; longer lists are shortened.",
)
def mcp(
    cluster: Sequence[Path],
    context: str | None,
    kubeconfig: Path | None,
    config: Path | None,
    skip_invalid: bool,
    http: int | None,
    seconds: float,
    most_bytes: int,
) -> None:
    source = source_of(cluster, context, kubeconfig, config, skip_invalid=skip_invalid)
    try:
        # Imported here, since it takes a second, and may not be there.
        from kschedfw_mcp.serving import serve_http, serve_stdio
        from kschedfw_mcp.tools import make_server
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        needs = f"mcp needs {missing}, which isn't installed: {how_to_install('kschedfw-mcp')}"
        raise click.exceptions.Exit(complain(needs, ExitCode.NOTHING_TO_DO)) from None
    server = make_server(source, Limits(seconds, most_bytes))
    if http is None:
        serve_stdio(server)
    else:
        given = os.environ.get(TOKEN, "")
        token = given or secrets.token_urlsafe(32)

        def say_where(url: str) -> None:
            secret = f"${TOKEN}" if given else token
            print(f"kschedfw: mcp at {url}", file=sys.stderr)
            print(f"kschedfw: Authorization: Bearer {secret}", file=sys.stderr, flush=True)

        serve_http(server, http, token, say_where)


def source_of(
    files: Sequence[Path],
    context: str | None,
    kubeconfig: Path | None,
    config: Path | None,
    *,
    skip_invalid: bool,
) -> Source:
    """Return what the questions are about.

    Raises:
        UsageError: there is nothing, or a file doesn't exist; agents would be told at each question.
    """
    if not (files or context or kubeconfig):
        raise UsageError("a cluster is needed: CLUSTER..., --context NAME or --kubeconfig FILE")
    for path in (*files, *(path for path in (kubeconfig, config) if path is not None)):
        if str(path) == "-":
            raise UsageError("-: standard input is where the agent speaks; name a file")
        if not path.exists():
            raise UsageError(f"{path}: No such file or directory")
    live = [
        *(("--kubeconfig", str(kubeconfig)) if kubeconfig else ()),
        *(("--context", context) if context else ()),
    ]
    chosen = ("--config", str(config)) if config else ()
    return Source(tuple(map(str, files)), tuple(live), tuple(chosen), ("--skip-invalid",) * skip_invalid)
