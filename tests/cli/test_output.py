"""The report is readable at any width, and in a pipe."""

from __future__ import annotations

import io
import sys

import attrs
import pytest
from rich.cells import cell_len
from rich.padding import Padding

from kschedfw.cli.exits import print_json_line
from kschedfw.cli.output import _amount, print_report, progress_bar
from kschedfw.cli.tables import PIPE_WIDTH, plain_table, print_parts, stdout_console
from kschedfw.simulator import Peak, Reason, Replay, Report, Spread, Utilisation

REASON = (
    "node(s) had untolerated taint(s) that nobody who wrote these pods has ever heard of, and more than one"
)

REPORT = Report(
    profile="default-scheduler",
    seed=7,
    nodes=1213,
    pods=8152,
    placed=7900,
    preempted=0,
    deleted=0,
    unschedulable=252,
    gated=0,
    failed=0,
    left=0,
    bound_before=3,
    other_scheduler=0,
    terminal=0,
    terminating=0,
    tried=8152,
    attempts=9001,
    preemptions=0,
    victims=0,
    interrupted=False,
    elapsed=12.34,
    decisions=(),
    reasons=(Reason(REASON, 252, 300_000), Reason("Insufficient cpu", 12, 0)),
    utilisation=(
        Utilisation("cpu", 1213, 83_000_000, 107_018_000, Spread(0, 0.75, 0.99, 1, 0.1)),
        Utilisation("memory", 1213, 400 << 40, 800 << 40, Spread(0, 0.5, 0.9, 1, 0.1)),
        Utilisation("alibabacloud.com/gpu-milli", 1213, 0, 6_212_000, Spread()),
    ),
    pods_per_node=Spread(0, 6.5, 12, 16, 3.25),
    notes=("12 pods are bound to nodes that are not in the input",),
)


def printed(
    report: Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int | None
) -> str:
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(width))
    print_report(report)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal_or_cut_off(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(REPORT, capsys, monkeypatch, width)
    assert all(cell_len(line.rstrip()) <= width for line in text.splitlines())
    assert "…" not in text
    squeezed = "".join(text.split())
    for part in (
        "7,900",
        "252",
        "77.6%",
        "alibabacloud.com/gpu-milli",
        "nodesthatarenotintheinput",
    ):
        assert part in squeezed


def test_in_a_pipe_no_line_is_too_long_to_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(REPORT, capsys, monkeypatch, None).splitlines()
    assert max(map(cell_len, lines)) <= PIPE_WIDTH == 100
    assert REASON in " ".join(" ".join(lines).split())
    assert not any("\x1b" in line for line in lines)
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.parametrize(
    ("columns", "width"), [("0", PIPE_WIDTH), ("-5", PIPE_WIDTH), ("wide", PIPE_WIDTH), ("1", 40)]
)
def test_a_width_that_shows_nothing_is_not_taken(
    columns: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_report(REPORT)
    assert max(map(cell_len, capsys.readouterr().out.splitlines())) <= stdout_console().width == width


@pytest.mark.parametrize(("encoding", "written"), [("ascii", b"\\u00d7"), ("utf-8", "×".encode())])
def test_json_is_json_in_any_encoding(encoding: str, written: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(stream, encoding=encoding, errors="backslashreplace"))
    print_json_line({"times": "×"})
    assert stream.getvalue() == b'{"times": "%s"}\n' % written


def test_narrow_terminals_have_the_same_figures_in_two_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, narrow = (printed(REPORT, capsys, monkeypatch, width).splitlines() for width in (120, 60))
    (whole,) = [line.split() for line in wide if line.startswith("cpu ")]
    amounts, spreads = [line.split() for line in narrow if line.startswith("cpu ")]
    assert [*amounts, *spreads[1:]] == whole
    assert "107,018.0" in amounts
    assert ["resource", "requested", "of", "total"] in [line.split() for line in narrow]
    assert ["resource", "mean", "p95", "max"] in [line.split() for line in narrow]


def test_most_frequent_reason_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(REPORT, capsys, monkeypatch, None)
    assert text.index(REASON[:20]) < text.index("Insufficient cpu")


def test_only_what_there_was(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(REPORT, capsys, monkeypatch, 80)
    assert "bound before" in text
    assert "gated" not in text
    assert "another scheduler" not in text
    empty = attrs.evolve(
        REPORT,
        nodes=0,
        pods=0,
        placed=0,
        unschedulable=0,
        tried=0,
        attempts=0,
        utilisation=(),
        reasons=(),
        notes=(),
    )
    text = printed(empty, capsys, monkeypatch, 80)
    assert "Why" not in text
    assert "Pods per node" not in text
    assert "0 pods tried on 0 nodes; profile default-scheduler, seed 7" in text


def test_attempts_and_preemptions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "9,001 attempts, no preemption" in printed(REPORT, capsys, monkeypatch, 80)
    busy = attrs.evolve(REPORT, attempts=1, preemptions=1, victims=2, preempted=2)
    text = printed(busy, capsys, monkeypatch, 80)
    assert "1 attempt, 1 preemption with 2 victims" in text
    assert "preempted" in text


def test_a_replay_shows_times_and_peaks_instead_of_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(
        makespan=12_345.6,
        waiting=Spread(0, 1.25, 2.5, 7205.14, 0),
        departed=7900,
        peaks=(Peak("cpu", 53_509_000, 107_018_000),),
    )
    text = printed(attrs.evolve(REPORT, replay=replay), capsys, monkeypatch, 80)
    for part in ("7,205.1 s", "makespan: 12,345.6 s; 7,900 pods left again", "53,509.0", "50.0%"):
        assert part in text
    assert "Pods per node" not in text
    assert "77.6%" not in text


def test_an_interruption_is_said_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(attrs.evolve(REPORT, interrupted=True, left=10), capsys, monkeypatch, 80)
    assert text.startswith("Interrupted.")
    assert "not tried" in text


def test_brackets_in_names_are_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = attrs.evolve(REPORT, reasons=(Reason("plugin(s) [A B] [/red] said no", 1, 1),))
    assert "plugin(s) [A B] [/red] said no" in printed(odd, capsys, monkeypatch, 80)


def test_cells_and_lines_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    table = plain_table("by [rack]", "reason")
    table.add_row("no room in [/dev/sda] :warning:")
    print_parts(stdout_console(), ["[red]: 1 pod :x:", table])
    assert capsys.readouterr().out.splitlines() == [
        "[red]: 1 pod :x:",
        "by [rack]",
        "reason",
        "no room in [/dev/sda] :warning:",
    ]


def test_a_title_longer_than_its_table_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    table = plain_table("Closest nodes (asked for this explanation only)", "node")
    table.add_row("n1")
    print_parts(stdout_console(), [Padding(table, (0, 0, 0, 3))])
    assert capsys.readouterr().out == ("   Closest nodes (asked for this explanation only)\n   node\n   n1\n")


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 107_018_000, "107,018.0"),
        ("memory", 512, "512.0 B"),
        ("memory", 3 << 29, "1.5 GiB"),
        ("ephemeral-storage", 5 << 50, "5,120.0 TiB"),
        ("hugepages-2Mi", 4 << 20, "4.0 MiB"),
        ("nvidia.com/gpu", 6212, "6,212"),
    ],
)
def test_amounts_are_in_units_that_people_use(resource: str, amount: int, text: str) -> None:
    assert _amount(resource, amount) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestProgressBar:
    def test_is_drawn_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress_bar() as progress:
            assert progress is not None
            progress(5, 10)
        assert "5/10" in terminal.getvalue()

    def test_is_not_drawn_elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        with progress_bar() as progress:
            assert progress is None

    def test_can_be_switched_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", Terminal())
        with progress_bar(enabled=False) as progress:
            assert progress is None
