"""The result of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from statistics import fmean

import attrs

from kschedfw_lab.report.statistics import Estimate, sign_flip_p
from kschedfw_lab.tuning.specification import Objective


class TrialEnd(StrEnum):
    """The ways in which a trial ends."""

    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"


@attrs.frozen
class SearchTrial:
    """A trial: the drawn values by factor, and the metric in each finished training run."""

    number: int
    values: Mapping[str, object]
    scores: tuple[float, ...]
    end: TrialEnd
    error: str = ""


@attrs.frozen(slots=False)
class PairedScores:
    """The scores of the default and of the best trial in the same runs, in the order of the plan."""

    default: Sequence[float]
    tuned: Sequence[float]

    @cached_property
    def difference(self) -> Estimate:
        """The mean of tuned − default over all runs, with its 95 % interval."""
        return Estimate.of([new - old for old, new in zip(self.default, self.tuned, strict=True)])

    @cached_property
    def probability(self) -> float:
        """The p-value of the mean difference, by the paired permutation test."""
        return sign_flip_p([new - old for old, new in zip(self.default, self.tuned, strict=True)])

    def to_json(self) -> dict[str, object]:
        """Return the scores in types that `json.dumps` knows."""
        difference = self.difference
        return {
            "runs": difference.count,
            "default": fmean(self.default),
            "tuned": fmean(self.tuned),
            "difference": difference.mean,
            "interval": None if difference.low is None else [difference.low, difference.high],
            "probability": self.probability,
        }


@attrs.frozen
class Tuned:
    """The result of a search.

    Attributes:
        objective: the metric that was optimised.
        best: the trial with the best mean over the training runs.
        configuration: the document with the best trial's values.
        trials: all trials, in the order in which they were drawn.
        training: the scores of the default and of the best trial in the training runs. They are no evidence, since the
            best of many trials was also lucky.
        held_out: the scores of both in the held-out runs.
    """

    objective: Objective
    best: SearchTrial
    configuration: Mapping[str, object]
    trials: tuple[SearchTrial, ...]
    training: PairedScores
    held_out: PairedScores

    def count(self, end: TrialEnd) -> int:
        """Return how many trials ended this way."""
        return sum(trial.end is end for trial in self.trials)

    def to_json(self) -> dict[str, object]:
        """Return the result in types that `json.dumps` knows."""
        return {
            "metric": self.objective.metric,
            "direction": "maximize" if self.objective.maximize else "minimize",
            "trials": [
                {
                    "number": trial.number,
                    "values": dict(trial.values),
                    "end": trial.end.value,
                    "runs": len(trial.scores),
                    "mean": fmean(trial.scores) if trial.scores else None,
                    "error": trial.error,
                }
                for trial in self.trials
            ],
            "best": self.best.number,
            "training": self.training.to_json(),
            "heldOut": self.held_out.to_json(),
            "configuration": dict(self.configuration),
        }
