"""The error of checks."""

from __future__ import annotations

from typing import NoReturn


class ContractViolation(AssertionError):
    """A plugin violates the contract; the text says what is wrong, and how to correct it."""

    def __init__(self, wrong: str, remedy: str) -> None:
        super().__init__(f"{wrong}\n  → {remedy}")
        self.wrong = wrong
        self.remedy = remedy


def violated(wrong: str, remedy: str, cause: BaseException | None = None) -> NoReturn:
    __tracebackhide__ = True
    raise ContractViolation(wrong, remedy) from cause
