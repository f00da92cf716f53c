"""The question of a report: which factors are compared, with which baseline, over which repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

import attrs

from kschedfw import KschedfwError
from kschedfw.api.reading import printable
from kschedfw_lab.results.results import Results
from kschedfw_lab.results.values import Value, cell

SEED: Final = "seed"
_SHOWN: Final = 10


class QuestionError(KschedfwError, ValueError):
    """A factor, a value or a metric isn't in the results. The message lists those that are."""


@attrs.frozen
class Question:
    """The comparison that a report makes.

    Attributes:
        compared: the compared factors; empty if no two runs can be compared.
        baseline: the values of the compared factors that all others are compared with.
        over: the factors whose values are repetitions of the same experiment, usually the seed. Runs that agree in
            them, and in all factors but the compared ones, form a pair.
        metrics: the metrics, in the order of the results.
    """

    compared: tuple[str, ...]
    baseline: tuple[Value, ...]
    over: tuple[str, ...]
    metrics: tuple[str, ...]


def label(value: Value) -> str:
    """Format a value for people. Floats have six significant digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else printable(value if isinstance(value, str) and value else cell(value))


def values_of(results: Results, factor: str) -> list[Value]:
    """Return the values of a factor: numbers in ascending order, others in the order of the results."""
    values = list(dict.fromkeys(results.columns[factor]))
    numbers = [value for value in values if isinstance(value, int | float)]
    return [*sorted(numbers)] if len(numbers) == len(values) else values


def question_of(
    results: Results,
    baseline: Mapping[str, Value] | str | None = None,
    over: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> Question:
    """Return the question, with defaults for everything that isn't given.

    Args:
        baseline: values of the compared factors, or their text: `policy=default`, or `policy=default,weight=1`. A
            factor without a value is compared with its first one. The default is the first factor that is crossed with
            the others, preferably one whose values aren't numbers.
        over: factors that are repetitions, in addition to the seed.
        metrics: names or patterns, such as `utilisation.*`; by default all.

    Raises:
        QuestionError: a factor, a value or a metric isn't in the results.
    """
    repetitions = tuple(
        dict.fromkeys((*_seed(results), *(_factor(results, each, "--over") for each in over)))
    )
    wanted = _wanted(results, baseline)
    if not wanted:
        wanted = _first_comparable(results, repetitions)
    wanted |= dict.fromkeys(_foreign(results, wanted, repetitions))
    for name in wanted:
        if name in repetitions:
            raise QuestionError(
                f"--baseline {name}: a repetition can't be compared; runs are paired by their {name}"
            )
    return Question(tuple(wanted), tuple(wanted.values()), repetitions, _metrics(results, metrics))


def _first_comparable(results: Results, repetitions: Sequence[str]) -> dict[str, Value]:
    """Return the first factor that is crossed with the others, with its first value; empty if there is none.

    Factors that aren't numbers come first: policies are compared at each rate, not rates under each policy. Up to half
    of the combinations may be missing.
    """
    values = {name: values_of(results, name) for name in results.factors if name not in repetitions}
    varying = {name: found for name, found in values.items() if len(found) > 1}
    for name in sorted(varying, key=lambda each: are_numbers(varying[each])):
        baseline = {name: varying[name][0]}
        compared = (name, *_foreign(results, baseline, repetitions))
        others = [each for each in varying if each not in compared]
        treatments, contexts = _combinations(results, compared), _combinations(results, others)
        if 2 * len(_combinations(results, (*compared, *others))) > len(treatments) * len(contexts):
            return baseline
    return {}


def _combinations(results: Results, factors: Sequence[str]) -> set[tuple[Value, ...]]:
    """Return the combinations of these factors' values that some run has."""
    return set(zip(*(results.columns[name] for name in factors), strict=True)) or {()}


def _foreign(results: Results, baseline: Mapping[str, Value], repetitions: Sequence[str]) -> Iterator[str]:
    """Yield the factors that all other runs have, but not the baseline, such as arguments of one policy.

    No run with such a factor agrees with a run of the baseline in it. So the factor has to be compared, too.
    """
    columns = results.columns
    rows = range(len(columns["run"]))
    own = [row for row in rows if all(columns[name][row] == value for name, value in baseline.items())]
    others = set(rows).difference(own)
    for name in results.factors:
        if name in baseline or name in repetitions or not baseline or not others:
            continue
        column = columns[name]
        if all(column[row] is None for row in own) and all(column[row] is not None for row in others):
            yield name


def are_numbers(values: Iterable[Value]) -> bool:
    """Return whether all values are numbers. A bool isn't one."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _seed(results: Results) -> tuple[str, ...]:
    return (SEED,) if SEED in results.factors else ()


def _wanted(results: Results, baseline: Mapping[str, Value] | str | None) -> dict[str, Value]:
    if not baseline:
        return {}
    if not isinstance(baseline, str):
        known = [_factor(results, name, "--baseline") for name in baseline]
        return {name: _value(results, name, baseline[name]) for name in known}
    wanted: dict[str, Value] = {}
    for part in _parts(baseline, results.factors):
        if part in results.factors:
            wanted[part] = values_of(results, part)[0]
            continue
        # A factor's name may contain "=", so take the longest name that fits.
        fitting = (name for name in results.factors if part.startswith(f"{name}="))
        name = max(fitting, key=len, default=part.partition("=")[0])
        _factor(results, name, "--baseline")
        wanted[name] = _value(results, name, part[len(name) + 1 :])
    return wanted


def _parts(baseline: str, factors: Sequence[str]) -> Iterator[str]:
    """Yield the parts between commas. A comma that no factor's name follows belongs to a value."""
    start = 0
    for position, character in enumerate(baseline):
        if character == "," and any(_follows(name, baseline, position + 1) for name in factors):
            yield baseline[start:position]
            start = position + 1
    yield baseline[start:]


def _follows(name: str, text: str, position: int) -> bool:
    end = position + len(name)
    return text.startswith(name, position) and text[end : end + 1] in ("", "=", ",")


def _factor(results: Results, name: str, option: str) -> str:
    if name in results.factors:
        return name
    known = ", ".join(results.factors) or "none"
    raise QuestionError(f"{option}: there is no factor {printable(name)}; the factors are: {known}")


def _value(results: Results, factor: str, wanted: Value) -> Value:
    values = values_of(results, factor)
    # The exact text first: labels have only six digits.
    for written in (cell, label):
        for value in values:
            if wanted == value or wanted == written(value):
                return value
    known = [label(value) for value in values]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    raise QuestionError(
        f"--baseline: no run has {factor}={label(wanted)}; its values are: {', '.join(known[:_SHOWN])}{more}"
    )


def _metrics(results: Results, wanted: Sequence[str]) -> tuple[str, ...]:
    known = [str(metric) for metric in dict.fromkeys(results.columns["metric"]) if metric]
    chosen: set[str] = set()
    for pattern in wanted:
        found = [metric for metric in known if metric == pattern or fnmatchcase(metric, pattern)]
        if not found:
            # Cut, since difflib may take quadratic time.
            similar = get_close_matches(pattern[:100], known, n=1)
            hint = f"did you mean {similar[0]}?" if similar else f"the metrics are: {', '.join(known[:30])}"
            raise QuestionError(f"--metric {printable(pattern)}: no run has it; {hint}")
        chosen.update(found)
    return tuple(metric for metric in known if not wanted or metric in chosen)
