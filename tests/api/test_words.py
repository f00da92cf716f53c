"""Numbers of things, plurals and articles in texts for people."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kschedfw
from kschedfw.api.words import counted, plural, with_article

ROOT = Path(kschedfw.__file__).parent


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("pod", "pods"),
        ("more pod", "more pods"),
        ("class", "classes"),
        ("sandbox", "sandboxes"),
        ("patch", "patches"),
        ("policy", "policies"),
        ("replay", "replays"),
    ],
)
def test_plurals(noun: str, expected: str) -> None:
    assert plural(noun) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("topology.kubernetes.io/zone", "a topology.kubernetes.io/zone"),
        ("example.org/rack", "an example.org/rack"),
        ("InMemoryCluster", "an InMemoryCluster"),
        ("uplink", "an uplink"),
        ("user", "a user"),
        ("unit", "a unit"),
    ],
)
def test_articles(noun: str, expected: str) -> None:
    assert with_article(noun) == expected


@given(st.integers(0, 10**9), st.sampled_from(["pod", "class", "more node"]))
def test_only_one_thing_is_in_the_singular(number: int, noun: str) -> None:
    text = counted(number, noun)
    assert int(text.split()[0].replace(",", "")) == number
    assert text.endswith(f" {noun}") is (number == 1)


BY_HAND = re.compile(r"""else ["']e?s["']|["']e?s["'] if """)


def test_no_module_makes_plurals_by_hand() -> None:
    """What a module makes by itself is wrong for one thing, or for the next noun."""
    sources = [*ROOT.rglob("*.py"), *(ROOT.parent / "plugins").glob("*/src/**/*.py")]
    found = [path.name for path in sources if BY_HAND.search(path.read_text(encoding="utf-8"))]
    assert found == []
    assert len(sources) > 300
