"""A recording under several configurations, beside what really happened."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from kschedfw import Registry
from kschedfw.config import FeatureGates
from kschedfw.scheduler import Setup
from kschedfw_replay.recording.blocks import RecordingError
from kschedfw_replay.records import Record
from kschedfw_replay.replaying.fates import Survey
from kschedfw_replay.replaying.fidelity import Fidelity, FidelityReport
from kschedfw_replay.replaying.history import Happening, History
from kschedfw_replay.replaying.looking_back import EXPLAINED
from kschedfw_replay.replaying.measures import Measures
from kschedfw_replay.replaying.replay import Replay, Replayed
from kschedfw_replay.replaying.room import PriceOf, Room, annotated_price
from kschedfw_replay.replaying.upgrading import Upgrade, upgrades


@attrs.frozen
class ReplayComparison:
    """The replays of a recording under several configurations, beside its real course.

    Attributes:
        begins: the begin of the replayed time, in seconds since 1970.
        ends: its end.
        pods: that were there from the beginning, or arrived.
        gaps: in the recording; what happened in one is taken to have happened at its end.
        left_out: objects that couldn't be read, by kind.
        recorded: what really happened.
        runs: one for each configuration.
        fidelity: how often the first configuration decides as the recorded scheduler; None if it wasn't asked for.
        upgrades: the pods that each version but the first places otherwise; empty unless versions are compared.
    """

    begins: float
    ends: float
    pods: int
    gaps: int
    left_out: Mapping[str, int]
    recorded: Measures
    runs: tuple[Replayed, ...]
    fidelity: FidelityReport | None = None
    upgrades: tuple[Upgrade, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The comparison in types that `json.dumps` knows."""
        return {
            "begins": self.begins,
            "ends": self.ends,
            "pods": self.pods,
            "gaps": self.gaps,
            "leftOut": dict(self.left_out),
            "recorded": _measures_json(self.recorded),
            "configurations": [_run_json(run) for run in self.runs],
            "fidelity": None if self.fidelity is None else _fidelity_json(self.fidelity),
            "upgrades": [upgrade.to_json() for upgrade in self.upgrades],
        }


def replay_recording(
    records: Iterable[Record],
    setups: Sequence[Setup],
    *,
    since: float = float("-inf"),
    until: float = float("inf"),
    seed: int = 0,
    explained: int = EXPLAINED,
    fidelity: bool = False,
    registry: Registry | None = None,
    price_of: PriceOf = annotated_price,
    progress: Callable[[str], None] = lambda _label: None,
    remake: Callable[[FeatureGates], Setup] | None = None,
) -> ReplayComparison:
    """Replay a recording under each of the configurations.

    Args:
        records: the recording; it is iterated over once for each configuration, and once before.
        setups: the configurations.
        since: the window's begin, in seconds since 1970.
        until: the window's end.
        seed: of all random numbers.
        explained: how many of the pods that moved are explained under each configuration.
        fidelity: whether to compare each recorded decision with that of the first configuration, too.
        registry: of plugins.
        price_of: a node's hourly price, in billionths; by default that in the annotation `kschedfw/price`.
        progress: called with what is replayed next.
        remake: returns the configuration with other gates, if the configurations are versions of one; then the changes
            are found by which pods are placed otherwise, in some more replays.

    Raises:
        RecordingError: the recording is damaged, or nothing of it is in the window.
        StandstillError: pods were tried without end in one moment.
        ProfileError, PluginError, ExtensionError: a configuration can't run.
    """
    history = History(records, since, until)
    survey = Survey()
    progress("what happened")
    with contextlib.ExitStack() as open_until_read:
        judge: Fidelity | None = None
        if fidelity:
            judge = open_until_read.enter_context(contextlib.closing(Fidelity(setups[0], registry)))
        for happening in history:
            survey.take(happening)
            if judge is not None:
                judge.take(happening)
        # Before it is closed: it decides on the last half second only now, and its state must still change meanwhile.
        fidelity_report = None if judge is None else judge.report()
    if not survey.has_begun:
        raise RecordingError("no object was recorded in that time")
    runs: list[Replayed] = []
    typical = survey.typical.requests
    # What pods request is known only now, so the room that there really was is followed with the first replay.
    recorded_room = Room(history.begins, typical, price_of)
    for setup in setups:
        progress(setup.label)
        replay = Replay(
            setup,
            history,
            survey.fates,
            seed=seed,
            explained=explained,
            registry=registry,
            make_room=lambda begins: Room(begins, typical, price_of),
            # Each replay reads the same history, so following one is enough.
            observe=_ignore if runs else lambda each: recorded_room.take(each.at, each.old, each.new),
            keeps_nodes=remake is not None,
        )
        runs.append(replay.run())

    def once_more(setup: Setup) -> Replayed:
        progress("the changes between versions")
        return Replay(
            setup, history, survey.fates, seed=seed, explained=0, registry=registry, keeps_nodes=True
        ).run()

    return ReplayComparison(
        begins=history.begins,
        ends=history.ends,
        pods=len(survey.fates),
        gaps=history.gaps,
        left_out=dict(history.left_out),
        recorded=survey.measures(history.ends).with_room(recorded_room, history.ends),
        runs=tuple(runs),
        fidelity=fidelity_report,
        upgrades=() if remake is None else upgrades(setups, runs, remake, once_more),
    )


def _ignore(_happening: Happening) -> None:
    """Do nothing."""


def _measures_json(measures: Measures) -> dict[str, Any]:
    return {
        "bound": measures.bound,
        "pending": measures.pending,
        "waits": attrs.asdict(measures.waits),
        "waitsByClass": {name: attrs.asdict(waits) for name, waits in measures.waits_by_class.items()},
        "utilisation": dict(measures.utilisation),
        "preemptions": measures.preemptions,
        "victims": measures.victims,
        "evictions": measures.evictions,
        "fragmentation": dict(measures.fragmentation),
        "nodeHours": measures.node_hours,
        "cost": measures.cost,
        "costOfAllNodes": measures.cost_of_all,
    }


def _run_json(run: Replayed) -> dict[str, Any]:
    return {
        "label": run.label,
        **_measures_json(run.measures),
        "same": run.same,
        "moved": run.moved,
        "gained": run.gained,
        "lost": run.lost,
        "why": dict(run.why.most_common()),
        "examples": [attrs.asdict(each) for each in run.examples],
    }


def _fidelity_json(report: FidelityReport) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for (agreement, cause), count in report.counts.items():
        counts[agreement] += count
        if cause is not None:
            causes[cause] += count
    return {
        "decisions": report.decisions,
        "agreeing": report.agreeing,
        "counts": counts,
        "causes": causes,
        "examples": [each.to_json() for each in report.examples],
    }
