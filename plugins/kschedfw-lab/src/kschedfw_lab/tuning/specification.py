"""The specification of a search: a YAML file, or the same in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from kschedfw.api.reading import shown
from kschedfw_lab.results.results import TIMES
from kschedfw_lab.sweep.configurations import Configuration, runnable
from kschedfw_lab.sweep.errors import SweepError, inside, similar
from kschedfw_lab.sweep.factors import CONFIGURATION, Factor, label_of, read_factor
from kschedfw_lab.sweep.plan import OWN_DISTRIBUTION, Plan
from kschedfw_lab.sweep.runs import Run
from kschedfw_lab.sweep.specification import MOST_FACTORS, Sweep, content_of
from kschedfw_lab.sweep.values import Choices, Range

DIRECTIONS: Final = ("maximize", "minimize")
MOST_TRIALS: Final = 10_000
MOST_IN_BATCH: Final = 1_000

_PARTS: Final = ("factors", "search", "training", "heldOut")
_KEYS: Final = (*_PARTS, "objective", "trials", "batch", "seed", "pruning")


@attrs.frozen
class Objective:
    """The metric whose mean over the runs is maximised or minimised.

    Raises:
        SweepError: a real clock measures the metric, so that its values can't be reproduced.
    """

    metric: str
    maximize: bool = True

    def __attrs_post_init__(self) -> None:
        if self.metric in TIMES:
            raise SweepError.at("metric", f"{self.metric} is measured by a real clock: no run gives it twice")


@attrs.frozen(eq=False)
class Tuning:
    """A search for values of some factors of a configuration, judged by runs of a sweep.

    Each trial draws a value for every factor of `search`, and does all `training` runs with them. The best trial then
    does the `held_out` runs, and so does the configuration without changes.

    Attributes:
        search: the searched factors: paths in the configuration's document, and `plugins.NAME`.
        training: the runs by which trials are judged, without the searched values.
        held_out: the runs that no trial does, without the searched values.
        objective: the metric to optimise.
        trials: the number of trials.
        batch: the number of trials that are drawn at a time, and run at the same time.
        seed: the seed of the draws.
        pruning: whether a trial ends early if, after half of its runs or more, it is worse than the median of the
            trials before it.
    """

    search: tuple[Factor, ...]
    training: Plan
    held_out: Plan
    objective: Objective
    trials: int = 50
    batch: int = 4
    seed: int = 0
    pruning: bool = True

    @classmethod
    def of(
        cls,
        *,
        search: Mapping[str, object],
        training: Mapping[str, object],
        held_out: Mapping[str, object],
        objective: Objective | Mapping[str, object],
        factors: Mapping[str, object] | None = None,
        trials: int = 50,
        batch: int = 4,
        seed: int = 0,
        pruning: bool = True,
        folder: str | Path = ".",
        source: str = "",
    ) -> Tuning:
        """Return a search whose factors are given as in `Sweep`.

        Args:
            search: the searched factors, each with a list or a range.
            training: factors of which every value is run in each trial, such as `seed` or `cluster`.
            held_out: the same factors with other values.
            factors: all other factors, with one value each.
            folder: the folder that relative paths refer to.
            source: the name of the specification in errors.

        Raises:
            SweepError: the specification is invalid. The message names the place, its content, and what would be right.
        """
        fixed = factors or {}
        try:
            read = _searched(search, Path(folder))
            for part, runs in (("training", training), ("heldOut", held_out)):
                with inside(part):
                    _check_apart(runs, fixed, search, training)
            training_plan, held_out_plan = (
                _plan(part, {**fixed, **{name: runs[name] for name in training}}, runs, folder)
                for part, runs in (("training", training), ("heldOut", held_out))
            )
            _check_held_out(training_plan, held_out_plan)
            tuning = cls(
                read,
                training_plan,
                held_out_plan,
                objective if isinstance(objective, Objective) else _objective(objective),
                _whole("trials", trials, 1, MOST_TRIALS),
                _whole("batch", batch, 1, MOST_IN_BATCH),
                # Optuna draws with NumPy's RandomState, which takes seeds of 32 bits.
                _whole("seed", seed, 0, (1 << 32) - 1),
                _switch("pruning", pruning),
            )
            tuning.check_ends()
        except SweepError as error:
            raise (error.of(source) if source else error) from None
        return tuning

    @classmethod
    def read(cls, path: str | Path) -> Tuning:
        """Read the search from a YAML file. Relative paths in it refer to the file's folder.

        Raises:
            SweepError: the file is no search, or a file that it names can't be read.
            OSError: the file can't be read.
        """
        path = Path(path)
        content = content_of(path, _KEYS)
        parts = {
            part: content.get(part, {} if part == "factors" else None) for part in (*_PARTS, "objective")
        }
        for part, given in parts.items():
            if not isinstance(given, Mapping):
                raise SweepError(f"{path}: {part}: expected an object, found {shown(given)}")
        optional = {key: content[key] for key in ("trials", "batch", "seed", "pruning") if key in content}
        held_out = parts.pop("heldOut")
        return cls.of(**parts, held_out=held_out, **optional, folder=path.parent, source=str(path))

    @property
    def columns(self) -> tuple[str, ...]:
        """The factors of the runs' results: those of the sweeps, then the searched ones."""
        return (*self.training.factors, *(factor.name for factor in self.search))

    def configuration(self, run: Run, values: Mapping[str, object]) -> Configuration:
        """Return the configuration of a run, with these values of the searched factors."""
        changes = (factor.change(values[factor.name]) for factor in self.search if factor.name in values)
        return run.configuration.changed([change for change in changes if change is not None])

    def run_with(self, run: Run, values: Mapping[str, object]) -> Run:
        """Return the run with these values of the searched factors. Without values, only its columns change.

        Raises:
            SweepError: the configuration is invalid with these values.
        """
        configuration = self.configuration(run, values)
        # The plugins' distributions depend on the values, and are found anew.
        own = [text for text in run.distributions if text.startswith(f"{OWN_DISTRIBUTION} ")]
        searched = {factor.name: label_of(values.get(factor.name)) for factor in self.search}
        return attrs.evolve(
            run,
            values={**run.values, **searched},
            configuration=configuration,
            distributions=tuple(sorted({*own, *runnable(configuration).distributions})),
        ).keyed()

    def check_ends(self) -> None:
        """Check each value of a list and both ends of a range, together with the first values of the other factors.

        Raises:
            SweepError: the configuration is invalid with one of them.
        """
        first = {factor.name: _ends(factor)[0] for factor in self.search}
        for factor in self.search:
            for value in _ends(factor):
                with inside(f"search.{factor.name}"):
                    runnable(self.configuration(self.training.runs[0], {**first, factor.name: value}))


def _ends(factor: Factor) -> Sequence[object]:
    values = factor.values
    return (values.low, values.high) if isinstance(values, Range) else values.listed


def _searched(given: Mapping[str, object], folder: Path) -> tuple[Factor, ...]:
    if not given:
        raise SweepError.at("search", "is empty; give at least one factor with a list or a range")
    if len(given) > MOST_FACTORS:
        raise SweepError.at("search", f"{len(given)} factors; at most {MOST_FACTORS}")
    factors = []
    for name, values in given.items():
        with inside(f"search.{name}"):
            factor = read_factor(name, values, folder)
            if not (factor.path or factor.plugin):
                raise SweepError(
                    "isn't in the configuration; what is searched are paths in its document and plugins.NAME"
                )
            if isinstance(factor.values, Choices) and len(factor.values.listed) < 2:
                raise SweepError("has one value, so there is nothing to search; give a list or a range")
            factors.append(factor)
    return tuple(factors)


def _check_apart(
    runs: Mapping[str, object],
    fixed: Mapping[str, object],
    search: Mapping[str, object],
    training: Mapping[str, object],
) -> None:
    if not runs:
        raise SweepError("is empty; give the factors, such as seed, whose values make its runs")
    if set(runs) != set(training):
        raise SweepError(f"expected the factors of training, {', '.join(training)}; found {', '.join(runs)}")
    for name in runs:
        if name in fixed or name in search:
            raise SweepError.at(name, f"is in {'factors' if name in fixed else 'search'} already")
    if CONFIGURATION in runs:
        raise SweepError.at(CONFIGURATION, "belongs into factors: one configuration is tuned")


def _plan(part: str, factors: Mapping[str, object], runs: Mapping[str, object], folder: str | Path) -> Plan:
    """Return the plan of a part. Errors name their place in the specification of the search."""
    try:
        sweep = Sweep(factors, folder=folder)
        for factor in sweep.factors:
            single = isinstance(factor.values, Choices) and len(factor.values.listed) == 1
            if factor.name in factors and factor.name not in runs and not single:
                raise SweepError.at(
                    f"factors.{factor.name}", f"expected one value; several belong into {part}"
                )
        return sweep.plan()
    except SweepError as error:
        within = error.place.removeprefix("factors.")
        if within != error.place and any(within == name or within.startswith(f"{name}[") for name in runs):
            raise SweepError(error.problem, f"{part}.{within}", error.source) from None
        raise


def _check_held_out(training: Plan, held_out: Plan) -> None:
    seen = {run.key for run in training.runs}
    for run in held_out.runs:
        if run.key in seen:
            values = ", ".join(f"{name} {shown(value)}" for name, value in run.values.items())
            raise SweepError.at("heldOut", f"has a run of training: {values}")


def _objective(given: Mapping[str, object]) -> Objective:
    with inside("objective"):
        for key in given:
            if key not in ("metric", "direction"):
                raise SweepError.at(str(key), f"unknown field; {similar(str(key), ('metric', 'direction'))}")
        metric, direction = given.get("metric"), given.get("direction", DIRECTIONS[0])
        if not isinstance(metric, str) or not metric:
            raise SweepError.at(
                "metric", f"expected the name of a metric, such as placed, found {shown(metric)}"
            )
        if direction not in DIRECTIONS:
            raise SweepError.at("direction", f"expected maximize or minimize, found {shown(direction)}")
        return Objective(metric, direction == DIRECTIONS[0])


def _whole(name: str, given: object, low: int, high: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
        raise SweepError.at(name, f"expected a whole number from {low} to {high}, found {shown(given)}")
    return given


def _switch(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise SweepError.at(name, f"expected true or false, found {shown(given)}")
    return given
