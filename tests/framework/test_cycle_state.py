"""The scratch space of a cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kschedfw import CycleState, KschedfwError, StateKey
from kschedfw.framework.cycle_state import Clonable, StateKeyError
from kschedfw.framework.status import PluginFailure

COUNTS = StateKey["Counts"]("Rack.counts")
NAMES = StateKey[list[str]]("Rack.names")


class Counts:
    """State that hooks change, so it knows how to copy itself."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def clone(self) -> Counts:
        return Counts(dict(self.counts))


def test_what_was_written_can_be_read() -> None:
    state = CycleState()
    state.write(NAMES, ["a"])
    assert NAMES in state
    assert state.read(NAMES) == ["a"]
    state.write(NAMES, ["b"])
    assert state.read(NAMES) == ["b"]


def test_finding_what_was_never_written_gives_none() -> None:
    state = CycleState()
    assert state.find(NAMES) is None
    state.write(NAMES, ["a"])
    assert state.find(NAMES) == ["a"]


def test_reading_what_was_never_written_names_the_key() -> None:
    with pytest.raises(StateKeyError) as caught:
        CycleState().read(NAMES)
    assert str(caught.value) == "Rack.names: not found in the cycle state"
    assert isinstance(caught.value, KschedfwError)
    assert isinstance(caught.value, KeyError)


def test_what_was_deleted_is_gone_and_deleting_twice_is_harmless() -> None:
    state = CycleState()
    state.write(NAMES, [])
    state.delete(NAMES)
    state.delete(NAMES)
    assert NAMES not in state


def test_two_keys_of_the_same_name_are_the_same_key() -> None:
    state = CycleState()
    state.write(StateKey[int]("Rack.n"), 1)
    assert state.read(StateKey[int]("Rack.n")) == 1
    assert repr(StateKey[int]("Rack.n")) == "StateKey('Rack.n')"


def test_nothing_is_skipped_at_first() -> None:
    state = CycleState()
    assert state.skip_filter_plugins == state.skip_score_plugins == frozenset()


class TestClone:
    def test_a_clonable_value_is_cloned_and_any_other_shared(self) -> None:
        state = CycleState()
        counts, names = Counts({"r1": 1}), ["a"]
        assert isinstance(counts, Clonable)
        state.write(COUNTS, counts)
        state.write(NAMES, names)
        clone = state.clone()
        assert clone.read(NAMES) is names
        assert clone.read(COUNTS) is not counts
        clone.read(COUNTS).counts["r1"] = 7
        assert state.read(COUNTS).counts == {"r1": 1}

    def test_writes_and_deletions_do_not_show_in_the_original_nor_the_other_way_round(self) -> None:
        state = CycleState()
        state.write(NAMES, ["a"])
        clone = state.clone()
        clone.delete(NAMES)
        state.write(COUNTS, Counts({}))
        assert NAMES in state
        assert COUNTS not in clone

    def test_the_skipped_plugins_come_along(self) -> None:
        state = CycleState()
        state.skip_filter_plugins = frozenset({"A"})
        state.skip_score_plugins = frozenset({"B"})
        clone = state.clone()
        assert clone.skip_filter_plugins == {"A"}
        assert clone.skip_score_plugins == {"B"}


class Torn:
    """State whose clone fails."""

    def clone(self) -> Torn:
        raise KeyError("rack")


class Named:
    """State with an attribute that has the name of the method."""

    clone = "dolly"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Torn(), "Torn.clone failed .*: KeyError: 'rack'"),
        (Named(), "Named.clone failed .*: TypeError: 'str'"),
    ],
)
def test_a_clone_that_fails_names_the_key_and_the_value(value: object, text: str) -> None:
    state = CycleState()
    state.write(StateKey[object]("Rack.size"), 3)
    state.write(StateKey[object]("Rack.counts"), value)
    with pytest.raises(PluginFailure, match=rf"^Rack\.counts: {text}") as caught:
        state.clone()
    assert isinstance(caught.value.__cause__, KeyError | TypeError)


@pytest.mark.parametrize(
    "use",
    [
        lambda state, key: state.write(key, 1),
        lambda state, key: state.read(key),
        lambda state, key: state.find(key),
        lambda state, key: state.delete(key),
        lambda state, key: key in state,
    ],
)
def test_a_text_is_no_key(use: Callable[[CycleState, Any], object]) -> None:
    with pytest.raises(
        TypeError, match=r"key: expected a StateKey, found 'k'; .* KEY = StateKey\[int\]\('k'\)"
    ):
        use(CycleState(), "k")
