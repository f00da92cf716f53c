"""Compares the forms of one plugin: the cost of each form, and whether it differs from others by more than noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from statistics import median

import attrs

from kschedfw import AnyPlugin, KschedfwError, Profile, Registry
from kschedfw_lab.bench.derived_registry import DerivedRegistry
from kschedfw_lab.bench.results import Measurement
from kschedfw_lab.bench.stage import Case, Form, PluginForm
from kschedfw_lab.bench.workloads import find_workload

REPEATS = 5
"""Runs of each form. If two forms cost the same, their runs don't overlap with a probability of only 1/126."""

LEAST_REPEATS = 4
"""The least number of runs. With fewer, too many verdicts would be due to chance."""

_BATCH_HOOKS = ("filter_batch", "score_batch")


class FormError(KschedfwError):
    """The plugin doesn't have the requested form."""


def with_form(registry: Registry, form: PluginForm) -> Registry:
    """Return a registry in which the form's plugin has only this form."""
    return DerivedRegistry(
        registry, lambda plugin: in_form(plugin, form.form) if plugin.name == form.plugin else plugin
    )


def in_form(plugin: type[AnyPlugin], form: Form) -> type[AnyPlugin]:
    """Return the plugin without the forms that would be preferred to `form`.

    Raises:
        FormError: the plugin lacks this form, so another one would be measured.
    """
    batch = [hook for hook in _BATCH_HOOKS if getattr(plugin, hook, None) is not None]
    without: dict[str, object] = {}
    match form:
        case Form.MEMO:
            if plugin.reads is None and not plugin.pure:
                raise FormError(f"{plugin.name} has no form memo: it doesn't say what it `reads`")
            return plugin
        case Form.BATCH:
            if not batch and not plugin.pure:
                raise FormError(f"{plugin.name} has no form batch: neither filter_batch nor score_batch")
            # Of a pure plugin the batch forms are learned. Without its other hooks no answers are kept by signature.
            without = {"reads": None, "pure": ("filter", "score") if plugin.pure else False}
        case Form.SCALAR:
            # None as the hook: the framework then finds no batch form.
            without = {"reads": None, "pure": False, **dict.fromkeys(batch)}
    return type(plugin.__name__, (plugin,), {"__module__": plugin.__module__, **without})


class FormVerdict(Enum):
    """The comparison of two sets of runs. They differ if they don't overlap."""

    SLOWER = "slower"
    """The fastest run of this set took longer than the slowest run of the other set."""
    FASTER = "faster"
    NO_DIFFERENCE = "no difference above noise"


@attrs.frozen
class FormRuns:
    """The runs with one form, or without the plugin if `form` is None.

    `seconds` (per pod) and `places` (the nodes of the measured pods, in order) have an entry for each run. `asked` is
    the number of nodes per attempt for which the plugin was called. `was_asked` is true if it was called at all; with
    the memo, that may have been before the measurement.
    """

    form: Form | None
    seconds: Sequence[float] = ()
    asked: float = 0.0
    was_asked: bool = False
    places: Sequence[Sequence[str]] = ()

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def fastest(self) -> float:
        return min(self.seconds)

    @property
    def slowest(self) -> float:
        return max(self.seconds)

    def against(self, other: FormRuns) -> FormVerdict:
        if self.fastest > other.slowest:
            return FormVerdict.SLOWER
        return FormVerdict.FASTER if self.slowest < other.fastest else FormVerdict.NO_DIFFERENCE


@attrs.frozen
class FormsComparison:
    """The comparison of a plugin's forms on one workload. `runs` begins with the runs without the plugin.

    There are equally many runs of each form.
    """

    plugin: str
    workload: str
    percentage: int
    nodes: int
    initial_pods: int
    runs: Sequence[FormRuns]

    @property
    def was_asked(self) -> bool:
        """Return whether the plugin was called for any node.

        If not, its forms weren't measured, and there is no verdict.
        """
        forms = [each for each in self.runs if each.form is not None]
        by_form = {each.form: each.was_asked for each in forms}
        fresh = [asked for form, asked in by_form.items() if form is not Form.MEMO]
        return any(fresh or by_form.values())

    @property
    def difference(self) -> str:
        """The first difference between the decisions of two runs with the plugin, for a report; empty if there is none.

        Runs are compared up to the end of the shortest one. Always empty for workloads in which pods arrive in real
        time.
        """
        if find_workload(self.workload).churn is not None:
            return ""
        runs = [(each.form, places) for each in self.runs if each.form is not None for places in each.places]
        length = min((len(places) for _, places in runs), default=0)
        for number in range(length):
            (form, places), *others = runs
            for other, its_places in others:
                if its_places[number] != places[number]:
                    assert form is not None
                    assert other is not None
                    who = (
                        f"{form.value} and {other.value}"
                        if form is not other
                        else f"two runs of {form.value}"
                    )
                    where = " and ".join(place or "no node" for place in (places[number], its_places[number]))
                    return f"{who} differ on pod {number + 1:,} of {length:,}: {where}"
        return ""

    @property
    def repeats(self) -> int:
        return len(self.runs[0].seconds)

    def cost(self, each: FormRuns) -> float | None:
        """Return the additional seconds per pod, compared with runs without the plugin.

        Return None if the difference is within the noise, or if the plugin wasn't called.
        """
        without = self.runs[0]
        more = self.was_asked and each.against(without) is FormVerdict.SLOWER
        return each.median - without.median if more else None

    def to_json(self) -> dict[str, object]:
        """The comparison in types that `json.dumps` knows; the keys are part of kschedfw's interface."""
        without = self.runs[0]
        return {
            "plugin": self.plugin,
            "workload": self.workload,
            "percentage": self.percentage,
            "nodes": self.nodes,
            "initialPods": self.initial_pods,
            "repeats": self.repeats,
            "wasAsked": self.was_asked,
            "difference": self.difference or None,
            "runs": [
                {
                    "form": None if each.form is None else each.form.value,
                    "secondsPerPod": list(each.seconds),
                    "median": each.median,
                    "rowsAskedPerAttempt": None if each is without else each.asked,
                    "cost": self.cost(each),
                    "againstWithout": None
                    if each is without or not self.was_asked
                    else each.against(without).value,
                    "againstOneBefore": None
                    if each is without or before is without or not self.was_asked
                    else each.against(before).value,
                }
                for before, each in zip((without, *self.runs), self.runs, strict=False)
            ],
        }


def form_cases(case: Case, plugin: str, forms: Sequence[Form], repeats: int) -> Iterator[Case]:
    """Yield the cases to measure, in turns.

    Every second turn is in reverse order, so that no form always comes first.
    """
    cases = [_without(case, plugin)]
    cases += [attrs.evolve(case, form=PluginForm(plugin, form)) for form in forms]
    for turn in range(repeats):
        yield from cases if turn % 2 == 0 else reversed(cases)


def comparison(
    case: Case, plugin: str, measured: Sequence[tuple[Case, Measurement]]
) -> FormsComparison | None:
    """Return the comparison of all complete turns; None if there are none."""
    by_form: dict[Form | None, list[Measurement]] = {}
    for each, measurement in measured:
        by_form.setdefault(None if each.form is None else each.form.form, []).append(measurement)
    turns = min(map(len, by_form.values()), default=0)
    if len(by_form) < 2 or not turns:
        return None
    return FormsComparison(
        plugin=plugin,
        workload=case.workload_name,
        percentage=case.percentage,
        nodes=case.nodes,
        initial_pods=case.initial_pods,
        runs=[_form_runs(form, plugin, runs[:turns]) for form, runs in by_form.items()],
    )


def _form_runs(form: Form | None, plugin: str, runs: Sequence[Measurement]) -> FormRuns:
    uses = [use for run in runs for use in run.plugins if use.plugin == plugin]
    attempts = sum(use.attempts for use in uses)
    before = form is Form.MEMO  # The memo may still hold answers from before the measurement.
    return FormRuns(
        form,
        tuple(run.seconds_per_pod for run in runs),
        asked=sum(use.rows_asked for use in uses) / attempts if attempts else 0.0,
        was_asked=any(use.rows_asked or (before and use.rows_asked_before) for use in uses),
        places=tuple(run.places for run in runs),
    )


def _without(case: Case, plugin: str) -> Case:
    profile = case.profile
    multi_point = [each for each in profile.multi_point if each.name != plugin]
    args = {name: args for name, args in profile.args.items() if name != plugin}
    return attrs.evolve(case, profile=Profile(multi_point, args=args))
