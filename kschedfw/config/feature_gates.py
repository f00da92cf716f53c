"""Feature gates that change the plugins of a Policy or algorithm provider; each has a stage and a default.

Only gates that change something in kschedfw are here. The defaults are those of kube-scheduler v1.20, the last version
with algorithm providers. A gate that was locked or removed by then can still be set here, to get an older version's
behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum

import attrs

from kschedfw.api.errors import KschedfwError
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
    """A feature gate; `effect` says what it does while it is on."""

    name: str
    stage: Stage
    default: bool
    effect: str


EVEN_PODS_SPREAD = "EvenPodsSpread"
DEFAULT_POD_TOPOLOGY_SPREAD = "DefaultPodTopologySpread"
RESOURCE_LIMITS = "ResourceLimitsPriorityFunction"
TAINT_NODES_BY_CONDITION = "TaintNodesByCondition"
DISABLE_PREEMPTION = "DisablePreemption"

FEATURE_GATES: Mapping[str, FeatureGate] = {
    gate.name: gate
    for gate in (
        FeatureGate(
            DEFAULT_POD_TOPOLOGY_SPREAD,
            Stage.BETA,
            True,
            "PodTopologySpread with its system defaults replaces SelectorSpread; "
            "without the gate SelectorSpread is enabled",
        ),
        FeatureGate(
            DISABLE_PREEMPTION,
            Stage.DEPRECATED,
            False,
            "DefaultPreemption is disabled, as by the field disablePreemption until v1.18",
        ),
        FeatureGate(
            EVEN_PODS_SPREAD,
            Stage.GA,
            True,
            "PodTopologySpread is enabled by default and has the names EvenPodsSpread and EvenPodsSpreadPriority",
        ),
        FeatureGate(
            RESOURCE_LIMITS,
            Stage.ALPHA,
            False,
            "ResourceLimits is enabled by default with weight 1 and has the name ResourceLimitsPriority",
        ),
        FeatureGate(
            TAINT_NODES_BY_CONDITION,
            Stage.GA,
            True,
            "a node's conditions are represented by taints; "
            "without the gate the CheckNode… plugins check its conditions",
        ),
    )
}


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
    for name, value in given.items():
        if name not in FEATURE_GATES:
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
        return self.given.get(name, FEATURE_GATES[name].default)


# the values of Go's strconv.ParseBool
BOOLEANS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}

DEFAULT_GATES = FeatureGates()


def _hint(name: str) -> str:
    if name in _ABSENT:
        return _ABSENT[name]
    similar = get_close_matches(name, FEATURE_GATES, n=1)
    return f"did you mean {similar[0]!r}?" if similar else f"known are: {', '.join(FEATURE_GATES)}"
