"""The changes of a version by which pods fare differently."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.compare.upgrade import Fates, UpgradeReason, reasons

from kschedfw.config import DEFAULT_GATES, FeatureGates, VersionChange

V1_37 = FeatureGates(version="1.37")
CHANGES = DEFAULT_GATES.changes_to(V1_37)

Cause = tuple[str, frozenset[VersionChange]]


def decided(gates: FeatureGates, causes: Mapping[str, Cause]) -> Fates:
    """Outcomes in a made-up cluster: a pod has its new outcome if all, or any, of its changes are in force."""
    missing = set(gates.changes_to(V1_37))
    there = {"all": lambda needed: not needed & missing, "any": lambda needed: bool(needed - missing)}
    return {pod: "new" if there[how](needed) else "old" for pod, (how, needed) in causes.items()}


def found(causes: Mapping[str, Cause]) -> tuple[Mapping[str, UpgradeReason], int]:
    """The reasons that are found for the pods, and the number of runs."""
    runs: list[FeatureGates] = []

    def run(gates: FeatureGates) -> Fates:
        runs.append(gates)
        return decided(gates, causes)

    had, has = decided(DEFAULT_GATES, causes), decided(V1_37, causes)
    return reasons(DEFAULT_GATES, V1_37, had, has, run), len(runs)


sets_of_changes = st.frozensets(st.sampled_from(CHANGES), min_size=1, max_size=2)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.sampled_from(["all", "any"]), sets_of_changes))
)
def test_the_reason_is_found_whether_one_change_does_it_or_several_have_to_come_together(
    causes: Mapping[str, Cause],
) -> None:
    told, _ = found(causes)
    assert told.keys() == causes.keys()
    for pod, (how, needed) in causes.items():
        assert set(told[pod].changes) == needed
        assert told[pod].together is (how == "all" and len(needed) > 1)


def test_nothing_runs_if_no_pod_fares_differently() -> None:
    assert reasons(DEFAULT_GATES, V1_37, {"a": 1}, {"a": 1}, lambda _: {}) == {}


def test_one_change_among_many_is_found_by_halving() -> None:
    _, runs = found({"a": ("all", frozenset({CHANGES[0]}))})
    assert runs <= 2 * len(CHANGES).bit_length()


def test_a_pod_that_several_changes_move_each_alone_has_all_of_them_as_its_reason() -> None:
    told, _ = found({"a": ("any", frozenset(CHANGES[:2]))})
    assert str(told["a"]) == f"{CHANGES[0]} or {CHANGES[1]}"


def test_an_outcome_that_no_single_change_makes_a_difference_to_is_said_to_be_so() -> None:
    def two_of_three(gates: FeatureGates) -> Fates:
        there = set(CHANGES[:3]) - set(gates.changes_to(V1_37))
        return {"a": "new" if len(there) >= 2 else "old"}

    told = reasons(DEFAULT_GATES, V1_37, {"a": "old"}, {"a": "new"}, two_of_three)
    assert told["a"] == UpgradeReason((), together=True)
    assert "none of which can be told" in str(told["a"])
