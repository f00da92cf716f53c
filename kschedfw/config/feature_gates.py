"""Feature gates: switches with a stage and a default, which installed distributions declare."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.extensions import Extensions
from kschedfw.api.field_errors import FieldError
from kschedfw.api.frozendict import EMPTY, FrozenDict


class Stage(StrEnum):
    """The stage of a feature."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"
    DEPRECATED = "deprecated"


@attrs.frozen
class FeatureGate:
    """A feature gate; `effect` says what it does while it is on.

    An entry point of the group `kschedfw.feature_gates` has the gate's name and refers to a FeatureGate. `instead` says
    what to write in a KubeSchedulerConfiguration, which has no gates.
    """

    stage: Stage
    default: bool
    effect: str
    instead: str = ""


FEATURE_GATES: Final = Extensions("kschedfw.feature_gates", "feature gate", FeatureGate)
"""The known gates, by name."""

_ABSENT: Mapping[str, str] = {
    "BalanceAttachedNodeVolumes": "kube-scheduler had it, alpha and off, from v1.11 on; here "
    "NodeResourcesBalancedAllocation never counts volumes",
}
"""Hints on gates that users may expect here."""


class FeatureGateError(KschedfwError, ValueError):
    """Gates are unknown, or values are neither true nor false; names all of them."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))


def _known(given: Mapping[str, bool]) -> FrozenDict[str, bool]:
    errors = []
    known = FEATURE_GATES.names()
    for name, value in given.items():
        if name not in known:
            errors.append(FieldError(f"featureGates.{name}", f"unrecognized feature gate; {_hint(name)}"))
        elif not isinstance(value, bool):
            errors.append(FieldError.invalid(f"featureGates.{name}", value, "must be true or false"))
    if errors:
        raise FeatureGateError(tuple(errors))
    return FrozenDict(given)


@attrs.frozen
class FeatureGates:
    """Which gates are on: the values in `given`, and the defaults of all others.

    Raises:
        FeatureGateError: a gate isn't known, or a value is neither true nor false.
    """

    given: FrozenDict[str, bool] = attrs.field(default=EMPTY, converter=_known)

    @classmethod
    def parse(cls, text: str) -> FeatureGates:
        """Read `EvenPodsSpread=false,ResourceLimitsPriorityFunction=true`, as on kube-scheduler's command line."""
        given: dict[str, bool] = {}
        errors: list[FieldError] = []
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = (part.strip() for part in pair.partition("="))
            if value in BOOLEANS:
                given[name] = BOOLEANS[value]
            else:
                errors.append(FieldError.invalid(f"featureGates.{name}", value, "must be true or false"))
        try:
            gates = cls(given)
        except FeatureGateError as error:
            errors += error.errors
        if errors:
            raise FeatureGateError(tuple(errors))
        return gates

    def enabled(self, name: str) -> bool:
        return self.given[name] if name in self.given else FEATURE_GATES.load(name).default


# the values of Go's strconv.ParseBool
BOOLEANS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}

DEFAULT_GATES = FeatureGates()


def _hint(name: str) -> str:
    if name in _ABSENT:
        return _ABSENT[name]
    known = FEATURE_GATES.names()
    similar = get_close_matches(name, known, n=1)
    return f"did you mean {similar[0]!r}?" if similar else f"known are: {', '.join(known) or 'none'}"
