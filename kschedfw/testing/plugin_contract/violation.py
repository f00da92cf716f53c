"""The error of checks."""

from __future__ import annotations

from typing import NoReturn


class ContractViolation(AssertionError):
    """The error of a plugin that violates the contract; says what is wrong, and how to correct it."""

    def __init__(self, wrong: str, remedy: str) -> None:
        super().__init__(f"{wrong}\n  → {remedy}")
        self.wrong = wrong
        self.remedy = remedy


def violated(wrong: str, remedy: str, cause: BaseException | None = None) -> NoReturn:
    __tracebackhide__ = True
    raise ContractViolation(wrong, remedy) from cause
