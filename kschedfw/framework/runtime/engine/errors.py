"""The failures of filters and scores: where nodes have to be asked about in order, and what is said of the plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE
from kschedfw.framework.status import PluginFailure, Status, text_of

SCORING: Final = "running Score plugins"
NORMALIZING: Final = "running Normalize on Score plugins"
WEIGHING: Final = "applying score defaultWeights on Score plugins"

_RANGE: Final = range(MIN_NODE_SCORE, MAX_NODE_SCORE + 1)


class NotTogetherError(Exception):
    """The exception for an answer that can't be combined for all nodes. Nodes have to be asked about in order.

    If a batch form failed, `plugin` names its plugin, and `failure` is the exception.
    """

    def __init__(self, plugin: str = "", failure: BaseException | None = None) -> None:
        super().__init__(plugin, failure)
        self.plugin = plugin
        self.failure = failure

    @property
    def failures(self) -> Mapping[str, BaseException]:
        return {} if self.failure is None else {self.plugin: self.failure}


class ScoreError(Exception):
    """The failure of a score plugin in a step of scoring (`doing`); the framework makes a status of it."""

    def __init__(self, plugin: str, cause: BaseException, doing: str = SCORING, text: str = "") -> None:
        super().__init__(plugin, cause)
        self.plugin = plugin
        self.cause = cause
        text = text or f'plugin "{plugin}" failed with: {text_of(cause)}'
        self.text = f"{doing}: {text}"

    @property
    def status(self) -> Status:
        failure = PluginFailure(self.text)
        failure.__cause__ = self.cause
        return Status.from_error(failure).with_plugin(self.plugin)


def check_range(name: str, scores: IntArray) -> None:
    """Raise ScoreError unless all scores are in 0–100."""
    # A negative score is a large unsigned number, so one argmax checks both bounds.
    if len(scores) and int(scores[scores.view(np.uint64).argmax()]) not in _RANGE:
        outside = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)]
        text = (
            f'plugin "{name}" returns an invalid score {outside[0]}, it should in the range of '
            f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
        )
        raise ScoreError(name, PluginFailure(text), WEIGHING, text)
