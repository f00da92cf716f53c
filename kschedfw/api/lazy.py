"""Import the modules of a package's names when a name is first used, as SPEC 1 of Scientific Python describes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are in `__init__.pyi` beside `file`.

        __getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

    In the stub each name is a line `from .module import name as name`, which makes it public for type checkers. All
    other lines are for type checkers alone.
    """
    # lazy_loader parses stubs as Python code, which took 2 % of the instructions of `kschedfw explain` on five nodes.
    lines = Path(file).with_name("__init__.pyi").read_text(encoding="utf-8").splitlines()
    imports = (line.split() for line in lines if line.startswith("from ."))
    homes = {name: f"{package}{module}" for _, module, _, name, *_ in imports}

    def attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        # The next use needs no function call, and a module of the same name doesn't hide the value.
        setattr(sys.modules[package], name, value)
        return value

    return attribute, lambda: sorted(homes), sorted(homes)
