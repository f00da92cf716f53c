"""Draws values of factors with Optuna, and prunes trials."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean

import attrs

from kschedfw.api import how_to_install
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.sweep.factors import Factor
from kschedfw_lab.sweep.values import Range
from kschedfw_lab.tuning.outcome import TrialEnd

try:
    import optuna
except ImportError as error:
    raise MissingExtraError(
        f"searching needs optuna; install it with: {how_to_install('kschedfw-lab', 'optuna')}"
    ) from error

_FINISHED_BEFORE_PRUNING = 5
"""The number of trials that are finished before any trial is pruned."""


_STATES = {
    TrialEnd.PRUNED: optuna.trial.TrialState.PRUNED,
    TrialEnd.FAILED: optuna.trial.TrialState.FAIL,
}


@attrs.define(eq=False)
class Draw:
    """A trial: the drawn values by factor, and the scores of its runs so far."""

    values: Mapping[str, object]
    trial: optuna.Trial
    scores: list[float] = attrs.field(factory=list)

    @property
    def number(self) -> int:
        """The trial's number, from 0 up."""
        return self.trial.number


class Drawing:
    """Draws values near those of good trials (tree-structured Parzen estimator), and prunes trials by the median rule.

    The draws depend only on the seed, and on the calls of its methods in their order.
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        default: Sequence[float],
        *,
        maximize: bool,
        seed: int,
        pruning: bool,
    ) -> None:
        """Make a study. `default` are the default's scores in a trial's runs; scores count relative to these."""
        self._factors = factors
        self._default = default
        # Prune a trial only after half of its runs: a single day says little.
        median = optuna.pruners.MedianPruner(
            n_startup_trials=_FINISHED_BEFORE_PRUNING, n_warmup_steps=max(2, len(default) // 2)
        )
        with _quiet():
            self._study = optuna.create_study(
                direction="maximize" if maximize else "minimize",
                # With `constant_liar`, trials that are drawn together differ.
                sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True),
                pruner=median if pruning else optuna.pruners.NopPruner(),
            )

    def draw(self) -> Draw:
        """Draw the values of the next trial."""
        with _quiet():
            trial = self._study.ask()
            return Draw({factor.name: _drawn(factor, trial) for factor in self._factors}, trial)

    def is_worth_it(self, draw: Draw) -> bool:
        """Report the trial's latest score.

        Return False if the trial is worse than the median of the trials before it.
        """
        draw.trial.report(self._gain(draw), len(draw.scores))
        return not draw.trial.should_prune()

    def end(self, draw: Draw, how: TrialEnd) -> None:
        """Record how the trial ended."""
        with _quiet():
            if how is TrialEnd.COMPLETE:
                self._study.tell(draw.trial, self._gain(draw))
            else:
                self._study.tell(draw.trial, state=_STATES[how])

    def _gain(self, draw: Draw) -> float:
        """Return the mean difference to the default's scores.

        So days that are hard for every configuration cancel out.
        """
        return fmean(score - default for score, default in zip(draw.scores, self._default, strict=False))


def _drawn(factor: Factor, trial: optuna.Trial) -> object:
    name, values = factor.name, factor.values
    if not isinstance(values, Range) or values.points is not None:
        listed = values.listed
        # By index: Optuna's categories are scalars, and a value may be an object.
        return listed[trial.suggest_categorical(name, range(len(listed)))]
    numbers = values.low, values.high, 1 if values.step is None else values.step
    if all(isinstance(number, int) for number in numbers):
        return trial.suggest_int(
            name, int(values.low), int(values.high), step=int(numbers[2]), log=values.is_log
        )
    number = trial.suggest_float(name, values.low, values.high, step=values.step, log=values.is_log)
    return float(f"{number:.6g}")  # A sweep writes numbers with six digits, too.


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's log, and its warnings about experimental arguments, in the block."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
