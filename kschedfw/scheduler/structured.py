"""Log messages with named values, which a formatter may keep apart from the text."""

from __future__ import annotations

import json
from typing import Final


class Structured:
    """A constant text and named values; as text, `"Bound a pod" pod="default/a" node="n1"`, as klog writes it.

    Pass it to a logger as the message. Its text is made only if a handler formats it.
    """

    __slots__ = ("message", "values")

    def __init__(self, message: str, /, **values: object) -> None:
        self.message = message
        self.values = values

    def __str__(self) -> str:
        named = "".join(f" {name}={_shown(value)}" for name, value in self.values.items())
        return f"{_shown(self.message)}{named}"


_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode


def _shown(value: object) -> str:
    return _encoded(value if isinstance(value, int | float) or value is None else str(value))
