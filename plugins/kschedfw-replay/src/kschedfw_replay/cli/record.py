"""`kschedfw record`: what happens in a live cluster, in a directory."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Annotated, Final

import typer
from kschedfw_kubernetes import (
    SCHEDULING_ANNOTATIONS,
    KubernetesCluster,
    connect,
    parse_custom_kind,
)
from rich.console import Console

from kschedfw import Clock, SystemClock
from kschedfw.api import Anonymizer, FieldErrors, QuantityError, parse_quantity
from kschedfw.api.reading import read_duration
from kschedfw.cli import NoProgressOption, UsageError, counted, tell
from kschedfw_replay.recording.recorder import RECORDED_KINDS, Fields, Recorder
from kschedfw_replay.recording.writer import RecordingWriter, SegmentLimits

RECORD_HELP = """Record what happens in a live cluster, until SIGTERM or Ctrl-C.

DIRECTORY gets a state of the cluster and every change after it: nodes, pods, volumes, claims, quotas and so on, each
without what scheduling doesn't read, and with what the cluster's scheduler decided. Nothing is written to the cluster.
A directory that has a recording of this cluster already is gone on with; the time in between is a gap.

\b
Exit codes:
  0    ended by a signal, or after --for
  2    bad usage, the cluster can't be read, or DIRECTORY can't be written
  70   a bug in kschedfw
  130  ended at once by a second Ctrl-C
"""

_STEP_SECONDS: Final = 0.5
"""Between writes. A kill loses what came in after the last one: less than a second, whatever else the machine does."""
_LINE_SECONDS: Final = 10.0
"""Between status lines of --json."""
_LISTING_SECONDS: Final = 300.0
"""How long the first lists may take."""
_SECRET_BYTES: Final = 32


def _duration(text: str) -> float:
    try:
        seconds = read_duration(text, float)
    except FieldErrors:
        seconds = 0.0
    if seconds > 0:
        return seconds
    raise typer.BadParameter(f"{text!r} is no duration such as 15m or 168h")


def _size(text: str) -> int:
    with contextlib.suppress(QuantityError):
        if (size := parse_quantity(text).value()) > 0:
            return size
    raise typer.BadParameter(f"{text!r} is no size such as 256Mi or 20Gi")


record_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@record_app.command(help=RECORD_HELP)
def record(
    out: Annotated[Path, typer.Option(metavar="DIRECTORY", help="Where the recording is written.")],
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record the cluster that this kubeconfig names.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Record the cluster of this context of the kubeconfig.")
    ] = None,
    anonymize: Annotated[
        bool,
        typer.Option(
            "--anonymize",
            help="Replace names, labels, images and the like, each by the same everywhere: decisions stay the same. "
            "The secret that they are made with is kept in DIRECTORY.secret; don't hand that on.",
        ),
    ] = False,
    custom_kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP/VERSION/KIND",
            help="Objects of a custom kind, too, such as scheduling.x-k8s.io/v1alpha1/PodGroup. Repeatable.",
        ),
    ] = None,
    annotation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY", help="Keep this annotation, too, since a plugin of yours reads it. Repeatable."
        ),
    ] = None,
    retain: Annotated[
        float | None,
        typer.Option(
            parser=_duration,
            metavar="DURATION",
            help="Delete segments that ended longer ago, such as 168h. Default: keep all.",
        ),
    ] = None,
    retain_size: Annotated[
        int | None,
        typer.Option(
            parser=_size, metavar="SIZE", help="Delete the oldest segments beyond this size, such as 20Gi."
        ),
    ] = None,
    segment_time: Annotated[
        float | None,
        typer.Option(
            parser=_duration, metavar="DURATION", help="How much of the recording a segment has; default 1h."
        ),
    ] = None,
    segment_size: Annotated[
        int | None,
        typer.Option(
            parser=_size, metavar="SIZE", help="How large a segment's changes may be; default 256Mi."
        ),
    ] = None,
    end_after: Annotated[
        float | None,
        typer.Option("--for", parser=_duration, metavar="DURATION", help="End after this time, such as 1h."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON about the recording every ten seconds.")
    ] = False,
    no_progress: NoProgressOption = False,
) -> None:
    clock = SystemClock()
    kinds = [parse_custom_kind(given, "--custom-kind") for given in custom_kind or ()]
    fields = Fields(
        SCHEDULING_ANNOTATIONS.union(annotation or ()), Anonymizer(_secret(out)) if anonymize else None
    )
    default = SegmentLimits()
    limits = SegmentLimits(
        segment_size or default.bytes, segment_time or default.seconds, retain, retain_size
    )
    with connect(kubeconfig, context, qps=-1) as client:
        name = "" if anonymize else context or client.config.address
        with (
            RecordingWriter(out, cluster=name, anonymized=anonymize, limits=limits, clock=clock) as writer,
            KubernetesCluster(client, [*RECORDED_KINDS, *kinds]) as cluster,
            _ending() as ending,
        ):
            recorder = Recorder(cluster, writer, clock, fields)
            with _status(enabled=not no_progress and not as_json) as show:
                show("reading the cluster")
                missing = recorder.begin(_LISTING_SECONDS)
                tell([f"warning: {kind} can't be listed: {why}" for kind, why in missing.items()])
                recording = _Recording(recorder, writer, clock, show, as_json=as_json)
                recording.go_on(ending, end_after)
    print(f"{out}: {recording.summary}", file=sys.stderr)


class _Recording:
    """A recording that goes on until it is ended, and tells how far it is."""

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
        self._told: Mapping[str, str] = {}

    @property
    def summary(self) -> str:
        writer, recorder = self._writer, self._recorder
        seconds = self._clock.monotonic() - self._begun
        return (
            f"{counted(recorder.changes, 'change')} in {seconds:,.0f} s, {counted(recorder.gaps, 'gap')}, "
            f"{writer.written / (1 << 20):,.1f} MiB written"
        )

    def go_on(self, ending: SimpleQueue[None], end_after: float | None) -> None:
        """Record until there is something in `ending`, or so many seconds have passed."""
        next_line = self._begun + _LINE_SECONDS
        while True:
            left = _STEP_SECONDS
            if end_after is not None:
                left = min(left, self._begun + end_after - self._clock.monotonic())
            ended = left <= 0
            with contextlib.suppress(Empty):
                ending.get(timeout=max(left, 0.001))
                ended = True
            self._recorder.step(ends=ended)
            self._tell_errors()
            self._show(self.summary)
            if self._as_json and (ended or self._clock.monotonic() >= next_line):
                next_line += _LINE_SECONDS
                self._print_line(ended=ended)
            if ended:
                return

    def _tell_errors(self) -> None:
        errors = self._recorder.errors()
        tell([f"{kind}: {why}" for kind, why in errors.items() if self._told.get(kind) != why])
        self._told = errors

    def _print_line(self, *, ended: bool) -> None:
        line = {
            "at": self._clock.now(),
            "changes": self._recorder.changes,
            "gaps": self._recorder.gaps,
            "bytesWritten": self._writer.written,
            "errors": dict(self._told),
            "ended": ended,
        }
        print(json.dumps(line, ensure_ascii=False), flush=True)


@contextlib.contextmanager
def _ending() -> Iterator[SimpleQueue[None]]:
    """A queue that SIGTERM and SIGINT put something into; a second signal has its usual effect."""
    ending = SimpleQueue[None]()  # the one queue whose put may interrupt itself, as signals do

    def end(_number: int, _frame: FrameType | None) -> None:
        restore()
        ending.put(None)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        yield ending
    finally:
        restore()


@contextlib.contextmanager
def _status(*, enabled: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows a line on stderr in place of the last one; it does nothing where that is no terminal."""
    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield lambda _text: None
        return
    with console.status("") as status:
        yield status.update


def _secret(out: Path) -> bytes:
    """The secret of pseudonyms, which a recording that is gone on with needs again; made where there is none."""
    path = out.with_name(f"{out.name}.secret")
    try:
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
