"""Calls of one plugin's hooks, with checks that the hookspecs allow the answers."""

from __future__ import annotations

import numpy as np

from kschedfw import Code, Framework, PostFilterResult, PreFilterResult, Status, Verdicts
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.testing.plugin_contract.subject import violated

_SUCCESS = Status.success()


class Asker:
    """The hooks of one plugin of a framework.

    An exception, or an answer that the hookspec doesn't allow, is a violation.
    """

    def __init__(self, framework: Framework, name: str) -> None:
        self.name = name
        self._hooks = framework.hooks_of(name)

    def has(self, hook: str) -> bool:
        return hook in self._hooks

    def answer(self, hook: str, *arguments: object) -> object:
        """Return the hook's answer; None if the plugin doesn't have the hook."""
        function = self._hooks.get(hook)
        if function is None:
            return None
        try:
            return function(*arguments)
        except Exception as error:
            violated(
                f"{self.name}.{hook} raised {type(error).__name__}: {error}",
                _REMEDY_FOR_RAISING.get(
                    hook,
                    "an exception is an ERROR: the pod is tried again and again, and its author learns nothing. Catch "
                    "what can happen, and answer with a Status whose reasons say it",
                ),
                error,
            )

    def status(self, hook: str, *arguments: object) -> Status:
        """Return the hook's answer, which must be a status or None."""
        return self._allowed(hook, self.answer(hook, *arguments))

    def pre_filter(self, *arguments: object) -> PreFilterResult | Status:
        answer = self.answer("pre_filter", *arguments)
        return answer if isinstance(answer, PreFilterResult) else self._allowed("pre_filter", answer)

    def post_filter(self, *arguments: object) -> tuple[PostFilterResult | None, Status]:
        match self.answer("post_filter", *arguments):
            case (None | PostFilterResult() as result, status):
                return result, self._allowed("post_filter", status)
            case other:
                violated(
                    f"{self.name}.post_filter returned {other!r}",
                    "return a pair: a PostFilterResult or None, and a Status or None",
                )

    def filter_batch(self, count: int, *arguments: object) -> None:
        """Check the form of the answer for this number of rows; another check compares it with the scalar form."""
        answer = self.answer("filter_batch", *arguments)
        if answer is None:
            return
        if not isinstance(answer, Verdicts):
            violated(
                f"{self.name}.filter_batch returned {answer!r}",
                "return Verdicts, or None to have `filter` asked",
            )
        codes = np.asarray(answer.codes)
        if codes.shape != (count,) or codes.dtype.kind not in "iu":
            violated(
                f"{self.name}.filter_batch returned codes of shape {codes.shape} and type {codes.dtype}",
                f"give one integer for each of the rows asked for: shape ({count},)",
            )
        if count and not 0 <= int(codes.min()) <= int(codes.max()) < len(answer.statuses):
            violated(
                f"{self.name}.filter_batch returned codes from {codes.min()} to {codes.max()} with "
                f"{len(answer.statuses)} statuses",
                "a code is 0 for a node that passes, or the place of its refusal in `statuses`",
            )
        for status in answer.statuses:
            self._allowed("filter", status)

    def score_batch(self, count: int, *arguments: object) -> None:
        answer = self.answer("score_batch", *arguments)
        if answer is None:
            return
        if not (isinstance(answer, np.ndarray) and answer.dtype == np.int64 and answer.shape == (count,)):
            violated(
                f"{self.name}.score_batch returned {answer!r}",
                f"return an array of int64 and shape ({count},), one score for each of the rows asked for, or None to "
                "have `score` asked",
            )

    def _allowed(self, hook: str, answer: object) -> Status:
        if answer is None:
            return _SUCCESS
        if not isinstance(answer, Status):
            also = ", a PreFilterResult" if hook == "pre_filter" else ""
            violated(
                f"{self.name}.{hook} returned {answer!r}",
                f"return None for success{also} or a Status; anything else is an ERROR",
            )
        if answer.code in (Code.SUCCESS, Code.ERROR):
            return answer
        allowed = HOOKS[hook].codes or frozenset()
        if answer.code not in allowed:
            codes = ", ".join(map(str, sorted(allowed))) or "nothing"
            violated(
                f"{self.name}.{hook} answered {answer.code} ({answer.message or 'without a reason'})",
                f"beside success and Error it may answer {codes}",
            )
        if answer.is_rejected and not any(answer.reasons):
            violated(
                f"{self.name}.{hook} answered {answer.code} without a reason",
                "give one: it is all that the pod's author reads. Reasons of `filter` begin with “node(s) …”, since "
                "they are counted over the nodes",
            )
        return answer


_REMEDY_FOR_RAISING = {
    "unreserve": (
        "it can't fail, and may be called twice, or without `reserve`: take out only what is there, for example "
        "with `dict.pop(key, None)`"
    ),
    "post_bind": "it can't fail: the pod is bound. The pod may be gone from the cluster by now",
    "queue_sort": "the queue relies on its answer, for any two pods",
    "score": "a score that can't be worked out is the lowest one, or the node is for `filter` to refuse",
}
