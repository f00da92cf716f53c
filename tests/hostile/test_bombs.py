"""Small files that stand for very much: reading ends early, with one line that says why."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from kschedfw_lab.openb import OpenbError, read_openb_nodes

from kschedfw.api import Limits, read_manifests
from kschedfw.api.files import MOST_RATIO, UnreadableError, content_of, lines_of
from kschedfw.cli.app import run
from kschedfw.explain.file import ExplanationFileError, read_explanations

POD = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}'
)
EIGHT_MIB = 8 << 20


def packed(path: Path, unit: bytes, size: int = EIGHT_MIB) -> Path:
    path.write_bytes(gzip.compress(unit * (size // len(unit))))
    return path


@pytest.mark.parametrize("separator", ["\n", "\n---\n"])
def test_objects_of_one_name_are_no_longer_read_after_the_limit_of_problems(
    separator: str, tmp_path: Path
) -> None:
    file = tmp_path / "same.yaml"
    file.write_text(separator.join([POD] * 5000))
    loaded = read_manifests(file, limits=Limits(problems=100))
    first, second, *rest = map(str, loaded.problems)
    assert "isn't read on after more than 100 problems: the limit `problems` is 100; raise it with" in first
    assert "Duplicate value" in second
    assert len(rest) == 100
    assert len(loaded.pods) == 1


def test_problems_of_a_list_count_too(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    items = ",".join([POD] * 5000)
    file.write_text(f'{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}')
    assert len(read_manifests(file, limits=Limits(problems=100)).problems) < 5000


def test_command_tells_first_that_it_does_not_read_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "same.json"
    file.write_text("\n".join([POD] * 200))
    assert run(["simulate", str(file), "--no-progress", "--limit", "problems=60"]) == 2
    assert "isn't read on after more than 60 problems" in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize("unit", [b"\n", b" ", b"x", b"[],"])
def test_file_that_unpacks_to_more_than_200_times_its_size_is_refused(unit: bytes, tmp_path: Path) -> None:
    file = packed(tmp_path / "bomb.json.gz", unit)
    assert file.stat().st_size * MOST_RATIO < EIGHT_MIB
    loaded = read_manifests(file, limits=Limits(problems=1 << 20))
    why = f"unpacks to more than {MOST_RATIO} times its size; if that is right, unpack it first"
    assert [each for each in loaded.problems if why in str(each)]


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda path: list(lines_of(path, EIGHT_MIB)), UnreadableError),
        (lambda path: content_of(path, 2 * EIGHT_MIB), UnreadableError),
        (lambda path: list(read_explanations(path)), ExplanationFileError),
        (read_openb_nodes, OpenbError),
    ],
)
def test_every_reader_of_files_refuses_what_unpacks_to_much_more(
    read: Callable[[Path], Iterable[object]], error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error, match=r"times its size|more than \d+ bytes"):
        read(packed(tmp_path / "bomb.gz", b"x"))


def test_a_few_equal_objects_are_read_whatever_their_ratio(tmp_path: Path) -> None:
    file = packed(tmp_path / "small.json.gz", POD.encode() + b"\n", 1 << 20)
    assert not any("times its size" in str(each) for each in read_manifests(file).problems)


def test_line_is_read_up_to_its_longest_length_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"1234\n12345\n")
    assert list(lines_of(file, 6)) == [(1, b"1234\n"), (2, b"12345\n")]
    with pytest.raises(UnreadableError, match="line 2: has more than 5 bytes"):
        list(lines_of(file, 5))
    assert content_of(file, 11) == b"1234\n12345\n"
    with pytest.raises(UnreadableError, match="has more than 10 bytes"):
        content_of(file, 10)
