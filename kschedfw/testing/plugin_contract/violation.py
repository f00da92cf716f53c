"""How a check says what is wrong."""

from __future__ import annotations

from typing import NoReturn


class ContractViolation(AssertionError):
    """A plugin doesn't keep to the contract; the text says what is wrong, and then what to do about it."""

    def __init__(self, wrong: str, remedy: str) -> None:
        super().__init__(f"{wrong}\n  → {remedy}")
        self.wrong = wrong
        self.remedy = remedy


def violated(wrong: str, remedy: str, cause: BaseException | None = None) -> NoReturn:
    __tracebackhide__ = True
    raise ContractViolation(wrong, remedy) from cause
