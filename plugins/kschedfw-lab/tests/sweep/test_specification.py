"""Specifications in files: what is read, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kschedfw_lab import Drawn, Sweep, SweepError
from sweep.scenes import PATH, TINY, cells, cluster_file

SPECIFICATION = f"""\
# Which strategy needs fewer nodes?
factors:
  cluster: [cluster.json, {{workload: basic, name: made}}]
  strategy:
    path: {PATH}
    values: [LeastAllocated, MostAllocated]
  plugins.ImageLocality: [false, 1]
  profiles[0].percentageOfNodesToScore: {{from: 10, to: 100, points: 2}}
  nodes: 2
  pods: 2
  seed: {{from: 0, to: 2}}
constraints:
- not (cluster == "made" and strategy == "MostAllocated")
design: grid
series: 10
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "spec.yaml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(SweepError) as caught:
        Sweep.read(written(folder, text)).plan()
    message = str(caught.value)
    assert message.startswith(f"{folder}/spec.yaml: ")
    assert "\n" not in message
    return message.removeprefix(f"{folder}/spec.yaml: ")


def test_a_specification_crosses_its_factors(tmp_path: Path) -> None:
    cluster_file(tmp_path)
    plan = Sweep.read(written(tmp_path, SPECIFICATION)).plan()
    assert plan.factors == (
        "cluster",
        "strategy",
        "plugins.ImageLocality",
        "profiles[0].percentageOfNodesToScore",
        "nodes",
        "pods",
        "seed",
    )
    assert (len(plan.runs), plan.excluded) == (2 * 2 * 2 * 2 * 3 - 12, 12)
    first, *_, last = (tuple(run.values.values()) for run in plan.runs)
    assert first == ("cluster.json", "LeastAllocated", 0, 10, 2, 2, 0)
    assert last == ("made", "LeastAllocated", 1, 100, 2, 2, 2)


def test_paths_begin_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster_file(tmp_path)
    written(tmp_path, "factors: {cluster: cluster.json}")
    monkeypatch.chdir(tmp_path.parent)
    assert Sweep.read(tmp_path / "spec.yaml").plan().runs
    assert Sweep.read(f"{tmp_path.name}/spec.yaml").plan().runs


def test_the_same_in_python(tmp_path: Path) -> None:
    cluster_file(tmp_path)
    text = "factors: {cluster: cluster.json, seed: {from: 1, to: 3}}\ndesign: {method: random, samples: 2, seed: 5}"
    in_python = Sweep({"cluster": "cluster.json", "seed": range(1, 4)}, design=Drawn(2, 5), folder=tmp_path)
    assert Sweep.read(written(tmp_path, text)).plan() == in_python.plan()


def test_without_a_seed_it_is_0() -> None:
    assert cells(Sweep(TINY), "seed") == [(0,)]


TINY_FACTORS = "cluster: {workload: basic}, nodes: 2, pods: 2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected an object with factors, found nothing"),
        ("# nothing\n", "expected an object with factors, found nothing"),
        ("[]", "expected an object with factors, found []"),
        ("factors: {", "is not valid YAML: line 2"),
        (
            "factors: {cluster: x}\n---\nfactors: {}",
            "expected one document, the specification, found 2",
        ),
        ("factors: {nodes: 1, nodes: 2}", 'line 1: key "nodes" already set in map'),
        ("factor: {}", "factor: unknown field; did you mean factors?"),
        ("design: grid", "factors: expected an object with at least cluster, found null"),
        ("factors: {}", "factors.cluster: missing"),
        ("factors: {cluster: nosuch}", "factors.cluster: nosuch: no such file or directory"),
        (
            "factors: {cluster: [cluster.json, nosuch]}",
            "factors.cluster[1]: nosuch: no such file or directory",
        ),
        (
            "factors: {cluster: [cluster.json, ./cluster.json, cluster.json]}",
            "two values have the name 'cluster.json'",
        ),
        (f"factors: {{{TINY_FACTORS}, sede: [1]}}", "did you mean seed?"),
        (
            f"factors: {{{TINY_FACTORS}, metric: 1}}",
            "factors.metric: can't be the name of a factor; results have",
        ),
        (f"factors: {{{TINY_FACTORS}, seed: []}}", "factors.seed: the list is empty"),
        (
            f"factors: {{{TINY_FACTORS}, seed: {{from: 3, to: 1}}}}",
            "factors.seed: the range is empty: from 3 to 1",
        ),
        (f"factors: {{{TINY_FACTORS}, seed: [0, -1]}}", "factors.seed[1]: expected a whole number from 0"),
        (
            f"factors: {{{TINY_FACTORS}, arrivalRate: 0}}",
            "factors.arrivalRate: expected a number from 1e-09 to 1e+10, or null",
        ),
        (f"factors: {{{TINY_FACTORS}, arrivals: 1}}", "factors.arrivals: expected true or false, found 1"),
        (
            f"factors: {{{TINY_FACTORS}, attemptTime: -1}}",
            "factors.attemptTime: expected seconds from 0 to 3600",
        ),
        (
            f"factors: {{{TINY_FACTORS}, ignoreOwnTimes: true}}",
            "factors.ignoreOwnTimes: to ignore pods' own times",
        ),
        (
            f"factors: {{{TINY_FACTORS}, arrivals: false, arrivalRate: 1}}",
            "factors.arrivals: false doesn't go with arrivalRate",
        ),
        (
            f"factors: {{{TINY_FACTORS}, plugins.ImageLocality: [1, -2]}}",
            "factors.plugins.ImageLocality[1]: expected a weight up to 2147483647",
        ),
        (
            f"factors: {{{TINY_FACTORS}, plugins.ImageLocalty: 1}}",
            "configuration default with plugins.ImageLocalty=1: profiles[0].plugins.multiPoint.enabled[0]: Invalid",
        ),
        (
            f"factors: {{{TINY_FACTORS}, 'profiles[0].percentageOfNodesToScor': 5}}",
            'unknown field "profiles[0].percentageOfNodesToScor"; known are: percentageOfNodesToScore',
        ),
        (f"factors: {{{TINY_FACTORS}, 'profile[0].x': 5}}", "factors.profile[0].x: unknown factor"),
        (f"factors: {{{TINY_FACTORS}, 'profiles[0': 5}}", "factors.profiles[0: 'profiles[0' is no path"),
        (f"factors: {{{TINY_FACTORS}, mine: {{path: x}}}}", "factors.mine.values: missing"),
        (f"factors: {{{TINY_FACTORS}, mine: {{path: '[', values: 1}}}}", "factors.mine.path: '[' is no path"),
        (f"factors: {{{TINY_FACTORS}, mine: {{path: x, value: 1}}}}", "factors.mine.value: unknown field"),
        (f"factors: {{{TINY_FACTORS}, percentageOfNodesToScore: 200}}", "not in valid range [0-100]"),
        (f"factors: {{{TINY_FACTORS}}}\nconstraints: nodes > 1", "constraints: expected a list of texts"),
        (
            f"factors: {{{TINY_FACTORS}}}\nconstraints: [nods > 1]",
            "constraints[0]: 'nods > 1' is no constraint",
        ),
        (f"factors: {{{TINY_FACTORS}}}\nconstraints: [nodes > 9]", "constraints: they exclude every point"),
        (
            f"factors: {{{TINY_FACTORS}}}\ndesign: latin",
            "design.method: there is no design 'latin'; there are grid, paired, random",
        ),
        (
            f"factors: {{{TINY_FACTORS}}}\ndesign: {{method: random}}",
            "design.samples: expected a whole number from 1",
        ),
        (
            f"factors: {{{TINY_FACTORS}}}\ndesign: {{method: grid, samples: 3}}",
            "design.samples: unknown field of the design grid",
        ),
        (
            f"factors: {{{TINY_FACTORS}}}\nseries: 1",
            "series: expected a number of points from 2 to 10000, found 1",
        ),
        (f"factors: {{{TINY_FACTORS}}}\ncost: {{}}", "cost.prices: expected a list of value and hourlyPrice"),
        (
            f"factors: {{{TINY_FACTORS}}}\ncost: {{prices: [{{value: a, hourlyPrice: x}}]}}",
            "cost.prices[0].hourlyPrice: expected a decimal number from 0 to 1000000",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(text: str, why: str, tmp_path: Path) -> None:
    cluster_file(tmp_path)
    assert why in refusal(tmp_path, text)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    assert "expected a specification of at most 1,048,576 bytes, found more" in refusal(
        tmp_path, "#" * (1 << 21)
    )


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_bytes(b"factors: \xff")
    with pytest.raises(SweepError, match="is not UTF-8 text"):
        Sweep.read(tmp_path / "spec.yaml")


def test_too_many_factors_and_constraints_are_refused() -> None:
    with pytest.raises(SweepError, match="60 factors; at most 50"):
        Sweep({f"f{index}": 1 for index in range(60)})
    with pytest.raises(SweepError, match="60 constraints; at most 50"):
        Sweep(TINY, constraints=["nodes"] * 60)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["seed", "nodes", "configuration", "cluster", "arrivalRate", "plugins.X", "profiles[0].x", "x"]
)


def is_planned_or_refused_in_one_line(factors: dict[str, object], **others: object) -> bool:
    try:
        Sweep(factors, **others).plan()  # type: ignore[arg-type]  # on purpose
    except SweepError as error:
        return "\n" not in str(error)
    return True


@given(name=names, value=values)
def test_any_value_of_a_factor(name: str, value: object) -> None:
    assert is_planned_or_refused_in_one_line({**TINY, name: value})


@example(key="cost", value={"\n": None})
@given(key=st.sampled_from(["design", "constraints", "cost", "series"]), value=values)
def test_anything_else(key: str, value: object) -> None:
    assert is_planned_or_refused_in_one_line(TINY, **{key: value})
