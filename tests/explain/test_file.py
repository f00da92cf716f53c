"""What was written to a file is what is read back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.explain import Explanation, ExplanationFileError, ExplanationWriter, read_explanations
from kschedfw.explain.as_json import as_json
from kschedfw.explain.file import packed, unpacked
from kschedfw.testing.decisions import as_text
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters
from tests.explain.test_faithful import in_memory, simulated

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def written(explanations: list[Explanation]) -> str:
    file = io.StringIO()
    writer = ExplanationWriter(file)
    for each in explanations:
        writer.write(each)
    return file.getvalue()


@given(st.lists(INT64 | st.integers(0, 100), max_size=80))
def test_a_column_comes_back_whatever_its_numbers(numbers: list[int]) -> None:
    column = np.array(numbers, dtype=np.int64)
    assert unpacked(packed(column), len(column)).tolist() == numbers


@pytest.mark.parametrize(
    "column", [None, True, 1.5, 1 << 63, "i3:AAAA", [1, 2], ["1", "2", "3"], [1, 2, 1 << 63], {}]
)
def test_what_is_no_column_of_that_length_is_refused(column: object) -> None:
    with pytest.raises(ValueError, match="column"):
        unpacked(column, 3)


@settings(max_examples=examples(10))
@given(cluster=clusters(most_nodes=6, most_pending=4), beyond=st.booleans())
def test_explanations_come_back_as_they_were(
    cluster: DrawnCluster, beyond: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    _, found = simulated(in_memory(cluster), explained=True, beyond=beyond)
    path = tmp_path_factory.mktemp("explanations") / "file.jsonl"
    path.write_text(written(found), encoding="utf-8")
    again = list(read_explanations(path))
    assert [as_json(each) for each in again] == [as_json(each) for each in found]
    assert [as_text(each) for each in again] == [as_text(each) for each in found]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1: "),
        ('{"pod": "default/a"}', "line 1: .*expected a line with 'nodes' before the first decision"),
        ('{"nodes": ["a"]}\n{"pod": "default/a"}', "line 2: .*expected a field 'profile'"),
        ('{"nodes": ["a", 1]}', "line 1: .*expected a text, found 1"),
        ("3", "line 1: .*expected an object, found 3"),
        ("[]", r"line 1: .*expected an object, found \[\]"),
    ],
)
def test_a_line_that_is_no_explanation_is_named(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ExplanationFileError, match=problem):
        list(read_explanations(path))


def places(written: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the parts of a JSON document are."""
    yield at
    if isinstance(written, dict):
        for key, value in written.items():
            yield from places(value, (*at, key))
    if isinstance(written, list):
        for index, value in enumerate(written):
            yield from places(value, (*at, index))


def changed(written: Any, place: tuple[str | int, ...], value: object) -> object:
    """The document with another value there."""
    if not place:
        return value
    copy = written.copy()
    copy[place[0]] = changed(written[place[0]], place[1:], value)
    return copy


def test_whatever_a_line_says_it_is_an_explanation_or_an_error_that_names_the_line(tmp_path: Path) -> None:
    cluster = InMemoryCluster(
        [make_node(name).capacity(cpu="1", memory="1Gi", pods="9").build() for name in "ab"]
    )
    for number in range(4):
        cluster.add(make_pod(f"p{number}").requests(cpu="700m").priority(number * (number > 2)).build())
    _, found = simulated(cluster, explained=True, beyond=True)
    nodes, *lines = written(found).splitlines()
    path, random, refused = tmp_path / "file.jsonl", Random(0), 0
    for line in map(json.loads, lines):
        for place in places(line):
            wrong = random.choice([None, True, -1, 1, 1 << 70, 1.5, "x", [], [7], {}, {"a": 1}])
            path.write_text(f"{nodes}\n{json.dumps(changed(line, place, wrong))}\n", encoding="utf-8")
            problem, again = "", []
            try:
                again = list(read_explanations(path))
            except ExplanationFileError as error:
                problem, refused = str(error), refused + 1
            assert again or problem.startswith(f"{path}: line 2: ")
            for each in again:
                as_json(each)
                as_text(each)
    assert refused > 100
