"""`kschedfw replay`: a recording under other configurations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import click
import yaml
from kschedfw_lab import keep_option, kept
from kschedfw_lab.compare import Condition, ConditionError, failures_of
from kschedfw_lab.sweep.errors import SweepError
from kschedfw_lab.sweep.prices import Prices, read_prices
from rich.console import Console

from kschedfw.api.reading import UnreadableError, content_of
from kschedfw.cli import (
    FILE,
    ComparedConfigurations,
    ExitCode,
    IntRange,
    UsageError,
    complain,
    json_option,
    kube_versions_option,
    no_progress_option,
    print_json,
    seed_option,
    tell,
)
from kschedfw.config import DEFAULT, WHAT_THERE_IS
from kschedfw_replay.cli.replay_output import print_replays
from kschedfw_replay.recording.blocks import RecordingError
from kschedfw_replay.recording.reader import open_recording
from kschedfw_replay.replaying.comparing import ReplayComparison, replay_recording
from kschedfw_replay.replaying.conditions import ReplayVocabulary, metrics_by_policy
from kschedfw_replay.replaying.looking_back import EXPLAINED
from kschedfw_replay.replaying.room import annotated_price

REPLAY_HELP = """Replay a recording under one or more configurations, beside what really happened.

RECORDING is a directory that record wrote. Pods arrive as recorded, in virtual time, and go where the configuration
puts them; each stays there for as long as it stayed on its node in reality. Nodes and other objects change as recorded.
With --kube-version, the configurations are versions of Kubernetes, and pods that move between them have a reason: a
feature gate or a rule.

\b
Exit codes:
  0    done
  2    bad usage, or nothing of the recording can be read
  3    a condition of --fail-on holds
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""

_LARGEST_PRICES: Final = 1 << 20

FACTORS: Final = ("policy", "seed")
"""The factors of a replay's results."""

_UNFINISHED: Final = "it is still being written, or the recorder or the import was ended by an error"


def _moment(text: str) -> float:
    with contextlib.suppress(ValueError, OverflowError):
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return at.timestamp()
    raise click.BadParameter(f"{text!r} is no time with a time zone, such as 2026-01-31T12:00:00Z")


@click.command("replay", help=REPLAY_HELP)
@click.argument("recording", type=FILE, metavar="RECORDING", help="The directory of a recording.")
@click.option(
    "--config",
    multiple=True,
    metavar="WHAT",
    help=f"What to replay it under: {WHAT_THERE_IS}. Repeatable; by default default.",
)
@kube_versions_option
@click.option(
    "--fidelity",
    is_flag=True,
    help="Also compare each recorded decision with that of the first configuration on the recorded state.",
)
@click.option("--from", "since", type=_moment, metavar="TIME", help="Begin with the state at this time.")
@click.option("--to", "until", type=_moment, metavar="TIME", help="End at this time.")
@seed_option
@click.option(
    "--explain",
    type=IntRange(0),
    default=EXPLAINED,
    metavar="N",
    help="Explain so many of the pods that moved, under each configuration.",
)
@click.option(
    "--prices",
    type=FILE,
    metavar="FILE",
    help="What nodes cost an hour: priceLabel and prices, as the arguments of the plugin CostAware. By default "
    "the annotation kschedfw/price of each node.",
)
@click.option(
    "--fail-on",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 3 if this holds for any configuration: lost, 'moved > 5%', 'pending > baseline.pending', "
    "'wait.p95 > baseline.wait.p95 + 5' … The baseline is what really happened. Repeatable.",
)
@json_option
@keep_option
@no_progress_option
def replay(
    recording: Path,
    config: Sequence[str],
    kube_versions: Sequence[str],
    fidelity: bool,
    since: float | None,
    until: float | None,
    seed: int,
    explain: int,
    prices: Path | None,
    fail_on: Sequence[str],
    as_json: bool,
    results: Path | None,
    no_progress: bool,
) -> None:
    compared = ComparedConfigurations.of(config or [DEFAULT], kube_versions, option="--config", at_least=1)
    conditions = _conditions(fail_on)
    begin, end = -math.inf if since is None else since, math.inf if until is None else until
    if begin >= end:
        raise UsageError("--from: expected a time before --to")
    damages: list[RecordingError] = []
    records = open_recording(recording, on_damage=damages.append)
    with kept(results, FACTORS) as keeper, _status(enabled=not no_progress) as show:
        comparison = replay_recording(
            records,
            compared.setups,
            since=begin,
            until=end,
            seed=seed,
            explained=explain,
            fidelity=fidelity,
            price_of=annotated_price if prices is None else _read_prices(prices).of,
            progress=show,
            remake=compared.remake,
        )
        for policy, metrics in metrics_by_policy(comparison).items():
            keeper.add({"policy": policy, "seed": seed}, metrics)
    # Each pass over the recording comes to the same damage.
    for damage in damages[:1]:
        tell([f"note: {damage}; what comes before was replayed"])
    if records.unfinished and not damages:
        tell([f"note: {records.unfinished}; the recording is unfinished: {_UNFINISHED}"])
    failed = failures_of(comparison, [run.label for run in comparison.runs], conditions)
    if as_json:
        document = {
            **comparison.to_json(),
            "unfinished": bool(records.unfinished or damages),
            "failed": [each.to_json() for each in failed],
        }
        print_json(document)
    else:
        print_replays(comparison)
    for failure in failed:
        complain(f"--fail-on {failure.condition}: {failure.label}: {failure.told}", ExitCode.CONDITION_HOLDS)
    if failed:
        raise click.exceptions.Exit(ExitCode.CONDITION_HOLDS)


def _read_prices(path: Path) -> Prices:
    try:
        return read_prices(yaml.safe_load(content_of(path, _LARGEST_PRICES)))
    except UnreadableError as error:
        raise UsageError(f"--prices {path}: {error}") from None
    except OSError as error:
        raise UsageError(f"--prices {path}: can't be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise UsageError(f"--prices {path}: not YAML: {' '.join(str(error).split())}") from None
    except SweepError as error:
        raise UsageError(f"--prices {path}: {error}") from None


def _conditions(texts: Iterable[str]) -> list[Condition[ReplayComparison]]:
    try:
        return [Condition.parse(text, ReplayVocabulary()) for text in texts]
    except ConditionError as error:
        raise UsageError(f"--fail-on: {error}") from None


@contextlib.contextmanager
def _status(*, enabled: bool) -> Iterator[Callable[[str], None]]:
    """Return a function that shows on stderr what is replayed; without a terminal it does nothing."""
    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield lambda _label: None
        return
    with console.status("") as status:
        yield lambda label: status.update(f"replaying: {label}")
