"""`kschedfw explore`: a page to look at a cluster and at decisions, and to try changes."""

from __future__ import annotations

import secrets
import sys
import webbrowser
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import click

from kschedfw.api import how_to_install
from kschedfw.cli import (
    ConfigurationChoice,
    ExitCode,
    FloatRange,
    InputOptions,
    IntRange,
    Live,
    candidates_of,
    cluster_argument,
    complain,
    configuration_options,
    input_options,
    no_progress_option,
    reading_bar,
    refusal_notes,
    reschedule_option,
    seed_option,
    tell,
)
from kschedfw.cli import reschedule as free_bound_pods
from kschedfw.config import WHAT_THERE_IS
from kschedfw_advisor.cli.what_if_input import reports_of

STDIN = Path("-")

EXPLORE_HELP = """Look at a cluster in a browser: a map of the nodes, why pods are where they are, and what if.

CLUSTER is as for simulate; a live cluster is read again every 10 seconds. Nothing is ever written to it. The page is
served on this machine only, at an address with a random token, until Ctrl-C.

On the page, weights, plugins, arguments, nodes and pods can be changed. What moves is shown before a change is kept;
the resulting configuration and manifests can be downloaded.

\b
Exit codes:
  0    ended by Ctrl-C or SIGTERM
  1    the extra explore isn't installed
  2    bad usage or bad input, or the address is taken
  70   a bug in kschedfw
  130  ended at once by a second Ctrl-C, or by one before it served
  143  ended at once by a second SIGTERM, or by one before it served
"""


@click.command("explore", help=EXPLORE_HELP)
@cluster_argument
@input_options
@configuration_options
@click.option(
    "--profile",
    multiple=True,
    metavar="WHAT",
    help=f"Another configuration for simulations side by side: {WHAT_THERE_IS}. Repeatable.",
)
@reschedule_option
@seed_option
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=IntRange(0, 65535), default=0, metavar="N", help="0 takes a free port.")
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="A name by which the page may be addressed; addresses and localhost are always allowed. Repeatable.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in this machine's browser.")
@click.option(
    "--every",
    type=FloatRange(0),
    default=10.0,
    metavar="SECONDS",
    help="How often to read a live cluster again, so that the page follows it. It is read once with 0, and "
    "with standard input on top of it.",
)
@no_progress_option
def explore(
    cluster: Sequence[Path],
    given: InputOptions,
    chosen: ConfigurationChoice,
    profile: Sequence[str],
    reschedule: Sequence[str],
    seed: int,
    host: str,
    port: int,
    allowed_host: Sequence[str],
    open_browser: bool,
    every: float,
    no_progress: bool,
) -> None:
    try:
        # Imported here, since other commands don't need it.
        from kschedfw_kubernetes.web import Server, configured, listen

        from kschedfw_advisor.explore.access import Access, Guarded
        from kschedfw_advisor.explore.app import ExploreApp
        from kschedfw_advisor.explore.follow import Reading
        from kschedfw_advisor.explore.simulations import Simulations
        from kschedfw_advisor.explore.workbench import Workbench
    except ModuleNotFoundError:
        needs = f"explore needs the extra explore: {how_to_install('kschedfw-advisor', 'explore')}"
        raise click.exceptions.Exit(complain(needs, ExitCode.NOTHING_TO_DO)) from None

    configuration = chosen.load()
    others = candidates_of(profile, at_least=0)
    live = given.live
    with reading_bar(enabled=not no_progress and not live.is_wanted) as bar:
        loaded = given.read(cluster, progress=bar, show_progress=not no_progress)
    loaded, _ = free_bound_pods(loaded, reschedule)
    tell((*loaded.problems, *loaded.notes, *refusal_notes(loaded.refused)))
    bench = Workbench(loaded.cluster, configuration)
    app = ExploreApp(
        bench, Simulations(bench, others, seed), _title(cluster, live), loaded.notes, reports_of(loaded)
    )
    # Standard input can be read only once.
    if live.is_wanted and every and STDIN not in (*cluster, *given.pods):

        def read_again() -> Reading:
            again = given.read(cluster, show_progress=False)
            return Reading(free_bound_pods(again, reschedule)[0].cluster, reports_of(again))

        app.follow(read_again, Reading(loaded.cluster, reports_of(loaded)), every)
    listening = listen(host, port)
    address, port = listening.getsockname()[:2]
    token = secrets.token_urlsafe(32)
    guarded = Guarded(app.asgi, Access.of(token, allowed_host, port))
    if not ip_address(address).is_loopback:
        print(
            f"kschedfw: warning: the page is reachable from other machines, at {address}, without encryption",
            file=sys.stderr,
        )
    # An IPv6 address needs brackets in a URL.
    shown_host = f"[{host}]" if ":" in host else host
    url = f"http://{shown_host}:{port}/?token={token}"

    def say_where() -> None:
        print(f"kschedfw: explore at {url}\nkschedfw: Ctrl-C ends it", file=sys.stderr, flush=True)
        if open_browser:
            webbrowser.open(url)

    with listening:
        Server(configured(guarded), say_where).run(sockets=[listening])


def _title(cluster: Sequence[Path], live: Live) -> str:
    """Return what the page is about, in a few words."""
    files = [path.name or str(path) for path in cluster]
    return ", ".join([*([live.title] if live.is_wanted else []), *files])
