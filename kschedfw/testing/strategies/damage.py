"""JSON data with a few values damaged, as in files that come from anywhere."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

RUBBISH: Final[tuple[Any, ...]] = (
    None,
    True,
    "",
    "x",
    0,
    -1,
    0.5,
    1e300,
    (1 << 31) - 1,
    (1 << 63) - 1,
    1 << 63,
    1 << 64,
    10**400,
    -(10**400),
    # Halves of surrogate pairs can't be written as UTF-8.
    "\ud800",
    "\x1b[31m\n",
    "9" * 400,
    "-1",
    "1e400",
    "nan",
    "inf",
    str((1 << 63) - 2),
    str(1 << 63),
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59Z",
    "1970-01-01T00:00:00Z",
    # A time without a zone.
    "2026-01-31T12:00:00",
    "a" * 70_000,
    [],
    {},
    ["x"],
    {"a": [{}]},
    [None],
)
"""Values of other types, at the ends of ranges and beyond them, and texts that look like something else."""

_NAMES: Final = ("", "kind", "items", "status", "\ud800")


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """Draw a copy of JSON data in which one to three values are replaced, removed or have another name."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(value))
        if not places:
            break
        container, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(("replace", "replace", "remove", "rename"))):
            case "remove" if isinstance(container, dict):
                del container[key]
            case "rename" if isinstance(container, dict):
                container[draw(st.sampled_from(_NAMES))] = container.pop(key)
            case _:
                # A copy, since it may be damaged in turn.
                container[key] = copy.deepcopy(draw(st.sampled_from(RUBBISH)))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys or indices."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
