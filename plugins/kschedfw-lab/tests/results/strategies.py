"""Results as they may come out of a sweep, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st
from kschedfw_lab import Results, RunResult
from kschedfw_lab.results.results import FIXED
from kschedfw_lab.results.values import LARGEST_COUNT, Number, Value

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        "1",
        "1.0",
        "true",
        "null",
        "NaN",
        '"',
        '"1"',
        "a,b",
        "a\nb",
        "a\rb",
        "[1]",
        "\x00",
        "\ufeff",
        "-0",
        '=HYPERLINK("http://x","y")',
        "@SUM(1)",
        "+1",
        "-a",
        "'=a",
        "''=a",
        "'a",
    ]
)
ints = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[Value] = st.none() | st.booleans() | ints | floats | texts
numbers: st.SearchStrategy[Number] = st.integers(-LARGEST_COUNT, LARGEST_COUNT) | floats
names = st.from_regex(r"[a-z][a-z_.\-/ ]{0,8}[a-z]", fullmatch=True)


_kinds: st.SearchStrategy[st.SearchStrategy[Value]] = st.sampled_from(
    [st.booleans(), ints, floats, texts, values]
)


@st.composite
def results(draw: st.DrawFn) -> Results:
    """Some runs of a few factors. The values of a factor are of one type, or mixed."""
    factors = draw(st.lists(names.filter(lambda name: name not in FIXED), max_size=3, unique=True))
    kinds = {factor: draw(_kinds) for factor in factors}
    keys = draw(st.lists(st.from_regex(r"[0-9a-f]{1,16}", fullmatch=True), max_size=5, unique=True))
    runs = []
    for key in keys:
        cells = {factor: draw(kind) for factor, kind in kinds.items()}
        metrics = draw(st.dictionaries(names, numbers, max_size=4))
        runs.append(RunResult(key, cells, metrics, "" if metrics else "it failed"))
    return Results.of(factors, runs)
