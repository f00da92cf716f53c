"""Counts the steps in which a backtracking matcher, such as Python's, runs a regular expression.

The module `re` doesn't say how many steps it took, and a measured time says more of the machine than of the pattern.
So patterns are run here once more: Python's own parser reads them, and the matcher below tries the alternatives in
Python's order. Python's matcher takes shortcuts (a literal prefix, a run of one character class), but visits no
more positions than this one, so what is linear here is linear there.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import attrs

_PARSER: Any = importlib.import_module("re._parser")  # it has no public name
_COMPILER: Any = importlib.import_module("re._compiler")

_SINGLE = frozenset(("LITERAL", "NOT_LITERAL", "IN", "ANY", "AT"))
_ONCE_OR_LATER = frozenset(("match", "fullmatch", "search"))  # the other methods look for all matches

Span = tuple[int, int]


class TooManySteps(Exception):
    """The matcher was stopped at its limit of steps."""


@attrs.frozen
class Single:
    """Go on behind one character of a class, or stay at a place such as the end of a line."""

    test: Callable[[str, int], re.Match[str] | None]


@attrs.frozen
class Fork:
    """Go on at the first instruction (relative to this one), and at the second if that fails."""

    first: int
    second: int


@attrs.frozen
class Atom:
    """Match a program of its own, which isn't tried in another way later."""

    program: Program


@attrs.frozen
class Look:
    """Match a program of its own that begins so many characters earlier, and stay."""

    program: Program
    back: int
    expected: bool


@attrs.frozen
class Jump:
    """Go on at another instruction, relative to this one."""

    to: int


Program = list[Single | Fork | Jump | Atom | Look]


class StepCounter:
    """A pattern that is matched in counted steps; `limit` stops those that would take for ever."""

    def __init__(self, pattern: re.Pattern[str], limit: int) -> None:
        parsed = _PARSER.parse(pattern.pattern, pattern.flags)
        self._state = parsed.state
        self._program = self._translated(parsed)
        self._limit = limit
        self.steps = 0

    def spans(self, method: str, text: str) -> list[Span]:
        """Begin and end of each match that the method of `re.Pattern` finds."""
        if method in _ONCE_OR_LATER:
            starts = range(len(text) + 1) if method == "search" else range(1)
            whole = method == "fullmatch"
            ends = ((start, self._end(self._program, text, start, whole)) for start in starts)
            return next(([(start, end)] for start, end in ends if end is not None), [])
        return list(self._all(text))

    def _all(self, text: str) -> Iterator[Span]:
        start, empty_at = 0, -1
        while start <= len(text):
            end = self._end(self._program, text, start, False, not_at=empty_at)
            if end is None:
                start += 1
            else:
                yield start, end
                start, empty_at = end, end  # no empty match follows at the end of another

    def _end(
        self, program: Program, text: str, start: int, whole: bool = False, not_at: int = -1
    ) -> int | None:
        """Where the first match from `start` ends; with `whole` only at the text's end, never empty at `not_at`."""
        untried = [(0, start)]
        while untried:
            at, position = untried.pop()
            while True:
                self.steps += 1
                if self.steps > self._limit:
                    raise TooManySteps
                if at == len(program):
                    if (whole and position < len(text)) or position == start == not_at:
                        break
                    return position
                match program[at]:
                    case Single(test):
                        found = test(text, position)
                        if found is None:
                            break
                        at, position = at + 1, found.end()
                    case Fork(first, second):
                        untried.append((at + second, position))
                        at += first
                    case Jump(to):
                        at += to
                    case Atom(inner):
                        end = self._end(inner, text, position)
                        if end is None:
                            break
                        at, position = at + 1, end
                    case Look(inner, back, expected):
                        begin = position - back
                        if (begin >= 0 and self._end(inner, text, begin) is not None) is not expected:
                            break
                        at += 1
        return None

    def _translated(self, parsed: Any) -> Program:
        program: Program = []
        for operation, argument in parsed:
            program += self._instructions(str(operation), operation, argument)
        return program

    def _instructions(self, name: str, operation: object, argument: Any) -> Program:
        if name in _SINGLE:
            one = _PARSER.SubPattern(self._state, [(operation, argument)])
            return [Single(_COMPILER.compile(one, self._state.flags).match)]
        if name == "SUBPATTERN":
            _, added, removed, inner = argument
            before = self._state.flags
            self._state.flags = (before | added) & ~removed
            try:
                return self._translated(inner)
            finally:
                self._state.flags = before
        if name == "BRANCH":
            return self._one_of([self._translated(each) for each in argument[1]])
        if name in {"ASSERT", "ASSERT_NOT"}:
            direction, inner = argument
            back = inner.getwidth()[0] if direction < 0 else 0
            return [Look(self._translated(inner), back, name == "ASSERT")]
        if name.endswith("_REPEAT"):
            repeated = self._repeated(*argument, lazy=name == "MIN_REPEAT")
            return [Atom(repeated)] if name == "POSSESSIVE_REPEAT" else repeated
        raise NotImplementedError(f"the steps of {name} aren't counted")

    @staticmethod
    def _one_of(alternatives: list[Program]) -> Program:
        *others, program = alternatives
        for each in reversed(others):
            program = [Fork(1, len(each) + 2), *each, Jump(len(program) + 1), *program]
        return program

    def _repeated(self, least: int, most: Any, inner: Any, *, lazy: bool) -> Program:
        def fork(into: int, past: int) -> Fork:
            return Fork(past, into) if lazy else Fork(into, past)

        once = self._translated(inner)
        program = once * least
        if most is not _PARSER.MAXREPEAT:
            size = len(once) + 1
            left = int(most) - least
            for done in range(left):
                program = [*program, fork(1, (left - done) * size), *once]
            return program
        if inner.getwidth()[0] == 0:
            raise NotImplementedError("the steps of a repetition of what may be empty aren't counted")
        return [*program, fork(1, len(once) + 2), *once, Jump(-len(once) - 1)]
