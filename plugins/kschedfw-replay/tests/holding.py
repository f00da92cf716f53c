"""What an object holds, for tests of memory that doesn't grow."""

from __future__ import annotations

import gc
from types import BuiltinFunctionType, FunctionType, ModuleType

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)
"""What leads to the whole program, and is there once."""


def held(holder: object) -> int:
    """The number of objects that `holder` keeps alive, without functions, classes and what only these keep."""
    found: dict[int, object] = {}
    ahead = [holder]
    while ahead:
        obj = ahead.pop()
        if id(obj) not in found and not isinstance(obj, _SHARED):
            found[id(obj)] = obj
            ahead += gc.get_referents(obj)
    return len(found)
