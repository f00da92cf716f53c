"""`kschedfw what-if`: what moves when a cluster or its configuration changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, get_args

import attrs
import click
import msgspec
from msgspec.structs import replace
from rich.console import RenderableType

from kschedfw import KschedfwError, SchedulerConfiguration, WhatIf
from kschedfw.api.reading import UnreadableError, shown
from kschedfw.cli import (
    FILE,
    ConfigurationChoice,
    ExitCode,
    Input,
    InputOptions,
    UsageError,
    block,
    cluster_argument,
    configuration_options,
    counted,
    input_options,
    json_option,
    no_progress_option,
    print_json,
    print_parts,
    reading_bar,
    refusal_notes,
    stdout_console,
    tell,
)
from kschedfw.explain import SCHEMA_VERSION
from kschedfw.what_if import ScalingPlan
from kschedfw_advisor.cli import scaling_plan
from kschedfw_advisor.cli.what_if_input import read_document
from kschedfw_advisor.cli.what_if_output import counts_text
from kschedfw_advisor.explore.changes import Change
from kschedfw_advisor.explore.outcome import MOVES, Move, SimulatedOutcome, moves
from kschedfw_advisor.explore.workbench import Workbench

MOST_BYTES: Final = 4 << 20
"""The largest file of changes, in bytes."""
MOST_CHANGES: Final = 1000
KINDS: Final = tuple(sorted(str(kind.__struct_config__.tag) for kind in get_args(Change)))

WHAT_IF_HELP = """Show which pods move, find a place or lose theirs when a cluster or its configuration changes.

CLUSTER is as for simulate. --changes FILE has the changes, as YAML or JSON: a list of mappings, of which each has a
`kind`. These are cordon, uncordon, drain, delete-nodes and reschedule, with `nodes`; add-nodes, with `like` and
`count`; add, with `manifests` and `count`; delete-pods, with `pods`; and edit, with `text`, `edits` and `pods`, as in
the JSON of pending. Those of the configuration are weight, plugin and arguments, with `profile`, `plugin` and `weight`,
`enabled` or `arguments`. Nothing is changed in earnest.

With --plan FILE instead, an autoscaler's plan is checked: `addNodes`, a list of manifests; `removeNodes`, a list of
names; and `pods`, the node of each pod by its key, or null for any. Each decision of kube-scheduler that the plan
doesn't expect is explained, and the exit code is 1 if there is one.

Pending pods are scheduled, with preemption, before the changes and after them. Ties between nodes go to the first by
name, so that no pod moves which the changes have nothing to do with.

\b
Exit codes:
  0    no pod has lost its place; kube-scheduler agrees with the plan
  1    some have; it doesn't agree; or a plugin failed (see standard error)
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""


_LOST: Final = ("no longer placed", "gone")


@attrs.frozen
class Difference:
    """The outcome before the changes and after them, and the pods that fare differently."""

    changes: Sequence[Change]
    before: SimulatedOutcome
    after: SimulatedOutcome
    moves: Sequence[Move]

    @property
    def has_lost(self) -> bool:
        """Tell whether a pod that had a place has none any more."""
        return any(move.change in _LOST and move.before for move in self.moves)


@click.command("what-if", help=WHAT_IF_HELP)
@cluster_argument
@click.option("--changes", type=FILE, metavar="FILE", help="The changes; - is the standard input.")
@click.option("--plan", type=FILE, metavar="FILE", help="An autoscaler's plan, instead of changes.")
@input_options
@configuration_options
@json_option
@no_progress_option
def what_if(
    cluster: Sequence[Path],
    changes: Path | None,
    plan: Path | None,
    given: InputOptions,
    chosen: ConfigurationChoice,
    as_json: bool,
    no_progress: bool,
) -> None:
    if (changes is None) is (plan is None):
        raise UsageError(
            "one of both is needed: --changes FILE, what changes; or --plan FILE, an autoscaler's plan"
        )
    planned = (
        None if plan is None else read_document(plan, scaling_plan.MOST_BYTES, "plan", scaling_plan.plan_of)
    )
    wanted = () if changes is None else read_document(changes, MOST_BYTES, "list of changes", _changes_in)
    configuration = chosen.load()
    with reading_bar(enabled=not no_progress and not given.live.is_wanted) as bar:
        loaded = given.read(cluster, progress=bar, show_progress=not no_progress)
    tell(loaded.problems)
    if planned is not None:
        _check(loaded, configuration, planned, str(plan), as_json=as_json)
        return
    with closing(Workbench(loaded.cluster, configuration)) as bench:
        found = difference(bench, wanted)
    notes = [*loaded.notes, *refusal_notes(loaded.refused), *found.after.notes]
    if as_json:
        print_json(to_json(found, notes))
    else:
        print_parts(stdout_console(), _parts(found, notes))
    if found.has_lost:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)


def _check(
    loaded: Input, configuration: SchedulerConfiguration, planned: ScalingPlan, file: str, *, as_json: bool
) -> None:
    notes = [*loaded.notes, *refusal_notes(loaded.refused)]
    with WhatIf(loaded.cluster, configuration) as asked, asked.transaction() as trial:
        try:
            found = trial.check(planned)
        except KschedfwError as error:
            raise UsageError(f"{file}: {error}") from None
        if as_json:
            print_json(scaling_plan.to_json(found, notes))
        else:
            told = [block(*(f"note: {note}" for note in notes))] if notes else []
            print_parts(stdout_console(), [*scaling_plan.parts(found), *told])
    if not found:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)


def _changes_in(content: object) -> tuple[Change, ...]:
    if not isinstance(content, list) or not 0 < len(content) <= MOST_CHANGES:
        found = f"{len(content):,}" if isinstance(content, list) else shown(content)
        raise UnreadableError(f"expected a list of 1 to {MOST_CHANGES:,} changes, found {found}")
    for number, each in enumerate(content):
        if not isinstance(each, dict):
            raise UnreadableError(f"[{number}]: expected an object with kind, found {shown(each)}")
        if (kind := each.get("kind")) not in KINDS:
            raise UnreadableError(f"[{number}].kind: expected one of {', '.join(KINDS)}; found {shown(kind)}")
    try:
        return msgspec.convert(content, tuple[Change, ...])
    except msgspec.ValidationError as error:
        # The place comes last in its text, and `$` stands for the list.
        what, _, place = str(error).partition(" - at `$")
        raise UnreadableError(f"{place.removesuffix('`')}: {what}") from None


def difference(bench: Workbench, changes: tuple[Change, ...]) -> Difference:
    """Return what the changes do to the pods.

    Raises:
        UsageError: a change can't be made.
    """
    before = bench.outcome()
    try:
        after = bench.outcome(changes)
    except KschedfwError as error:
        raise UsageError(str(error)) from None
    pods = {pod.key: pod for pod in (*before.pods, *after.pods)}
    differing = [
        replace(move, workload=str(bench.workload(pods[move.pod]) or "")) for move in moves(before, after)
    ]
    return Difference(changes, before, after, sorted(differing, key=lambda move: move.workload))


def to_json(found: Difference, notes: Sequence[str]) -> dict[str, object]:
    """The difference in types that `json.dumps` knows."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "changes": [change.title for change in found.changes],
        "pending": {"before": _waiting(found.before), "after": _waiting(found.after)},
        "counts": dict(Counter(move.change for move in found.moves)),
        "moves": [
            {
                "pod": move.pod,
                "workload": move.workload or None,
                "code": move.change.replace(" ", "-"),
                "before": move.before,
                "after": move.after,
                "message": move.why,
            }
            for move in found.moves
        ],
        "notes": list(notes),
    }


def _waiting(outcome: SimulatedOutcome) -> int:
    return sum(not outcome.fates[pod.key].node for pod in outcome.pods)


def _parts(found: Difference, notes: Sequence[str]) -> Iterator[RenderableType]:
    yield f"if: {', '.join(change.title for change in found.changes)}"
    counts = Counter(move.change for move in found.moves)
    told = ", ".join(f"{counted(number, 'pod')} {MOVES[kind][number > 1]}" for kind, number in counts.items())
    before, after = _waiting(found.before), _waiting(found.after)
    yield f"{told or 'no pod moves'}; pending: {before:,} before, {after:,} after"
    by_workload: dict[str, list[Move]] = {}
    for move in found.moves:
        by_workload.setdefault(move.workload or move.pod, []).append(move)
    if by_workload:
        yield block(*(_line(name, own) for name, own in by_workload.items()))
    if notes:
        yield block(*(f"note: {note}" for note in notes))


def _line(name: str, moved: Sequence[Move]) -> str:
    def places(of: Sequence[str | None]) -> str:
        return counts_text(place or "pending" for place in of)

    came, go = places([move.before for move in moved]), places([move.after for move in moved])
    return f"{name}: {counted(len(moved), 'pod')} from {came} to {go}"
