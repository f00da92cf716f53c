"""A view of a hook's argument behaves like the real object, and notes what is read of it and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given

from kschedfw import CycleState, FrozenDict, Node, NodeInfo, Pod, StateKey, make_node, make_pod
from kschedfw.framework.cycle_state import StateKeyError
from kschedfw.framework.learning.places import ABSENT, ReadPlace, reader, told_apart
from kschedfw.framework.learning.state_view import StateView
from kschedfw.framework.learning.views import Notes, note_whole, object_view
from kschedfw.testing.strategies import nodes, pods
from tests.framework.learning.drawn_hooks import Reading, readings

POD = make_pod("p").labels(app="web").requests(cpu="1").toleration("a", operator="Exists").build()
NODE = make_node("n").capacity(cpu="8").labels(rack="r1").taint("a", effect="NoSchedule").build()
INFO = NodeInfo.of(NODE, [POD.bound_to("n")])


def view(root: object) -> tuple[Any, Notes]:
    notes = Notes()
    return object_view(root, (), notes), notes


def text(place: ReadPlace) -> str:
    return "".join(f".{name}" if kind in ("attribute", "key") else f"#{kind}" for kind, name in place)


@pytest.mark.parametrize(
    ("read", "noted"),
    [
        (lambda pod: pod.labels.get("app"), {".labels.app"}),
        (lambda pod: pod.labels["app"], {".labels.app"}),
        (lambda pod: pod.labels.get("none"), {".labels.none"}),
        (lambda pod: "app" in pod.labels, {".labels.app#kind"}),
        (lambda pod: len(pod.labels), {".labels#length"}),
        (lambda pod: bool(pod.labels), {".labels#length"}),
        (lambda pod: [*pod.labels], {".labels#items"}),
        (lambda pod: {**pod.labels}, {".labels#items"}),
        (lambda pod: pod.labels == {"app": "web"}, {".labels"}),
        (lambda pod: json.dumps(pod.labels), {".labels#items"}),
        (lambda pod: pod.spec.node_selector, {".spec.node_selector#empty"}),
        (lambda pod: pod.priority, {".priority"}),
        (lambda pod: pod.requests.amounts.milli_cpu, {".requests.amounts.milli_cpu"}),
        (lambda pod: pod.spec.affinity.node_affinity, {".spec.affinity.node_affinity#kind"}),
        (lambda pod: len(pod.spec.tolerations), {".spec.tolerations#length"}),
        (
            lambda pod: pod.spec.tolerations[0].key,
            {".spec.tolerations#each.key"},
        ),
        (lambda pod: pod.spec, set()),
    ],
)
def test_what_is_read_is_noted_and_nothing_else(read: Callable[[Pod], object], noted: set[str]) -> None:
    pod, notes = view(POD)
    found = read(pod)
    # Before the comparison, which reads all that was found.
    assert {text(place) for place in told_apart(notes.places)} == noted
    assert found == read(POD)


def test_a_second_read_notes_nothing_new() -> None:
    pod, notes = view(POD)
    assert pod.labels.get("app") == "web"
    notes.places.clear()
    assert pod.labels.get("app") == "web"
    assert "app" in pod.labels
    assert [text(place) for place in notes.places] == [".labels.app#kind"]


def test_a_view_is_what_it_stands_for() -> None:
    pod, _ = view(POD)
    info, _ = view(INFO)
    assert isinstance(pod, Pod)
    assert isinstance(pod.labels, FrozenDict)
    assert isinstance(pod.spec.tolerations, tuple)
    assert pod == POD
    assert POD == pod  # noqa: SIM300  # the other way round
    assert hash(pod) == hash(POD)
    assert repr(pod) == repr(POD)
    assert attrs.asdict(pod) == attrs.asdict(POD)
    assert attrs.evolve(pod, spec=POD.spec) == POD
    assert copy.copy(pod) is copy.deepcopy(pod) is POD
    assert pod.bound_to("n") == POD.bound_to("n")
    assert info == INFO
    assert info.clone().pods == INFO.pods
    match info.node:
        case Node(labels={"rack": rack}, spec=spec):
            assert (rack, spec) == ("r1", NODE.spec)
        case _:
            pytest.fail("no match")


def test_a_mapping_is_read_as_the_real_one() -> None:
    pod, _ = view(POD)
    labels = pod.labels
    assert labels | {"b": "1"} == {"app": "web", "b": "1"}
    assert {"b": "1"} | labels == {"b": "1", "app": "web"}
    assert list(labels.items()) == [("app", "web")]
    assert list(reversed(labels)) == ["app"]
    assert labels.copy() == dict(POD.labels)
    assert labels.get("none", "else") == "else"
    with pytest.raises(KeyError, match="none"):
        labels["none"]
    with pytest.raises(TypeError, match="unhashable"):
        labels.get([])


def test_a_view_can_not_be_changed() -> None:
    info, _ = view(INFO)
    with pytest.raises(AttributeError, match="node can't be set: a pure hook must not change its NodeInfo"):
        info.node = NODE
    with pytest.raises(TypeError, match="immutable"):
        info.node.labels["rack"] = "r2"
    with pytest.raises(AttributeError, match="nothing"):
        info.nothing  # noqa: B018  # a mistake of an author


def test_many_items_are_compared_as_a_whole() -> None:
    many = NodeInfo.of(NODE, [make_pod(f"p{number}").node("n").build() for number in range(9)])
    info, notes = view(many)
    assert len([each.pod.name for each in info.pods]) == 9
    assert {text(place) for place in notes.places} == {".pods"}


def test_a_part_of_a_place_is_not_compared_beside_it() -> None:
    pod, notes = view(POD)
    assert pod.labels == POD.labels
    assert "app" in pod.labels
    assert len(pod.labels) == 1
    assert [*pod.labels] == ["app"]
    # The order of the labels doesn't follow from the labels.
    assert {text(place) for place in told_apart(notes.places)} == {".labels", ".labels#items"}


@attrs.frozen
class Kept:
    part: object


@pytest.mark.parametrize(
    ("written", "noted"),
    [
        (lambda pod: pod.labels, {".labels#items"}),
        (lambda pod: {"of": pod.labels}, {".labels#items"}),
        (lambda pod: [(pod.spec.tolerations,)], {".spec.tolerations#each"}),
        (lambda pod: Kept(pod.spec.tolerations[0]), {".spec.tolerations#each"}),
        (lambda pod: Kept(FrozenDict(of=pod.spec)), {".spec"}),
        (lambda pod: Kept([pod.spec]), set()),
        (lambda _pod: (1, "a", None), set()),
    ],
)
def test_views_in_a_value_are_noted_as_wholes(written: Callable[[Any], object], noted: set[str]) -> None:
    seen, notes = view(POD)
    note_whole(written(seen))
    assert {text(place) for place in told_apart(notes.places)} - {".spec.tolerations#length"} == noted


def test_a_place_that_an_object_does_not_have_is_absent() -> None:
    place: ReadPlace = (("attribute", "spec"), ("attribute", "priority"), ("attribute", "real"), ("key", "x"))
    assert reader(place)(POD) is ABSENT


KEY = StateKey[Any]("Mine.key")


class TestState:
    def test_a_value_of_ones_own_is_read(self) -> None:
        state, notes = CycleState(), Notes()
        state.write(KEY, ("a", FrozenDict(b=1)))
        seen = StateView(state, notes)
        assert isinstance(seen, CycleState)
        assert seen.read(KEY)[0] == "a"
        assert KEY in seen
        assert not notes.problem

    def test_what_was_not_written_is_absent(self) -> None:
        notes = Notes()
        seen = StateView(CycleState(), notes)
        assert seen.find(KEY) is None
        with pytest.raises(StateKeyError, match=r"Mine\.key: not found"):
            seen.read(KEY)
        assert {text(place) for place in notes.places} == {".Mine.key"}

    @pytest.mark.parametrize("value", [["a list"], {"a": "dict"}, object()])
    def test_a_value_that_can_change_is_a_problem(self, value: object) -> None:
        state, notes = CycleState(), Notes()
        state.write(KEY, value)
        assert StateView(state, notes).read(KEY) is not None
        assert notes.problem.startswith("it reads Mine.key of the state, a")

    def test_a_write_is_a_problem(self) -> None:
        notes = Notes()
        StateView(CycleState(), notes).write(KEY, 1)
        assert notes.problem == "it uses write of the state"


def answer(reading: Reading, pod: Pod, info: NodeInfo) -> object:
    """What is read, or the failure, in a form that can be compared."""
    try:
        return repr(reading.read(pod, info, CycleState()))
    except Exception as error:
        return repr(error)


@given(pods(), pods(), nodes(), readings)
def test_every_reading_of_a_view_is_that_of_the_real_object(
    pod: Pod, other: Pod, node: Node, reading: Reading
) -> None:
    info = NodeInfo.of(node, [other.bound_to(node.name)])
    the_pod, _ = view(pod)
    the_info, _ = view(info)
    expected = answer(reading, pod, info)
    assert answer(reading, the_pod, the_info) == expected
    assert answer(reading, the_pod, the_info) == expected


@given(pods(), pods(), pods(), nodes(), nodes(), readings)
def test_objects_with_equal_values_at_the_noted_places_give_the_same(
    pod: Pod, other_pod: Pod, on_node: Pod, node: Node, other_node: Node, reading: Reading
) -> None:
    infos = [NodeInfo.of(each, [on_node.bound_to(each.name)]) for each in (node, other_node)]
    found = []
    (the_pod, of_pod), (the_info, of_node) = view(pod), view(infos[0])
    answer(reading, the_pod, the_info)
    for each_pod, info in ((pod, infos[0]), (other_pod, infos[1]), (pod, infos[1]), (other_pod, infos[0])):
        values = (
            tuple(reader(place)(each_pod) for place in told_apart(of_pod.places)),
            tuple(reader(place)(info) for place in told_apart(of_node.places)),
        )
        found.append((values, answer(reading, each_pod, info)))
    for values, said in found:
        assert all(said == another for same, another in found if same == values)
