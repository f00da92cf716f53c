"""`kschedfw record`: writes the changes of a live cluster to a directory."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import attrs
import click
from kschedfw_kubernetes import (
    Anonymizer,
    KubernetesCluster,
    connect,
    connection_options,
    content_options,
)
from rich.console import Console

from kschedfw import Clock, CustomKind, SystemClock
from kschedfw.api import FieldErrors, QuantityError, parse_quantity, read_manifests
from kschedfw.api.reading import read_duration
from kschedfw.cli import (
    FILE,
    UsageError,
    Values,
    counted,
    json_lines_option,
    no_progress_option,
    print_json_line,
    tell,
)
from kschedfw_replay.cli.stop_signal import StopSignal, stop_signal
from kschedfw_replay.importing.alibaba import read_alibaba_2018
from kschedfw_replay.importing.audit import policy, read_audit_log
from kschedfw_replay.importing.google import read_google_2011, read_google_2019
from kschedfw_replay.importing.observations import Binding, Importer, Observation
from kschedfw_replay.importing.simkube import read_simkube
from kschedfw_replay.importing.simulator import read_simulator
from kschedfw_replay.recording.blocks import RecordingError
from kschedfw_replay.recording.recorder import RECORDED_KINDS, Fields, Recorder
from kschedfw_replay.recording.writer import RecordingWriter, SegmentLimits
from kschedfw_replay.records import State

RECORD_HELP = """Record what happens in a live cluster, until SIGTERM or Ctrl-C; or make a recording of a file.

DIRECTORY gets a state of the cluster and every change after it: nodes, pods, volumes, claims, quotas and so on, each
without what scheduling doesn't read, and with what the cluster's scheduler decided. Nothing is written to the cluster.
A recording of this cluster that the directory has already is continued; the time in between is a gap.

\b
Exit codes:
  0    ended by a signal, or after --for; or the file was read
  2    bad usage, the cluster or the file can't be read, or DIRECTORY can't
       be written
  70   a bug in kschedfw
  130  ended at once by a second Ctrl-C
  141  the reader of the output has gone
"""


class ImportedFormat(StrEnum):
    """The format of a file that a recording is made of."""

    AUDIT = "audit"
    SIMKUBE = "simkube"
    SIMULATOR = "simulator"
    GOOGLE_2011 = "google-2011"
    GOOGLE_2019 = "google-2019"
    ALIBABA_2018 = "alibaba-2018"


_READERS: Final[Mapping[ImportedFormat, Callable[[Path], Iterator[Observation | Binding]]]] = {
    ImportedFormat.AUDIT: read_audit_log,
    ImportedFormat.SIMKUBE: read_simkube,
    ImportedFormat.SIMULATOR: read_simulator,
    ImportedFormat.GOOGLE_2011: read_google_2011,
    ImportedFormat.GOOGLE_2019: read_google_2019,
    ImportedFormat.ALIBABA_2018: read_alibaba_2018,
}

_STEP_SECONDS: Final = 0.5
"""Seconds between two writes. If the process is killed, it loses the changes since the last one: less than a second."""
_LINE_SECONDS: Final = 10.0
"""Seconds between two status lines of --json."""
_LISTING_SECONDS: Final = 300.0
"""Seconds that the first lists may take."""
_SECRET_BYTES: Final = 32


def _print_policy(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        print(policy(), end="")
        context.exit()


def _duration(text: str) -> float:
    try:
        seconds = read_duration(text, float)
    except FieldErrors:
        seconds = 0.0
    if seconds > 0:
        return seconds
    raise click.BadParameter(f"{text!r} is no duration such as 15m or 168h")


def _size(text: str) -> int:
    with contextlib.suppress(QuantityError):
        if (size := parse_quantity(text).value()) > 0:
            return size
    raise click.BadParameter(f"{text!r} is no size such as 256Mi or 20Gi")


@click.command("record", help=RECORD_HELP)
@click.option("--out", type=FILE, required=True, metavar="DIRECTORY", help="Where the recording is written.")
@connection_options
@click.option(
    "--anonymize",
    is_flag=True,
    help="Replace names, labels, images and the like, each by the same everywhere: decisions stay the same. "
    "The secret that they are made with is kept in DIRECTORY.secret; don't hand that on.",
)
@content_options
@click.option(
    "--retain",
    type=_duration,
    metavar="DURATION",
    help="Delete segments that ended longer ago, such as 168h. Default: keep all.",
)
@click.option(
    "--retain-size",
    type=_size,
    metavar="SIZE",
    help="Delete the oldest segments beyond this size, such as 20Gi.",
)
@click.option(
    "--segment-time",
    type=_duration,
    metavar="DURATION",
    help="How much of the recording a segment has; default 1h.",
)
@click.option(
    "--segment-size", type=_size, metavar="SIZE", help="How large a segment's changes may be; default 256Mi."
)
@click.option(
    "--for", "end_after", type=_duration, metavar="DURATION", help="End after this time, such as 1h."
)
@click.option(
    "--from",
    "source",
    type=FILE,
    metavar="PATH",
    help="Make a recording of this file, or of a trace's directory, instead of a live cluster.",
)
@click.option(
    "--format",
    "source_format",
    type=Values(ImportedFormat),
    help="The format of what is read: an audit log of kube-apiserver, a trace of SimKube, a recording or "
    "snapshot of kube-scheduler-simulator, or a directory with the tables of Google's or Alibaba's trace. "
    "Files may be gzipped (.gz).",
)
@click.option(
    "--start",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="With --from: manifests of what is there from the beginning, such as nodes. Repeatable.",
)
@click.option(
    "--audit-policy",
    "_audit_policy",
    is_flag=True,
    callback=_print_policy,
    is_eager=True,
    help="Print the audit policy with which kube-apiserver logs what --format audit needs, and exit.",
)
@json_lines_option("every ten seconds of the recording")
@no_progress_option
def record(
    out: Path,
    kubeconfig: Path | None,
    context: str | None,
    anonymize: bool,
    custom_kinds: Sequence[CustomKind],
    annotations: frozenset[str],
    retain: float | None,
    retain_size: int | None,
    segment_time: float | None,
    segment_size: int | None,
    end_after: float | None,
    source: Path | None,
    source_format: ImportedFormat | None,
    start: Sequence[Path],
    _audit_policy: bool,
    as_json: bool,
    no_progress: bool,
) -> None:
    clock = SystemClock()
    fields = Fields(annotations, Anonymizer(_secret(out)) if anonymize else None)
    default = SegmentLimits()
    limits = SegmentLimits(
        segment_size or default.bytes, segment_time or default.seconds, retain, retain_size
    )
    if source is not None or source_format is not None:
        chosen = _chosen(
            source, source_format, {"--kubeconfig": kubeconfig, "--context": context, "--for": end_after}
        )
        with RecordingWriter(
            out, cluster=chosen.path.name, anonymized=anonymize, limits=limits, clock=clock
        ) as writer:
            _import(writer, fields, chosen, start)
        return
    if start:
        raise UsageError("--start is for --from; of a live cluster, all is recorded that there is")
    # No limit of requests: a recorder only lists and watches, and a late list would lengthen gaps.
    with connect(kubeconfig, context, qps=-1) as client:
        # The cluster's address would give away what pseudonyms hide.
        name = "" if anonymize else context or client.config.address
        with (
            RecordingWriter(out, cluster=name, anonymized=anonymize, limits=limits, clock=clock) as writer,
            KubernetesCluster(client, [*RECORDED_KINDS, *custom_kinds]) as cluster,
            stop_signal() as stop,
        ):
            recorder = Recorder(cluster, writer, clock, fields)
            with _status(enabled=not no_progress and not as_json) as show:
                show("reading the cluster")
                missing = recorder.begin(_LISTING_SECONDS)
                tell([f"warning: {kind} can't be listed: {why}" for kind, why in missing.items()])
                recording = _Recording(recorder, writer, clock, show, as_json=as_json)
                recording.go_on(stop, end_after)
    print(f"{out}: {recording.summary}", file=sys.stderr)


@attrs.frozen
class _Imported:
    """The file that a recording is made from."""

    path: Path
    format: ImportedFormat


def _chosen(path: Path | None, format: ImportedFormat | None, of_live: Mapping[str, object]) -> _Imported:
    if path is None or format is None:
        raise UsageError("a recording is made of a file by --from FILE together with --format")
    for option, value in of_live.items():
        if value is not None:
            raise UsageError(f"{option} is for a live cluster, not for --from")
    return _Imported(path, format)


def _import(writer: RecordingWriter, fields: Fields, chosen: _Imported, start: Sequence[Path]) -> None:
    importer = Importer(fields, read_manifests(*start).objects() if start else ())
    has_objects = False
    for record in importer.records(_READERS[chosen.format](chosen.path)):
        writer.write(record)
        has_objects = has_objects or not isinstance(record, State) or bool(record.manifests)
    tell([f"{chosen.path}: left out: {problem}" for problem in importer.problems])
    tell([f"{chosen.path}: {kind}: {count:,} left out" for kind, count in importer.left_out.items()])
    if not has_objects:
        raise RecordingError(f"{chosen.path}: tells of no object that scheduling reads")
    print(f"{writer.path}: {counted(writer.records, 'record')} of {chosen.path}", file=sys.stderr)


class _Recording:
    """A recording in progress, which shows its status."""

    def __init__(
        self,
        recorder: Recorder,
        writer: RecordingWriter,
        clock: Clock,
        show: Callable[[str], None],
        *,
        as_json: bool,
    ) -> None:
        self._recorder, self._writer, self._clock, self._show = recorder, writer, clock, show
        self._as_json = as_json
        self._begun = clock.monotonic()

    @property
    def summary(self) -> str:
        writer, recorder = self._writer, self._recorder
        seconds = self._clock.monotonic() - self._begun
        return (
            f"{counted(recorder.changes, 'change')} in {seconds:,.0f} s, {counted(recorder.gaps, 'gap')}, "
            f"{writer.written / (1 << 20):,.1f} MiB written"
        )

    def go_on(self, stop: StopSignal, end_after: float | None) -> None:
        """Record until a signal asks to stop, or so many seconds have passed."""
        next_line = self._begun + _LINE_SECONDS
        while True:
            left = _STEP_SECONDS
            if end_after is not None:
                left = min(left, self._begun + end_after - self._clock.monotonic())
            ended = stop.wait(left) or left <= 0
            self._recorder.step(ends=ended)
            self._show(self.summary)
            if self._as_json and (ended or self._clock.monotonic() >= next_line):
                # From the planned time, so that lines don't drift.
                next_line += _LINE_SECONDS
                self._print_line(ended=ended)
            if ended:
                return

    def _print_line(self, *, ended: bool) -> None:
        line = {
            "at": self._clock.now(),
            "changes": self._recorder.changes,
            "gaps": self._recorder.gaps,
            "bytesWritten": self._writer.written,
            "errors": dict(self._recorder.errors()),
            "ended": ended,
        }
        print_json_line(line)


@contextlib.contextmanager
def _status(*, enabled: bool) -> Iterator[Callable[[str], None]]:
    """Return a function that replaces the last line on stderr; without a terminal it does nothing."""
    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield lambda _text: None
        return
    with console.status("") as status:
        yield status.update


def _secret(out: Path) -> bytes:
    """Return the secret of pseudonyms from its file. A recording that is continued needs the same secret."""
    path = out.with_name(f"{out.name}.secret")
    try:
        # Created with its mode, so that nobody else can read it at any time. Two recorders can't both create it.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        with contextlib.suppress(ValueError):
            if len(secret := bytes.fromhex(path.read_text(encoding="ascii"))) == _SECRET_BYTES:
                return secret
        raise UsageError(
            f"{path}: isn't the secret of a recording; it has {2 * _SECRET_BYTES} hexadecimal digits"
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        secret = secrets.token_bytes(_SECRET_BYTES)
        file.write(secret.hex())
    return secret
