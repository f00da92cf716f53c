"""NodeLabel: labels that nodes must have or must not have, whatever their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from kschedfw_legacy.plugins.node_label import NodeLabel

from kschedfw import Code, make_node, make_pod
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.args import ArgsError
from kschedfw.testing import FrameworkHarness

LABELS = {"foo": "any-value", "bar": "another"}
POD = make_pod().build()


def harness(**args: Sequence[str]) -> FrameworkHarness:
    camel = {
        "present": "presentLabels",
        "absent": "absentLabels",
        "prefer_present": "presentLabelsPreference",
        "prefer_absent": "absentLabelsPreference",
    }
    given: Mapping[str, object] = {camel[name]: list(labels) for name, labels in args.items()}
    return FrameworkHarness(
        NodeLabel, nodes=[make_node("n").labels(LABELS).build()], args={"NodeLabel": given}
    )


@pytest.mark.parametrize(
    ("present", "absent", "fits"),
    [
        (["baz"], [], False),
        ([], ["baz"], True),
        (["foo", "baz"], [], False),
        (["foo", "bar"], [], True),
        ([], ["foo", "baz"], False),
        (["foo"], ["bar"], False),
        ([], [], True),
    ],
)
def test_a_node_has_all_of_some_labels_and_none_of_others(
    present: Sequence[str], absent: Sequence[str], fits: bool
) -> None:
    status = harness(present=present, absent=absent).filter(POD)["n"]
    assert status.is_success is fits
    if not fits:
        assert (status.code, status.message) == (
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "node(s) didn't have the requested labels",
        )


@pytest.mark.parametrize(
    ("present", "absent", "score"),
    [
        (["foo"], [], 100),
        (["baz"], [], 0),
        ([], ["baz"], 100),
        ([], ["foo"], 0),
        (["foo", "baz"], [], 50),
        (["foo", "bar"], ["qux"], 100),
        (["baz", "qux"], ["quux"], 33),
        ([], [], 0),
    ],
)
def test_the_score_is_the_share_of_preferences_that_are_met(
    present: Sequence[str], absent: Sequence[str], score: int
) -> None:
    assert harness(prefer_present=present, prefer_absent=absent).score(POD) == {"n": score}


def test_a_label_can_not_be_wanted_and_unwanted() -> None:
    with pytest.raises(ArgsError) as caught:
        harness(present=["foo", "bar"], absent=["baz", "bar"], prefer_present=["a"], prefer_absent=["a"])
    assert str(caught.value) == (
        'NodeLabel: presentLabels[1]: Invalid value: "bar": conflict with absentLabels[1]; '
        'presentLabelsPreference[0]: Invalid value: "a": conflict with absentLabelsPreference[0]'
    )


def test_a_node_that_gets_the_label_is_worth_another_attempt() -> None:
    made = harness(present=["zone"])
    event, _ = made.framework.events_to_register()["NodeLabel"]
    assert event.hint is not None
    bare, labelled = make_node("n").build(), make_node("n").labels(zone="z").build()
    hints = [
        event.hint(POD, old, new).value for old, new in ((None, bare), (bare, labelled), (None, labelled))
    ]
    assert hints == ["skip", "queue", "queue"]
    assert event.hint(POD, labelled, labelled).value == "skip"


def test_it_takes_part_in_filter_and_score() -> None:
    framework = harness().framework
    assert [point.value for point in ExtensionPoint if framework.plugins_at(point)] == ["filter", "score"]
