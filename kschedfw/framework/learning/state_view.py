"""A view of the state of a cycle, which notes what a filter or score reads of what its plugin wrote before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kschedfw.api.frozendict import FrozenDict
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.learning.places import KIND
from kschedfw.framework.learning.views import Notes, view_of


class StateView:
    """A view of the state of a cycle, in which a plugin's filter and score find what its pre_filter wrote."""

    __slots__ = ("_known", "_notes", "_raw")

    def __init__(self, raw: CycleState, notes: Notes) -> None:
        self._raw, self._notes = raw, notes
        self._known: dict[str, Any] = {}

    @property  # type: ignore[misc]  # isinstance asks for it
    def __class__(self) -> type:
        return CycleState

    def find(self, key: StateKey[Any]) -> Any:
        return self.read(key) if key in self._raw else self._absent(key)

    def read(self, key: StateKey[Any]) -> Any:
        if key not in self._raw:
            self._absent(key)
            return self._raw.read(key)  # its own error
        if key.name not in self._known:
            value = self._raw.read(key)
            if not _is_value(value):
                kind = type(value).__name__
                self._notes.problem = f"it reads {key.name} of the state, a {kind}, which can change"
            self._known[key.name] = view_of(value, (("key", key.name),), self._notes)
        return self._known[key.name]

    def __contains__(self, key: StateKey[Any]) -> bool:
        self._notes.read((("key", key.name), KIND))
        return key in self._raw

    def _absent(self, key: StateKey[Any]) -> None:
        self._notes.read((("key", key.name),))

    def __getattr__(self, name: str) -> Any:
        # Everything else: what other plugins wrote or whether they skip, and writes, which a filter must not do.
        self._notes.problem = f"it uses {name} of the state"
        return getattr(self._raw, name)


_VALUES: Final = (str, int, float, bool, bytes, type(None), frozenset)


def _is_value(value: object) -> bool:
    """Return whether a value of the state is immutable and compared by what it contains."""
    if isinstance(value, tuple):
        return all(map(_is_value, value))
    if isinstance(value, Mapping):
        return isinstance(value, FrozenDict) and all(map(_is_value, value.values()))
    hashing: object = type(value).__hash__
    # A class that hashes its objects by their contents promises that the contents don't change.
    return isinstance(value, _VALUES) or (hashing is not None and hashing is not object.__hash__)
