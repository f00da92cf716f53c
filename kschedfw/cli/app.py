"""The command line: arguments in, exit code out."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from kschedfw.api.errors import KschedfwError
from kschedfw.api.limits import Limits
from kschedfw.api.manifests import FieldValidation
from kschedfw.cli.bench import BENCH_HELP, bench
from kschedfw.cli.chosen import chosen_configuration
from kschedfw.cli.compare import COMPARE_HELP, compare
from kschedfw.cli.config import config_app
from kschedfw.cli.dump import DUMP_HELP, dump
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import ExitCode, complain, failure_summary, tell, tell_failures
from kschedfw.cli.explain import EXPLAIN_HELP, explain
from kschedfw.cli.inputs import InputFormat, InvalidInputError, ReadingOptions, read_input
from kschedfw.cli.live import ContextOption, KubeconfigOption, Live, NamespaceOption
from kschedfw.cli.missing_output import lack_of_work
from kschedfw.cli.options import (
    AttemptTimeOption,
    ClusterArgument,
    ConfigOption,
    FieldValidationOption,
    FormatOption,
    GatesOption,
    LimitOption,
    NoProgressOption,
    ParallelismOption,
    PodsOption,
    ProviderOption,
    SelectHost,
    SelectHostOption,
    SkipInvalidOption,
    StartTimeOption,
)
from kschedfw.cli.output import print_report, progress_bar, reading_bar
from kschedfw.cli.plugins import plugins_app
from kschedfw.cli.reschedule import RescheduleOption
from kschedfw.cli.reschedule import reschedule as free_bound_pods
from kschedfw.cli.run import RUN_HELP
from kschedfw.cli.run import run as run_scheduler
from kschedfw.cli.serve_extender import SERVE_EXTENDER_HELP, serve_extender
from kschedfw.config import ConfigurationError, SchedulerConfiguration
from kschedfw.explain import Explaining, ExplanationWriter
from kschedfw.scheduler.from_configuration import profiles_of
from kschedfw.scheduler.http_extender import make_extenders
from kschedfw.simulator import Arrivals, Failures, Simulation

HELP = """kube-scheduler v1.36 in Python: simulate it, ask it why, run it."""

SIMULATE_HELP = """Schedule the pending pods of a cluster in virtual time, and show how it went.

CLUSTER are manifests: files (YAML or JSON, plain or gzipped), directories of them, or - for the
standard input. Pending pods in them are scheduled, by priority and then in the order in which they were read. They may
preempt others, bound ones too, and are tried again when that makes sense.

All pods are there from the start and stay, or with --arrivals, --arrival-rate or --mean-duration they come and go.

\b
Exit codes:
  0    done, whether or not all pods fit
  1    a plugin failed, and standard error says how; or nothing to simulate: no nodes,
       or no pods to schedule
  2    bad usage or bad input; nothing was done
  70   a bug in kschedfw
  130  interrupted; the report says what was done so far
"""


app = typer.Typer(
    help=HELP,
    add_completion=False,
    no_args_is_help=True,
    # Plain text: boxes don't survive narrow terminals, and tracebacks are for developers.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; no error of the input or of kschedfw escapes."""
    try:
        app(args=None if args is None else list(args), prog_name="kschedfw")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.DONE
    except InvalidInputError as error:
        tell(error.problems)
        return complain(str(error), ExitCode.BAD_INPUT)
    except ConfigurationError as error:
        tell(str(error).splitlines())
        return complain("the configuration is refused, so nothing was done", ExitCode.BAD_INPUT)
    except KschedfwError as error:
        return complain(str(error), ExitCode.BAD_INPUT)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return complain(f"{where}{error.strerror or error}", ExitCode.BAD_INPUT)
    except Exception as error:
        return complain(f"this is a bug in kschedfw: {type(error).__name__}: {error}", ExitCode.BUG)
    return ExitCode.DONE


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"kschedfw {version('kschedfw')}")
        raise typer.Exit


@app.callback()
def _command(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    # With a callback, `simulate` stays a subcommand although it is the only one.
    pass


@app.command(help=SIMULATE_HELP, short_help="Schedule the pending pods of a cluster.")
def simulate(
    cluster: ClusterArgument = None,
    pods: PodsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    format: FormatOption = InputFormat.MANIFESTS,
    config: ConfigOption = None,
    algorithm_provider: ProviderOption = None,
    feature_gates: GatesOption = None,
    select_host: SelectHostOption = SelectHost.RANDOM,
    reschedule: RescheduleOption = None,
    arrivals: Annotated[
        bool, typer.Option("--arrivals", help="Pods come and go by their own times, where they have some.")
    ] = False,
    arrival_rate: Annotated[
        float | None,
        typer.Option(metavar="N", help="Pods without a time of their own come at random, N per second."),
    ] = None,
    mean_duration: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Pods without a duration of their own stay so long, on average."
        ),
    ] = None,
    ignore_own_times: Annotated[
        bool,
        typer.Option(
            "--ignore-own-times",
            help="--arrival-rate and --mean-duration draw times for all pods, also for those with times of their own.",
        ),
    ] = False,
    start_time: StartTimeOption = None,
    attempt_time: AttemptTimeOption = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Decides between nodes of equal score, and draws times.")
    ] = 0,
    percentage: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100,
            metavar="X",
            help="Of the nodes, how many to find feasible before scoring; 0: as kube-scheduler does. "
            "Takes the place of the configuration's; a profile's own comes first.",
        ),
    ] = None,
    parallelism: ParallelismOption = 1,
    skip_invalid: SkipInvalidOption = False,
    field_validation: FieldValidationOption = FieldValidation.STRICT,
    limit: LimitOption = None,
    explanations: Annotated[
        Path | None,
        typer.Option(
            "--explain",
            metavar="FILE",
            help="Write down why, for every attempt (JSON lines; see `kschedfw explain --from`).",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, with every decision.")
    ] = False,
    no_progress: NoProgressOption = False,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast", help="End as soon as a plugin fails; the report says what was done so far."
        ),
    ] = False,
) -> None:
    options = ReadingOptions(skip_invalid, field_validation, Limits.of(limit or []))
    live = Live(kubeconfig, context, namespace)
    with reading_bar(enabled=not no_progress and not live.is_wanted) as reading:
        loaded = read_input(format, cluster or [], pods or [], options, live=live, progress=reading)
    tell(loaded.problems)
    configuration = chosen_configuration(config, algorithm_provider, feature_gates)
    loaded, _ = free_bound_pods(loaded, reschedule or ())
    with ExitStack() as stack:
        extenders = make_extenders(configuration.extenders)
        for extender in extenders:
            stack.callback(extender.close)
        explaining = None
        if explanations is not None:
            file = stack.enter_context(explanations.open("w", encoding="utf-8", buffering=1 << 20))
            explaining = Explaining(ExplanationWriter(file).write)
        simulation = Simulation(
            loaded.cluster,
            profiles=profiles_of(configuration),
            extenders=extenders,
            arrivals=_arrivals(arrivals, arrival_rate, mean_duration, ignore_own_times=ignore_own_times),
            start_time=start_time,
            attempt_time=attempt_time or 0.0,
            seed=seed,
            percentage_of_nodes_to_score=(
                configuration.percentage_of_nodes_to_score if percentage is None else percentage
            ),
            selector=select_host.selector(),
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            parallelism=parallelism,
            clock=time.perf_counter,
            notes=(*loaded.notes, *_absent(configuration)),
            explaining=explaining,
        )
        failures = stack.enter_context(Failures())
        with progress_bar(enabled=not no_progress) as progress:
            report = simulation.run(progress, until=lambda: fail_fast and failures.count > 0)
    tell_failures(failures)
    lacking = lack_of_work(report)
    if lacking:
        complain(f"nothing to simulate: {lacking}", ExitCode.NOTHING_TO_DO)
    if as_json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        print_report(report)
    ended_early = fail_fast and failures.count > 0
    if report.interrupted and not ended_early:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if failures.count:
        text = f"{failure_summary(failures)}{'; the simulation ended with it' * ended_early}"
        raise typer.Exit(complain(text, ExitCode.FAILED))
    if lacking:
        raise typer.Exit(ExitCode.NOTHING_TO_DO)


def _absent(configuration: SchedulerConfiguration) -> list[str]:
    """Notes on plugins that the configuration asks for by name and that aren't in this version."""
    return [
        f"profile {profile.scheduler_name}: not in this version, left out: {', '.join(names)}"
        for profile in configuration.profiles
        if (names := profile.absent_by_name)
    ]


def _arrivals(
    wanted: bool, rate: float | None, mean_duration: float | None, *, ignore_own_times: bool
) -> Arrivals | None:
    is_drawn = rate is not None or mean_duration is not None
    if ignore_own_times and not is_drawn:
        raise UsageError("--ignore-own-times goes with --arrival-rate, --mean-duration, or both")
    if not wanted and not is_drawn:
        return None
    return Arrivals(rate, mean_duration, own_times=not ignore_own_times)


app.command("compare", help=COMPARE_HELP, short_help="Compare configurations on the same cluster.")(compare)
app.command("explain", help=EXPLAIN_HELP, short_help="Explain why a pod goes to a node, or to none.")(explain)
app.add_typer(config_app, name="config")
app.command("dump", help=DUMP_HELP, short_help="Write the state of a live cluster to a file.")(dump)
app.command(
    "serve-extender", help=SERVE_EXTENDER_HELP, short_help="Offer plugins to a stock kube-scheduler."
)(serve_extender)
app.command("run", help=RUN_HELP, short_help="Schedule the pods of a cluster.")(run_scheduler)
app.command("bench", help=BENCH_HELP, short_help="Measure how fast a profile schedules on this machine.")(
    bench
)
app.add_typer(plugins_app, name="plugins", short_help="Show the installed plugins, or begin a new one.")
