"""The set of feature gates that are on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import attrs

from kschedfw.api import EMPTY, FrozenDict, KschedfwError
from kschedfw.api.records import define, frozen
from kschedfw.framework.gate_table import (
    DECLARED_GATES,
    FEATURE_GATES,
    FeatureGate,
    GateState,
)
from kschedfw.framework.versions import (
    REFERENCE,
    RULES,
    VERSIONS,
    Rule,
    VersionChange,
    is_since,
    version_number,
)

_RULES: Final = {rule.name: rule for rule in RULES}

_ABSENT: Final[Mapping[str, str]] = {
    "BalanceAttachedNodeVolumes": "kube-scheduler had it, alpha and off, from v1.11 on; here "
    "NodeResourcesBalancedAllocation never counts volumes",
}
"""Hints on gates that users may expect here."""


@define(eq=False)
class FeatureGateError(KschedfwError, ValueError):
    """The error of gates that can't be set. `problems` has all reasons, in kube-scheduler's words."""

    problems: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.problems)


def _values(values: Mapping[str, bool]) -> FrozenDict[str, bool]:
    return FrozenDict(values)


def _versions(mixed: Mapping[str, str]) -> FrozenDict[str, str]:
    return FrozenDict(mixed)


def _known_version(_gates: object, _field: object, version: str) -> None:
    if version not in VERSIONS:
        raise FeatureGateError((f"there are no defaults of version {version}; known: {', '.join(VERSIONS)}",))


@frozen
class FeatureGates:
    """The version of Kubernetes that is decided as: the values of all its gates, and its rules.

    A gate has the value in `given`, else the version's default. `mixed` has gates and rules that are as in another
    version, by name: single changes of an upgrade are judged with it (see `with_changes`).

    Raises:
        FeatureGateError: a gate is unknown or locked, its other value isn't implemented here, its value is no
            boolean, it is on without a gate that it needs, or the version is unknown.
    """

    given: FrozenDict[str, bool] = attrs.field(default=EMPTY, converter=_values)
    version: str = attrs.field(default=REFERENCE, validator=_known_version)
    mixed: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=_versions)

    def __attrs_post_init__(self) -> None:
        problems = [each for name, value in self.given.items() for each in self._problems(name, value)]
        # No version has such a mixture, so it may have a gate on without one that it needs.
        if problems or (not self.mixed and (problems := list(self._unmet()))):
            raise FeatureGateError(tuple(problems))

    @classmethod
    def of(cls, *names: str) -> FeatureGates:
        """Return the defaults, with these gates on."""
        return cls(dict.fromkeys(names, True))

    @classmethod
    def parse(cls, text: str, version: str = REFERENCE) -> FeatureGates:
        """Read `GenericWorkload=true,GangScheduling=true`, as on kube-scheduler's command line."""
        given: dict[str, bool] = {}
        problems: list[str] = []
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, separator, value = (part.strip() for part in pair.partition("="))
            if not separator:
                problems.append(f"missing bool value for {name}")
            elif value in BOOLEANS:
                given[name] = BOOLEANS[value]
            else:
                problems.append(_not_boolean(name, value))
        try:
            gates = cls(given, version)
        except FeatureGateError as error:
            problems += error.problems
        if problems:
            raise FeatureGateError(tuple(problems))
        return gates

    def enabled(self, name: str) -> bool:
        """Return whether the gate is on.

        Raises:
            ExtensionError: there is no gate of this name.
        """
        if name in self.given:
            return self.given[name]
        gate = _gate(name)
        state = gate.at(self._version_of(name))
        # A gate that the version has no more stays as it was last. One that it doesn't have yet is off.
        if state is None:
            return (
                self.enabled(gate.merged_into)
                if gate.merged_into
                else bool(gate.removed and gate.last.default)
            )
        return state.default

    def follows(self, rule: Rule | str) -> bool:
        """Return whether the rule, or the one of this name in docs/feature-gates.md, holds in this version.

        Raises:
            KeyError: no rule has this name.
        """
        known = _RULES[rule] if isinstance(rule, str) else rule
        return is_since(self._version_of(known.name), known.since)

    def changes_to(self, other: FeatureGates) -> tuple[VersionChange, ...]:
        """Return the gates and rules that differ from those of the other version, and that decisions here depend on.

        A gate whose one behaviour is here whatever its value, or that changes no decision, isn't among them.
        """
        version = max(self.version, other.version, key=version_number)
        gates = (
            VersionChange(name, version, f"{gate.effect}: {_switch(self, other, name)}", gate.source)
            for name, gate in FEATURE_GATES.items()
            if gate.changes_decisions and self.enabled(name) is not other.enabled(name)
        )
        rules = (
            VersionChange(rule.name, version, f"{rule.area}: {rule.after}", rule.source)
            for rule in RULES
            if rule.decides and self.follows(rule) is not other.follows(rule)
        )
        return (*gates, *rules)

    def with_changes(self, changes: Iterable[VersionChange], version: str) -> FeatureGates:
        """Return the gates with these changes as they are in another version."""
        mixed = {each.name: version for each in changes}
        return attrs.evolve(self, mixed={**self.mixed, **mixed})

    def _version_of(self, name: str) -> str:
        return self.mixed.get(name, self.version)

    @property
    def features(self) -> Iterator[tuple[str, GateState, bool]]:
        """The gates of the version, each with its state and whether its behaviour is implemented here."""
        for name, gate in FEATURE_GATES.items():
            if (state := gate.at(self.version)) is not None:
                yield name, state, self.enabled(name) if gate.only is None else gate.only

    @property
    def notes(self) -> Iterator[str]:
        """A warning for each gate whose default in this version differs from v1.36 and isn't implemented here."""
        for name, state, is_here in self.features:
            reference = FEATURE_GATES[name].at(REFERENCE)
            if name not in self.given and state.default not in (is_here, reference and reference.default):
                value = _text(state.default)
                yield f"{name} is {value} in v{self.version}, but only its behaviour of v{REFERENCE} is here"

    def _problems(self, name: str, value: object) -> Iterator[str]:
        if name not in FEATURE_GATES and name not in DECLARED_GATES.names():
            yield f"unrecognized feature gate: {name}; {_hint(name)}"
            return
        gate = _gate(name)
        state = gate.at(self.version)
        if state is None and name in FEATURE_GATES:
            merged = gate.merged_into and is_since(self.version, gate.removed)
            since = f"since v{gate.removed} it is part of {gate.merged_into}"
            yield f"unrecognized feature gate: {name}; {since if merged else f'not in v{self.version}'}"
        elif not isinstance(value, bool):
            yield _not_boolean(name, value)
        elif state is not None and state.locked and value is not state.default:
            locked = _text(state.default)
            yield f"cannot set feature gate {name} to {_text(value)}, feature is locked to {locked}"
        elif gate.only is not None and value not in (gate.only, state and state.default):
            lacks = gate.lacks or f"only what it does while it is {'on' if gate.only else 'off'} is here"
            yield f"cannot set feature gate {name} to {_text(value)}: {gate.effect}: not modelled: {lacks}"

    def _unmet(self) -> Iterator[str]:
        for name, gate in FEATURE_GATES.items():
            if gate.at(self.version) is None or not self.enabled(name):
                continue
            if disabled := [each for each in gate.needs if not self.enabled(each)]:
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"


def _switch(before: FeatureGates, after: FeatureGates, name: str) -> str:
    values = [
        f"{'on' if each.enabled(name) else 'off'} in v{each._version_of(name)}" for each in (before, after)
    ]
    return ", ".join(values)


def _gate(name: str) -> FeatureGate:
    return FEATURE_GATES.get(name) or DECLARED_GATES.load(name)


def _not_boolean(name: str, value: object) -> str:
    return f'invalid value of {name}={value}, err: strconv.ParseBool: parsing "{value}": invalid syntax'


def _hint(name: str) -> str:
    if name in _ABSENT:
        return _ABSENT[name]
    known = [*FEATURE_GATES, *DECLARED_GATES.names()]
    similar = get_close_matches(name, known, n=1)
    if similar:
        return f"did you mean {similar[0]!r}?"
    free = [name for name, gate in FEATURE_GATES.items() if gate.only is None]
    return f"the gates that can be set are {', '.join(sorted([*free, *DECLARED_GATES.names()]))}"


def _text(value: bool) -> str:
    return "true" if value else "false"


BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""The values of Go's strconv.ParseBool."""

DEFAULT_GATES: Final = FeatureGates()
