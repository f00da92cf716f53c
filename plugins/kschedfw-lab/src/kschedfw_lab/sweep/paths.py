"""Paths in a configuration document: `profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type`.

Brackets contain an index in a list, from 0; or the `name` or `schedulerName` of an item in a list; or a key of a map
that has characters other than letters, digits, `_` and `-`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kschedfw.api.reading import at
from kschedfw_lab.sweep.errors import SweepError

_STEP: Final = re.compile(r"(?:^|\.)(?P<key>[A-Za-z0-9_-]+)|\[(?P<item>[^\[\]]{1,253})\]")
_NAMES: Final = ("name", "schedulerName")
_LONGEST: Final = 500

Step = tuple[str, bool]
"""A key, and whether it was in brackets."""


def steps_of(path: str) -> Sequence[Step]:
    """Return the steps of a path.

    Raises:
        SweepError: the text is no path.
    """
    steps, position = [], 0
    while position < len(path) <= _LONGEST:
        match = _STEP.match(path, position)
        if match is None:
            break
        steps.append((match["key"] or match["item"], match["key"] is None))
        position = match.end()
    # The first step is a key, since a document is an object.
    if not steps or position < len(path) or steps[0][1]:
        raise SweepError(
            f"{path[:_LONGEST]!r} is no path; a path is like profiles[0].percentageOfNodesToScore"
        )
    return steps


def set_at(content: Any, path: str, value: object) -> None:
    """Set the value at the path, or delete it if the value is None. Missing objects and named items are created.

    Raises:
        SweepError: the document's content doesn't match the path.
    """
    steps, here, place = steps_of(path), content, ""
    for index, (key, is_item) in enumerate(steps):
        is_last = index == len(steps) - 1
        opens_list = not is_last and steps[index + 1][1]
        if isinstance(here, list):
            here = _in_list(here, key, is_item, place, value if is_last else _OPEN, opens_list)
        elif isinstance(here, dict):
            if is_last and value is None:
                here.pop(key, None)
            elif is_last:
                here[key] = value
            else:
                if here.get(key) is None:
                    here[key] = [] if opens_list else {}
                here = here[key]
        else:
            raise SweepError(
                f"{place} is {type(here).__name__} in the document, so {path} has no place in it"
            )
        place = at(place, int(key) if is_item and key.isdecimal() else key)


_OPEN: Final = object()
"""The value for a step that isn't the path's last one."""


def _in_list(here: list[Any], key: str, is_item: bool, place: str, value: object, opens_list: bool) -> Any:
    """Return the item of a list; at the path's last step, set it to the value or delete it."""
    if not is_item:
        raise SweepError(f"{place} is a list in the document; say which item: {place}[0] or {place}[NAME]")
    index = (
        int(key) if key.isdecimal() else next((i for i, each in enumerate(here) if _is_named(each, key)), -1)
    )
    if index > len(here):
        raise SweepError(
            f"{place} has {len(here)} items in the document, so {place}[{key}] has no place in it"
        )
    if value is None:
        if 0 <= index < len(here):
            del here[index]
        return None
    if index in (-1, len(here)):
        # Profiles are known by their scheduler's name, and all other items by their name.
        name = "schedulerName" if place == "profiles" else "name"
        here.append([] if opens_list and key.isdecimal() else {} if key.isdecimal() else {name: key})
        index = len(here) - 1
    if value is not _OPEN:
        here[index] = value
    return here[index]


def _is_named(item: object, name: str) -> bool:
    return isinstance(item, dict) and any(item.get(key) == name for key in _NAMES)
