"""The factors of a sweep: the setting that each one changes, and its values."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from kschedfw.api.reading import json_name, shown
from kschedfw.config import KubeSchedulerConfiguration
from kschedfw.simulator import LONGEST, LONGEST_ATTEMPT, SHORTEST
from kschedfw_lab.expressions import Scalar
from kschedfw_lab.sweep.configurations import Configuration, PathChange, PluginChange, read_given
from kschedfw_lab.sweep.draws import Draw
from kschedfw_lab.sweep.errors import SweepError, inside, similar
from kschedfw_lab.sweep.inputs import ClusterSource, read_source
from kschedfw_lab.sweep.paths import steps_of
from kschedfw_lab.sweep.values import Choices, Range, Values, is_number, is_whole, read_values

CLUSTER: Final = "cluster"
CONFIGURATION: Final = "configuration"
SEED: Final = "seed"
PLUGINS: Final = "plugins."
OWN_COLUMNS: Final = frozenset(("run", "metric", "value", "error"))
"""The columns of results that aren't factors."""

_HEAVIEST: Final = (1 << 31) - 1  # kube-scheduler's weights have 32 bits.
_LARGEST_SEED: Final = (1 << 53) - 1  # JSON and spreadsheets keep integers up to this one exactly.
_MOST_OBJECTS: Final = 1_000_000
_NAME: Final = re.compile(r"[^\s\"',=#][^\"'\n\r]{0,499}")
_FIELDS: Final = frozenset(json_name(field) for field in attrs.fields(KubeSchedulerConfiguration))

Check: TypeAlias = Callable[[object], str]
"""Returns what would be right instead of the value; empty if the value is right."""


def _whole(low: int, high: int) -> Check:
    def check(value: object) -> str:
        fits = is_whole(value) and low <= value <= high
        return "" if fits else f"a whole number from {low} to {high}"

    return check


def _seconds(value: object) -> str:
    fits = is_number(value) and 0 <= value <= LONGEST_ATTEMPT
    return "" if fits else f"seconds from 0 to {LONGEST_ATTEMPT:g}"


def _positive(value: object) -> str:
    fits = value is None or (is_number(value) and SHORTEST <= value <= LONGEST)
    return "" if fits else f"a number from {SHORTEST:g} to {LONGEST:g}, or null"


def _switch(value: object) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _draw(value: object) -> str:
    return "" if value in (None, *Draw) else f"{', '.join(Draw)} or null"


def _weight(value: object) -> str:
    if value is None or isinstance(value, bool) or not _whole(0, _HEAVIEST)(value):
        return ""
    return f"a weight up to {_HEAVIEST}, 0 or false (disabled), true (enabled) or null (as it is)"


SETTINGS: Final[Mapping[str, Check]] = {
    SEED: _whole(0, _LARGEST_SEED),
    "nodes": _whole(1, _MOST_OBJECTS),
    "pods": _whole(1, _MOST_OBJECTS),
    "initialPods": _whole(0, _MOST_OBJECTS),
    "arrivals": _switch,
    "arrivalRate": _positive,
    "meanDuration": _positive,
    "ignoreOwnTimes": _switch,
    "attemptTime": _seconds,
    "draw": _draw,
}
"""Settings of a run besides its cluster and configuration, with the checks of their values."""


@attrs.frozen
class Factor:
    """A factor: its name, which is also its column, and its values.

    It changes a setting of the same name, or the document's value at `path`, or the weight of `plugin`.
    """

    name: str
    values: Values
    path: str = ""
    plugin: str = ""

    def change(self, value: object) -> PathChange | PluginChange | None:
        """Return the change that a value makes to the configuration's document; None if it makes none."""
        if self.path:
            return PathChange(self.path, value)
        if self.plugin:
            assert value is None or isinstance(value, int)  # `read_factor` has checked the value.
            return PluginChange(self.plugin, value)
        return None


def label_of(value: object) -> Scalar:
    """Return the value as it is written in the factor's column: numbers and texts unchanged, others as JSON."""
    if isinstance(value, (ClusterSource, Configuration)):
        return value.label
    if value is None or isinstance(value, (str, int, float)):
        return value
    return json.dumps(value, sort_keys=True)


def read_factor(name: object, given: object, folder: Path) -> Factor:
    """Return a factor of a specification. Paths of files are relative to the folder.

    Raises:
        SweepError: there is no such factor, or a value is wrong. The caller adds the factor's name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in OWN_COLUMNS:
        taken = f"; results have columns {', '.join(sorted(OWN_COLUMNS))} of their own"
        raise SweepError(f"can't be the name of a factor{taken if name in OWN_COLUMNS else ''}")
    if name == CLUSTER:
        return Factor(name, _read_each(given, lambda value: read_source(value, folder)))
    if name == CONFIGURATION:
        return Factor(name, _read_each(given, lambda value: read_given(value, folder)))
    if name in SETTINGS:
        return Factor(name, _checked(read_values(given), SETTINGS[name]))
    if name.startswith(PLUGINS):
        plugin = name.removeprefix(PLUGINS)
        values = _checked(read_values(given), _weight)
        if isinstance(values, Choices):
            # Both disable the plugin. With one spelling, equal runs have equal keys.
            values = Choices(tuple(0 if value is False else value for value in values.listed))
        return Factor(name, values, plugin=plugin)
    if isinstance(given, Mapping) and "path" in given:
        return _of_path(name, given)
    if name.partition(".")[0].partition("[")[0] in _FIELDS:
        steps_of(name)
        return Factor(name, _checked(read_values(given), _document_value), path=name)
    known = (CLUSTER, CONFIGURATION, *SETTINGS, f"{PLUGINS}NAME", *sorted(_FIELDS))
    own = "one with a name of your own has a path in the configuration, and values"
    raise SweepError(f"unknown factor ({own}); {similar(name, known)}")


def _of_path(name: str, given: Mapping[str, object]) -> Factor:
    for key in given:
        if key not in ("path", "values"):
            raise SweepError.at(str(key), f"unknown field; {similar(str(key), ('path', 'values'))}")
    path = given["path"]
    if not isinstance(path, str):
        raise SweepError.at("path", f"expected a text, found {shown(path)}")
    if "values" not in given:
        raise SweepError.at("values", "missing; give a list or a range")
    with inside("path"):
        steps_of(path)
    return Factor(name, _checked(read_values(given["values"]), _document_value), path=path)


def _document_value(value: object) -> str:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return "what a document can have"
    return ""


def _read_each(given: object, read: Callable[[object], object]) -> Choices:
    listed = given if isinstance(given, (list, tuple)) else [given]
    values = []
    for index, value in enumerate(listed):
        with inside(f"[{index}]" if len(listed) > 1 else ""):
            values.append(read(value))
    if not values:
        raise SweepError("the list is empty; give at least one value")
    label, count = Counter(map(label_of, values)).most_common(1)[0]
    if count > 1:
        raise SweepError(f"two values have the name {label!r}; give one of them another `name`")
    return Choices(tuple(values))


def _checked(values: Values, check: Check) -> Values:
    for index, value in enumerate(_ends(values)):
        if right := check(value):
            place = f"[{index}]" if isinstance(values, Choices) and len(values.listed) > 1 else ""
            raise SweepError.at(place, f"expected {right}, found {shown(value)}")
    return values


def _ends(values: Values) -> tuple[object, ...]:
    """Return the values; of a range, only its ends."""
    return (values.low, values.high) if isinstance(values, Range) else values.listed
