"""Runs the score hooks of a profile over the feasible nodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.handle import Handle
from kschedfw.framework.hooks import Hook
from kschedfw.framework.measuring import Hooks, Meter
from kschedfw.framework.metrics import Operation
from kschedfw.framework.node_filter import checked
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE, IntArray
from kschedfw.framework.scores import NodeScores, PluginScores
from kschedfw.framework.status import PluginFailure, Status

MIN_INT64, MAX_INT64 = -(1 << 63), (1 << 63) - 1


class ScoreHooks:
    """pre_score, score (or its batch form), normalize_score, range check and weights."""

    def __init__(self, hooks: Hooks, profile: Profile, handle: Handle, meter: Meter | None = None) -> None:
        self._pre_score = hooks["pre_score"]
        self._scores = hooks["score"]
        self._batch = dict(hooks["score_batch"])
        self._normalize = dict(hooks["normalize_score"])
        self._weights = {name: profile.weight(name) for name, _ in hooks["score"]}
        if sum(self._weights.values()) * MAX_NODE_SCORE > np.iinfo(np.int64).max:
            raise ProfileError(
                f"profile {profile.scheduler_name!r}: total score of Score plugins could overflow"
            )
        self._handle = handle
        self._meter = meter

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        skipped: set[str] = set()
        try:
            for name, hook in self._pre_score:
                try:
                    status = checked(hook(state, pod, nodes), name, "pre_score")
                except Exception as error:
                    status = Status.from_error(error)
                if status.is_skip:
                    skipped.add(name)
                elif not status.is_success:
                    return status.prefixed(f'running PreScore plugin "{name}"', name)
            return Status.success()
        finally:
            state.skip_score_plugins = frozenset(skipped)

    def score(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        active = [(name, hook) for name, hook in self._scores if name not in state.skip_score_plugins]
        try:
            raw = self._raw(active, state, pod, nodes)
        except _ScoreError as error:
            return None, error.status("running Score plugins")
        try:
            normalized = {name: self._normalized(name, state, pod, nodes, raw[name]) for name, _ in active}
        except _ScoreError as error:
            return None, error.status("running Normalize on Score plugins")
        try:
            for name, scores in normalized.items():
                _check_range(name, scores)
        except _ScoreError as error:
            return None, error.status("applying score defaultWeights on Score plugins")
        by_plugin = {
            name: PluginScores(self._weights[name], raw[name], normalized[name]) for name, _ in active
        }
        return NodeScores(tuple(info.name for info in nodes), by_plugin), Status.success()

    def _raw(
        self, active: Sequence[tuple[str, Hook]], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> dict[str, IntArray]:
        raw = self._raw_by_batch([name for name, _ in active], state, pod, nodes)
        scalar = [(name, hook) for name, hook in active if name not in raw]

        def score_node(index: int) -> list[int]:
            info = nodes[index]
            return [_called(name, hook, state, pod, info) for name, hook in scalar]

        if scalar:
            parallelizer, count, meter = self._handle.parallelizer, len(nodes), self._meter
            with nullcontext() if meter is None else meter.working(Operation.SCORE, parallelizer, count):
                rows = parallelizer.map(count, score_node)
            columns = np.array(rows, dtype=np.int64).reshape(len(nodes), len(scalar))
            raw.update({name: columns[:, column].copy() for column, (name, _) in enumerate(scalar)})
        return raw

    def _raw_by_batch(
        self, names: Sequence[str], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> dict[str, IntArray]:
        batched = [name for name in names if name in self._batch]
        if not batched or not nodes:
            return {}
        table = self._handle.snapshot.table
        rows = np.array([table.rows[info.name] for info in nodes], dtype=np.int64)
        order = np.argsort(rows)
        raw = {}
        for name in batched:
            try:
                answer = self._batch[name](state, pod, table, rows[order])
            except Exception as error:
                raise _ScoreError(name, error) from error
            if answer is not None:
                scores = np.empty(len(rows), dtype=np.int64)
                scores[order] = _integers(name, answer, len(rows))
                raw[name] = scores
        return raw

    def _normalized(
        self, name: str, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], raw: IntArray
    ) -> IntArray:
        hook = self._normalize.get(name)
        if hook is None:
            return raw
        scores = raw.copy()
        try:
            answer = hook(state, pod, nodes, scores)
        except Exception as error:
            raise _ScoreError(name, error) from error
        if answer is None:
            return scores
        if isinstance(answer, Status):
            if not answer.is_success:
                raise _ScoreError(name, answer.as_error())
            return scores
        return _integers(name, answer, len(nodes))


class _ScoreError(Exception):
    def __init__(self, plugin: str, cause: BaseException, prefix: str = "") -> None:
        super().__init__(plugin, cause)
        self.plugin = plugin
        self.cause = cause
        self.text = prefix or f'plugin "{plugin}" failed with: {cause}'

    def status(self, doing: str) -> Status:
        failure = PluginFailure(f"{doing}: {self.text}")
        failure.__cause__ = self.cause
        return Status.from_error(failure).with_plugin(self.plugin)


def _called(name: str, hook: Hook, state: CycleState, pod: Pod, info: NodeInfo) -> int:
    try:
        score = hook(state, pod, info)
    except Exception as error:
        raise _ScoreError(name, error) from error
    if isinstance(score, np.integer):
        score = int(score)
    if type(score) is int:
        if MIN_INT64 <= score <= MAX_INT64:
            return score
        raise _ScoreError(name, PluginFailure(f"score must fit int64, and {score} doesn't"))
    if isinstance(score, Status):
        raise _ScoreError(name, score.as_error())
    raise _ScoreError(name, PluginFailure(f"score must return an int, not {score!r}"))


def _integers(name: str, answer: object, count: int) -> IntArray:
    expected = f"scores must be int64 of shape ({count},), not"
    try:
        array = np.asarray(answer)
    except ValueError:
        raise _ScoreError(name, PluginFailure(f"{expected} {answer!r}")) from None
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64) or array.shape != (count,):
        raise _ScoreError(name, PluginFailure(f"{expected} {array.dtype} of shape {array.shape}"))
    return array.astype(np.int64, copy=False)


def _check_range(name: str, scores: IntArray) -> None:
    outside = (scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)
    if outside.any():
        text = (
            f'plugin "{name}" returns an invalid score {scores[outside][0]}, it should in the range of '
            f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
        )
        raise _ScoreError(name, PluginFailure(text), text)
