"""`kschedfw shadow`: a configuration beside the scheduler of a live cluster."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click
from kschedfw_kubernetes import (
    KubernetesCluster,
    NotSyncedError,
    connect,
    connection_options,
    scheduler_kinds,
)
from kschedfw_lab.compare import ConditionError
from rich.live import Live

from kschedfw import Clock, SchedulerConfiguration
from kschedfw.api import FieldErrors, how_to_install
from kschedfw.api.reading import read_duration
from kschedfw.cli import (
    FILE,
    ExitCode,
    IntRange,
    UsageError,
    complain,
    gates_option,
    json_lines_option,
    kube_version_option,
    print_json_line,
    print_parts,
    seed_option,
    selected_configuration,
    stdout_console,
    tell,
)
from kschedfw.scheduler import Setup
from kschedfw_replay.cli.stop_signal import StopSignal, stop_signal
from kschedfw_replay.shadow.decision import Comparison
from kschedfw_replay.shadow.output import line, summary
from kschedfw_replay.shadow.shadow import Shadow
from kschedfw_replay.shadow.tally import METRICS, Alarm, Tally

if TYPE_CHECKING:
    from kschedfw_replay.shadow.metrics import ShadowMetrics


_LISTING_SECONDS = 60.0
"""Seconds for the cluster to be listed."""
_POLL_SECONDS = 0.1
_REDRAWN_SECONDS = 1.0

SHADOW_HELP = f"""Decide every pod of a live cluster beside its own scheduler, and show how often the two agree.

Nothing is written to the cluster: the user needs no other rights than get, list and watch. Each time when the cluster's
scheduler has bound a pod, or refused one, the configuration decides on the same pod in the state before.

On a terminal there is a table; elsewhere a line for each decision that differs, and the table at the end. It ends by
Ctrl-C or SIGTERM, after --for or --decisions; a second signal ends it at once.

--fail-on takes a metric, and what it is compared with: 'agreement < 99%', 'failed', 'p99 > 50'. A percentage is that of
all decisions; without any, only conditions on `decisions` hold. As soon as one holds, a line on standard error says so;
the exit code is about the end.
The metrics are {", ".join(METRICS)}; p50, p90 and p99 are in milliseconds.

\b
Exit codes:
  0    ended
  1    the extra metrics isn't installed
  2    bad usage or a bad configuration, the address is taken, or the
       cluster can't be read
  3    a condition of --fail-on holds at the end
  70   a bug in kschedfw
  130  ended at once by a second Ctrl-C
  141  the reader of the output has gone
  143  ended at once by a second SIGTERM
"""


def _duration(text: str) -> float:
    try:
        return read_duration(text, float)
    except FieldErrors:
        raise click.BadParameter(f"{text!r} is no duration such as 90s or 1h30m") from None


@click.command("shadow", help=SHADOW_HELP)
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="The configuration to try: a KubeSchedulerConfiguration. Default: kube-scheduler's.",
)
@gates_option
@kube_version_option
@connection_options
@seed_option
@click.option("--for", "for_", type=_duration, metavar="DURATION", help="End after this time, such as 1h30m.")
@click.option("--decisions", type=IntRange(1), metavar="N", help="End after this many decisions.")
@click.option(
    "--fail-on", multiple=True, metavar="CONDITION", help="Exit with 3 if this holds at the end. Repeatable."
)
@json_lines_option("each decision, and one at the end, the summary")
@click.option("--bind-address", default="127.0.0.1", metavar="ADDRESS", help="Where metrics are served.")
@click.option(
    "--port",
    type=IntRange(0, 65535),
    metavar="N",
    help="Serve /metrics and /healthz there; 0 takes a free port.",
)
def shadow(
    config: Path | None,
    feature_gates: Sequence[str],
    kube_version: str | None,
    kubeconfig: Path | None,
    context: str | None,
    seed: int,
    for_: float | None,
    decisions: int | None,
    fail_on: Sequence[str],
    as_json: bool,
    bind_address: str,
    port: int | None,
) -> None:
    alarms = _alarms(fail_on)
    configuration = selected_configuration(config, None, feature_gates, kube_version)
    tally, view = Tally(), _View.of(as_json=as_json)
    with (
        _metrics(bind_address, port) as metrics,
        stop_signal() as stop,
        connect(kubeconfig, context, user_agent="kschedfw-shadow", qps=-1) as client,
    ):
        # A shadow never writes. With the fence closed, no write could reach the cluster.
        client.fence.close()
        with _following(KubernetesCluster(client, scheduler_kinds(configuration.gates)), stop) as live:
            run = _Run(tally, view, alarms, metrics, client.clock, stop)
            run.follow(live, configuration, seed, for_, decisions)
    view.end(tally)
    failed = [alarm for alarm in alarms if alarm.holds(tally)]
    for alarm in failed:
        complain(f"--fail-on {alarm.told(tally)}", ExitCode.CONDITION_HOLDS)
    if alarms and not tally.decisions:
        tell(["kschedfw: --fail-on: nothing was compared, as there was no decision"])
    if failed:
        raise click.exceptions.Exit(ExitCode.CONDITION_HOLDS)


@attrs.define
class _Run:
    """The loop that compares, counts and shows."""

    tally: Tally
    view: _View
    alarms: list[Alarm]
    metrics: ShadowMetrics | None
    clock: Clock
    stop: StopSignal
    alarmed: set[Alarm] = attrs.field(factory=set)

    def follow(
        self,
        live: KubernetesCluster,
        configuration: SchedulerConfiguration,
        seed: int,
        seconds: float | None,
        decisions: int | None,
    ) -> None:
        shadow = Shadow(live, Setup.of("shadow", configuration), clock=self.clock, seed=seed)
        end = math.inf if seconds is None else self.clock.monotonic() + seconds
        unsubscribe = live.watch(shadow.observe)
        try:
            with self.view.shown():
                while not self.stop.has_come and self.clock.monotonic() < end:
                    for comparison in shadow.decisions():
                        self._take(comparison)
                        if self.tally.decisions == decisions:
                            return
                        if self.stop.has_come:
                            break
                    self._tell(shadow.backlog)
                    # Polled: events settle with time, not when others come.
                    self.stop.wait(_POLL_SECONDS)
        finally:
            unsubscribe()
            shadow.close()

    def _take(self, comparison: Comparison) -> None:
        self.tally.add(comparison)
        self.view.add(comparison)
        if self.metrics is not None:
            self.metrics.add(comparison)

    def _tell(self, backlog: float) -> None:
        self.view.redraw(self.tally, backlog, self.clock.monotonic())
        if self.metrics is not None:
            self.metrics.tell_backlog(backlog)
        for alarm in self.alarms:
            # Before the first decision `decisions < 100` holds, of course.
            if self.tally.decisions and alarm.holds(self.tally) and alarm not in self.alarmed:
                self.alarmed.add(alarm)
                complain(f"alarm: {alarm.told(self.tally)}", ExitCode.CONDITION_HOLDS)


class _View:
    """Prints decisions and the summary: as JSON, as lines, or as a table that is drawn anew."""

    def __init__(self, add: Callable[[Comparison], None], live: Live | None, *, as_json: bool) -> None:
        self.add = add
        """Show one decision."""
        self._live, self._as_json = live, as_json
        self._redrawn = -math.inf

    @classmethod
    def of(cls, *, as_json: bool) -> _View:
        """The view for standard output as it is."""
        if as_json:
            return cls(lambda comparison: print_json_line(comparison.to_json()), None, as_json=True)
        if not sys.stdout.isatty():
            return cls(_print_line, None, as_json=False)
        # Without a thread of its own: the table is drawn where the tally changes.
        return cls(lambda _: None, Live(console=stdout_console(), auto_refresh=False), as_json=False)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the table for the time of the block, if there is one."""
        if self._live is None:
            yield
            return
        with self._live:
            yield
        self._live = None

    def redraw(self, tally: Tally, backlog: float, now: float) -> None:
        """Draw the table anew, at most once a second."""
        if self._live is not None and now >= self._redrawn + _REDRAWN_SECONDS:
            self._redrawn = now
            self._live.update(summary(tally, backlog), refresh=True)

    def end(self, tally: Tally) -> None:
        """Print the summary."""
        if self._as_json:
            print_json_line({"summary": tally.to_json()})
        else:
            print_parts(stdout_console(), [summary(tally)])


def _print_line(comparison: Comparison) -> None:
    if not comparison.agreement.agrees:
        print(line(comparison), flush=True)


def _alarms(texts: Sequence[str]) -> list[Alarm]:
    try:
        return [Alarm.parse(text) for text in texts]
    except ConditionError as error:
        raise UsageError(f"--fail-on: {error}") from None


@contextmanager
def _metrics(address: str, port: int | None) -> Iterator[ShadowMetrics | None]:
    """Serve metrics for the time of the block; None without a port."""
    if port is None:
        yield None
        return
    try:
        from kschedfw_replay.shadow.metrics import ShadowMetrics, serving
    except ImportError:
        needs = f"--port needs the extra metrics: {how_to_install('kschedfw-replay', 'metrics')}"
        raise click.exceptions.Exit(complain(needs, ExitCode.NOTHING_TO_DO)) from None
    metrics = ShadowMetrics()
    with serving(metrics, address, port) as bound:
        # An IPv6 address needs brackets in a URL.
        host = f"[{address}]" if ":" in address else address
        print(f"kschedfw: metrics at http://{host}:{bound}/metrics", file=sys.stderr, flush=True)
        yield metrics


@contextmanager
def _following(live: KubernetesCluster, stop: StopSignal) -> Iterator[KubernetesCluster]:
    """Follow the cluster for the time of the block, which begins when all objects are listed.

    Raises:
        NotSyncedError: listing them takes more than a minute.
    """
    with live:
        waited = 0.0
        while not (stop.has_come or live.wait_for_sync(_POLL_SECONDS)):
            waited += _POLL_SECONDS
            if waited >= _LISTING_SECONDS:
                missing = [status for status in live.sync_status().values() if not status.synced]
                why = "; ".join(f"{each.kind}: {each.last_error or 'no answer yet'}" for each in missing)
                raise NotSyncedError(f"the cluster isn't listed after {_LISTING_SECONDS:g} s: {why}")
        yield live
