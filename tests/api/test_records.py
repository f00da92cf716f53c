"""Records are attrs classes: what attrs does for a class, it does for them, later."""

import copy
import inspect
import pickle
import subprocess
import sys
import threading
from functools import cached_property
from typing import Any, ClassVar

import attrs
import pytest

from kschedfw.api.records import define, frozen, is_attrs_class


@frozen
class Point:
    names: ClassVar[int] = 2

    x: int
    y: int = attrs.field(default=0, converter=int)


@frozen
class Labelled(Point):
    label: str = ""
    y: int = 7

    def __repr__(self) -> str:
        return f"<{self.label}>"


@define(eq=False)
class Counter:
    count: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    seen: list[int] = attrs.field(factory=list, init=False)


def is_made(cls: type) -> bool:
    return "Pending" not in type(vars(cls)["__init__"]).__name__


def test_methods_are_made_when_the_first_object_is() -> None:
    @frozen
    class Fresh:
        x: int

    assert not is_made(Fresh)
    Fresh(1)
    assert is_made(Fresh)


@pytest.mark.parametrize(
    "ask",
    [
        attrs.fields,
        inspect.signature,
        lambda cls: cls.__match_args__,
        lambda cls: cls.__new__(cls).__setstate__({"x": 1}),
        lambda cls: frozen(type("Below", (cls,), {"__annotations__": {"z": int}}))(1, 2),
    ],
    ids=["fields", "signature", "match_args", "setstate", "subclass"],
)
def test_methods_are_made_when_one_is_asked_for_before_there_is_an_object(ask: Any) -> None:
    @frozen
    class Fresh:
        x: int

    ask(Fresh)
    assert is_made(Fresh)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"eq": False},
        {"kw_only": True},
        {"repr": False},
        {"order": True},
        {"cache_hash": True, "eq": True, "unsafe_hash": True},
    ],
)
@pytest.mark.parametrize(("later", "at_once"), [(frozen, attrs.frozen), (define, attrs.define)])
def test_class_has_the_names_that_it_has_from_attrs(later: Any, at_once: Any, options: Any) -> None:
    def plain() -> type:
        class Both:
            """Documented."""

            constant: ClassVar[int] = 1
            x: int
            y: tuple[int, ...] = attrs.field(default=(), validator=attrs.validators.instance_of(tuple))

            @cached_property
            def computed(self) -> int:
                return self.x

            def __str__(self) -> str:
                return "both"

        return Both

    made, expected = later(plain(), **options), at_once(plain(), **options)
    assert (made(x=1) == made(x=1)) is (expected(x=1) == expected(x=1))
    assert sorted(vars(made)) == sorted(vars(expected))
    assert inspect.signature(made) == inspect.signature(expected)
    assert made.__slots__ == expected.__slots__
    assert made.__annotations__ == expected.__annotations__
    assert (made.__doc__, made.__module__, made.__qualname__) == (
        expected.__doc__,
        expected.__module__,
        expected.__qualname__,
    )
    assert [attrs.asdict(made(x=1))] == [attrs.asdict(expected(x=1))]


def test_class_that_is_neither_compared_nor_shown_has_no_methods_for_it() -> None:
    @frozen
    class Fresh:
        x: int

    first, second = Fresh(1), Fresh(1)
    assert "Pending" in type(vars(Fresh)["__eq__"]).__name__
    assert {first} == {second}
    assert repr(first).endswith("Fresh(x=1)")
    assert "Pending" not in type(vars(Fresh)["__eq__"]).__name__


def test_class_is_told_from_others_without_its_methods() -> None:
    @frozen
    class Untouched:
        x: int = 0

    class Heir(Untouched):
        pass

    assert is_attrs_class(Untouched)
    assert is_attrs_class(Heir)
    assert not any(is_attrs_class(each) for each in (int, 1, list[int], Untouched | None))
    assert not is_made(Untouched)


def test_record_is_a_value() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(2, 2)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert repr(Point(1)) == "Point(x=1, y=0)"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Point(1).x = 2  # type: ignore[misc]
    assert not hasattr(Point(1), "__dict__")
    assert attrs.evolve(Point(1), y=3) == Point(1, 3)


def test_field_that_is_declared_again_has_one_slot() -> None:
    assert vars(Labelled)["__slots__"] == ("label",)
    assert (Labelled(1).y, repr(Labelled(1, label="a"))) == (7, "<a>")


def test_method_that_is_overridden_is_the_one_of_the_class_that_is_asked() -> None:
    @frozen
    class Above:
        x: int

    class Below(Above):
        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

        __hash__ = Above.__hash__

    assert Below(1) == Below(1)
    assert Below(1) != Below(2)


def test_validators_are_asked_at_every_assignment() -> None:
    counter = Counter()
    with pytest.raises(ValueError, match="count"):
        counter.count = -1
    assert counter != Counter()
    assert len({counter, Counter()}) == 2


def test_copies_and_pickles_are_equal() -> None:
    point = Point(1, 2)
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point


def test_process_reads_a_pickle_before_it_has_made_an_object() -> None:
    from kschedfw.api import ObjectMeta

    program = "import sys, pickle; print(pickle.loads(sys.stdin.buffer.read()).name)"
    read = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(ObjectMeta(name="a")),
        capture_output=True,
        check=True,
    )
    assert read.stdout.decode().strip() == "a"


def test_property_is_computed_once_also_where_methods_for_comparing_are_made_later() -> None:
    @frozen
    class Circle:
        radius: int

        @cached_property
        def area(self) -> list[int]:
            return [3 * self.radius**2]

    assert not is_made(Circle)
    circle = Circle(2)
    assert circle == Circle(2)
    assert circle.area == [12]
    assert circle.area is circle.area
    assert [field.name for field in attrs.fields(Circle)] == ["radius"]
    with pytest.raises(AttributeError, match="'Circle' object has no attribute 'perimeter'"):
        circle.perimeter  # type: ignore[attr-defined]  # noqa: B018


def test_methods_call_those_of_the_class_above() -> None:
    @frozen
    class Named(Point):
        @cached_property
        def both(self) -> str:
            return f"{self.key()} {super().__repr__()}"

        @property
        def key(self) -> Any:
            return super().__hash__

        def __str__(self) -> str:
            return f"<{super().__str__()}>"

    assert Named(1).both == f"{Named(1).key()} {Named(1)!r}"
    assert str(Named(1)).endswith("Named(x=1, y=0)>")


def test_class_that_keeps_its_hash_computes_it_once() -> None:
    asked = []

    class Key:
        def __hash__(self) -> int:
            asked.append(self)
            return 1

    @frozen(cache_hash=True)
    class Circle:
        key: Key

    assert not is_made(Circle)
    circle = Circle(Key())
    assert hash(circle) == hash(circle)
    assert len(asked) == 1
    hash(copy.copy(circle))
    assert len(asked) == 2  # a copy may be of another process, where hashes differ


def test_class_whose_constructor_is_written_is_made_at_once() -> None:
    @frozen(init=False)
    class Circle:
        radius: int

        def __init__(self, diameter: int) -> None:
            self.__attrs_init__(diameter // 2)

    assert Circle(4).radius == 2


def test_threads_may_make_the_methods_of_a_class_at_the_same_time() -> None:
    classes = [frozen(type("Fresh", (), {"__annotations__": {"x": int}})) for _ in range(50)]
    start, made = threading.Barrier(4), []

    def use() -> None:
        start.wait()
        made.append([cls(1) for cls in classes])

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [[cls(1) for cls in classes]] * 4
