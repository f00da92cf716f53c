"""Draws trials, does their runs on an engine, and compares the best trial with the default on held-out runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Final

import yaml

from kschedfw_lab.results.results import RunResult
from kschedfw_lab.results.writer import ResultsWriter
from kschedfw_lab.sweep.dispatching import Dispatcher
from kschedfw_lab.sweep.errors import SweepError, similar
from kschedfw_lab.sweep.runs import Run, RunOutcome, outcome_of
from kschedfw_lab.sweep.sweeping import Progress, runs_done
from kschedfw_lab.tuning.drawing import Draw, Drawing
from kschedfw_lab.tuning.outcome import PairedScores, SearchTrial, TrialEnd, Tuned
from kschedfw_lab.tuning.specification import Tuning

CONFIGURATION: Final = "tuned.yaml"
"""The file in the directory of results with the best configuration."""


class TuningError(SweepError):
    """A search can't continue: the default or every trial failed, or no run has the metric."""


def tune(
    tuning: Tuning,
    directory: str | Path,
    executor: Executor,
    *,
    workers: int = 1,
    resume: bool = False,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Search, and compare the best trial with the default on the held-out runs.

    Each run is recorded in the directory when it is finished, as in a sweep. The searched factors are columns, too;
    they are empty in runs of the default. At the end, the configuration is written to `tuned.yaml`.

    Equal specifications give equal trials and results, on any engine with any number of workers: all trials of a batch
    do their first run, then the trials that go on do their second run, and so on. So `resume` can continue an
    interrupted search without repeating any run.

    Args:
        tuning: the search.
        directory: the directory of results. Without `resume` it must have none.
        executor: does the runs, as for `run_sweep`. It isn't shut down.
        workers: the number of runs that the executor does at the same time.
        resume: use the results that the directory has.
        timeout: seconds of real time after which a run fails.
        progress: called after each run, with the number of finished runs and the largest possible number of runs.

    Raises:
        SweepError: the directory has results, and `resume` is false, or they have other factors.
        TuningError: no run has the metric; a run of the default, or of the best trial on held-out runs, failed; or no
            trial was completed.
        EngineError: the executor has stopped working.
        OSError: the directory can't be written to.
    """
    directory = Path(directory)
    known = runs_done(directory, tuning.columns, resume=resume)
    with ResultsWriter(directory, tuning.columns) as writer:
        runner = _Runner(writer, known, executor, workers, timeout, progress, _most_runs(tuning))
        tuned = _Search(tuning, runner).result()
        writer.finish()
    text = yaml.safe_dump(dict(tuned.configuration), sort_keys=False)
    (directory / CONFIGURATION).write_text(text, encoding="utf-8")
    return tuned


def _most_runs(tuning: Tuning) -> int:
    return (tuning.trials + 1) * len(tuning.training.runs) + 2 * len(tuning.held_out.runs)


class _Runner:
    """Does training and held-out runs, each of them only once."""

    def __init__(
        self,
        writer: ResultsWriter,
        known: Mapping[str, RunResult],
        executor: Executor,
        workers: int,
        timeout: float | None,
        progress: Progress | None,
        most: int,
    ) -> None:
        self._writer = writer
        self._outcomes = {key: RunOutcome(key, each.metrics, error=each.error) for key, each in known.items()}
        self._dispatcher = Dispatcher(executor, workers, partial(outcome_of, timeout=timeout), self._take)
        self._progress = progress
        self._done, self._most = 0, most

    def outcomes(self, runs: Sequence[Run]) -> Sequence[RunOutcome]:
        """Do the runs that have no outcome yet. Return the outcomes of all, in their order."""
        self._dispatcher.run({run.key: run for run in runs if run.key not in self._outcomes}.values())
        return [self._outcomes[run.key] for run in runs]

    def _take(self, run: Run, outcome: RunOutcome) -> None:
        if outcome.error:
            self._writer.add_failure(run.key, run.values, outcome.error)
        else:
            self._writer.add(run.key, run.values, outcome.metrics)
        self._outcomes[run.key] = outcome
        self._done += 1
        if self._progress is not None:
            self._progress(run, outcome, self._done, self._most)


class _Search:
    """One search, from the default's runs to the comparison."""

    def __init__(self, tuning: Tuning, runner: _Runner) -> None:
        self._tuning = tuning
        self._runner = runner
        self._training, self._held_out = tuning.training.runs, tuning.held_out.runs
        # All at once, so that every worker has a run. First, since without the default nothing can be judged.
        default = self._scores((*self._training, *self._held_out), {})
        self._default = default[: len(self._training)]
        self._default_held_out = default[len(self._training) :]
        self._drawing = Drawing(
            tuning.search,
            self._default,
            maximize=tuning.objective.maximize,
            seed=tuning.seed,
            pruning=tuning.pruning,
        )
        self._trials: list[SearchTrial] = []

    def result(self) -> Tuned:
        """Make all trials, and compare the best one with the default.

        Raises:
            TuningError: no trial was completed, or the best one fails on a held-out run.
        """
        tuning = self._tuning
        for begun in range(0, tuning.trials, tuning.batch):
            self._make([self._drawing.draw() for _ in range(min(tuning.batch, tuning.trials - begun))])
        complete = [trial for trial in self._trials if trial.end is TrialEnd.COMPLETE]
        if not complete:
            raise TuningError(f"no trial was completed; the first one failed: {self._trials[0].error}")
        choose = max if tuning.objective.maximize else min
        best = choose(complete, key=lambda trial: fmean(trial.scores))
        return Tuned(
            objective=tuning.objective,
            best=best,
            configuration=json.loads(tuning.configuration(self._training[0], best.values).document),
            # They end in another order than they were drawn in.
            trials=tuple(sorted(self._trials, key=lambda trial: trial.number)),
            training=PairedScores(self._default, best.scores),
            held_out=PairedScores(self._default_held_out, self._scores(self._held_out, best.values)),
        )

    def _make(self, draws: Sequence[Draw]) -> None:
        """Make trials side by side. All of them do a training run before any does the next one."""
        going = list(draws)
        for run in self._training:
            going = self._do(run, going)
        for draw in going:
            self._end(draw, TrialEnd.COMPLETE)

    def _do(self, training_run: Run, draws: Sequence[Draw]) -> list[Draw]:
        """Do a training run with the values of each draw. Return the draws that go on."""
        runs: list[tuple[Draw, Run]] = []
        for draw in draws:
            try:
                runs.append((draw, self._tuning.run_with(training_run, draw.values)))
            except SweepError as error:  # The configuration is invalid with these values.
                self._end(draw, TrialEnd.FAILED, str(error))
        going = []
        outcomes = self._runner.outcomes([run for _, run in runs])
        for (draw, run), outcome in zip(runs, outcomes, strict=True):
            try:
                draw.scores.append(self._score(run, outcome))
            except SweepError as error:
                self._end(draw, TrialEnd.FAILED, str(error))
                continue
            # After the last run there is nothing to save by pruning.
            if training_run is self._training[-1] or self._drawing.is_worth_it(draw):
                going.append(draw)
            else:
                self._end(draw, TrialEnd.PRUNED)
        return going

    def _end(self, draw: Draw, end: TrialEnd, error: str = "") -> None:
        self._drawing.end(draw, end)
        self._trials.append(SearchTrial(draw.number, draw.values, tuple(draw.scores), end, error))

    def _scores(self, runs: Sequence[Run], values: Mapping[str, object]) -> tuple[float, ...]:
        """Return the objective's metric in these runs with these values. Every run has to succeed."""
        runs = [self._tuning.run_with(run, values) for run in runs]
        return tuple(
            self._score(run, outcome) for run, outcome in zip(runs, self._runner.outcomes(runs), strict=True)
        )

    def _score(self, run: Run, outcome: RunOutcome) -> float:
        if outcome.error:
            raise TuningError(f"run {run.key} ({_described(run)}) failed: {outcome.error}")
        metric = self._tuning.objective.metric
        if metric not in outcome.metrics:
            raise TuningError(
                f"no run has {metric!r}; {similar(metric, outcome.metrics)}", "objective.metric"
            )
        return float(outcome.metrics[metric])


def _described(run: Run) -> str:
    return ", ".join(f"{name} {value}" for name, value in run.values.items() if value is not None)
