"""Tests joined by `and`, `or`, `not` and parentheses: the common grammar of conditions and constraints.

    expression  = conjunction {"or" conjunction}
    conjunction = test {"and" test}
    test        = "not" test | "(" expression ")" | leaf

Each of the two languages defines its own leaves.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

import attrs

LONGEST: Final = 500
"""The greatest length of an expression, in characters."""
DEEPEST: Final = 20
"""The deepest nesting of parentheses and `not`."""

WORDS: Final = ("and", "or", "not")

LeafT = TypeVar("LeafT")
LeafT_co = TypeVar("LeafT_co", covariant=True)


class Expression(Protocol[LeafT_co]):
    """Leaves with the operators that join them."""

    @property
    def leaves(self) -> Iterator[LeafT_co]: ...

    def holds(self, is_true: Callable[[LeafT_co], bool]) -> bool:
        """Return whether the expression is true, given a function that tests a leaf."""
        ...


@attrs.frozen
class Single(Generic[LeafT]):
    """One leaf."""

    leaf: LeafT

    @property
    def leaves(self) -> Iterator[LeafT]:
        yield self.leaf

    def holds(self, is_true: Callable[[LeafT], bool]) -> bool:
        return is_true(self.leaf)


@attrs.frozen
class Joined(Generic[LeafT]):
    """Tests of which all, or at least one, must be true."""

    tests: tuple[Expression[LeafT], ...]
    all: bool

    @property
    def leaves(self) -> Iterator[LeafT]:
        for test in self.tests:
            yield from test.leaves

    def holds(self, is_true: Callable[[LeafT], bool]) -> bool:
        held = (test.holds(is_true) for test in self.tests)
        return all(held) if self.all else any(held)


@attrs.frozen
class Negated(Generic[LeafT]):
    """A test that must be false."""

    test: Expression[LeafT]

    @property
    def leaves(self) -> Iterator[LeafT]:
        return self.test.leaves

    def holds(self, is_true: Callable[[LeafT], bool]) -> bool:
        return not self.test.holds(is_true)


class Parser(ABC, Generic[LeafT]):
    """Parses one text, token by token, from left to right.

    `token` matches one token. White space between tokens is ignored.
    """

    token: re.Pattern[str]

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0

    @abstractmethod
    def leaf(self) -> LeafT:
        """Parse a leaf."""

    @abstractmethod
    def error(self, why: str) -> Exception:
        """Return the error for an invalid text."""

    def whole(self) -> Expression[LeafT]:
        """Parse the whole text."""
        test = self._expression()
        if self.peek():
            raise self.error(f"{self.peek()!r} is one too many")
        return test

    def peek(self) -> str:
        """Return the next token; empty at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def pop(self) -> str:
        token = self.peek()
        self._next += 1
        return token

    def take(self, token: str) -> bool:
        """Consume the next token if it equals `token`. Return whether it did."""
        if self.peek() != token:
            return False
        self._next += 1
        return True

    def _split(self) -> Iterator[str]:
        position, end = 0, len(self.text.rstrip())
        while position < end:
            if self.text[position].isspace():
                position += 1
                continue
            match = self.token.match(self.text, position)
            if match is None:
                raise self.error(f"{self.text[position:].split()[0]!r} is not understood")
            yield match[match.lastgroup or 0]
            position = match.end()

    def _expression(self) -> Expression[LeafT]:
        return self._joined("or", lambda: self._joined("and", self._test))

    def _joined(self, word: str, read: Callable[[], Expression[LeafT]]) -> Expression[LeafT]:
        tests = [read()]
        while self.take(word):
            tests.append(read())
        return tests[0] if len(tests) == 1 else Joined(tuple(tests), all=word == "and")

    def _test(self) -> Expression[LeafT]:
        # Counted, so that no text exhausts the stack.
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.error(f"it is nested more than {DEEPEST} levels deep")
        try:
            if self.take("not"):
                return Negated(self._test())
            if self.take("("):
                test = self._expression()
                if not self.take(")"):
                    raise self.error("a closing parenthesis is missing")
                return test
            return Single(self.leaf())
        finally:
            self._depth -= 1
