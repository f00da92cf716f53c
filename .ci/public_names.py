"""Checks that distributions import nothing of kschedfw but public names, as `make lint` does.

Public are the names in `__all__` of the packages that docs/reference.md lists. A module inside them is private, even
where its name has no underscore. Tests of a distribution may import more: they look at what a user can't.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

_REFERENCE = (REPOSITORY / "docs" / "reference.md").read_text(encoding="utf-8")
PUBLIC = frozenset(re.findall(r"\| `(kschedfw[\w.]*)` \|", _REFERENCE))


def problems(path: Path) -> Iterator[str]:
    """Yield a line for each import of a name that isn't public."""
    file = path.relative_to(REPOSITORY)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        where = f"{file}:{node.lineno}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "kschedfw" and alias.name not in PUBLIC:
                    yield f"{where}: import {alias.name}: not public"
        elif (node.module or "").partition(".")[0] == "kschedfw":
            assert node.module is not None
            if node.module not in PUBLIC:
                yield f"{where}: from {node.module} import …: the module isn't public"
                continue
            names = importlib.import_module(node.module).__all__
            for alias in node.names:
                if alias.name not in names and f"{node.module}.{alias.name}" not in PUBLIC:
                    yield f"{where}: from {node.module} import {alias.name}: not public"


def main() -> None:
    sources = sorted(REPOSITORY.glob("plugins/*/src/**/*.py"))
    found = [problem for path in sources for problem in problems(path)]
    print(*found, f"public names: {len(sources)} files of distributions, {len(found)} problems", sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
