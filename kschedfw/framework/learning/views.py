"""Views of a hook's arguments, which note what is read of them and otherwise behave like the real objects.

A view of an API object is an object of a subclass, whose attributes are slots that are empty at first. The first read
of an attribute therefore comes to `__getattr__`, which notes it and fills the slot. Later reads, as for the next node,
cost what they cost on the real object. Methods run on the view, so that what they read is noted.

Views of mappings and tuples are dicts and tuples with the real items, so that code in C that reads their memory finds
what it would find in the real ones. Most of it asks for the items by a method of a subclass, which notes that.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import suppress
from functools import cache
from types import MemberDescriptorType
from typing import Any, Final, NoReturn

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.records import define
from kschedfw.framework.learning.places import ABSENT, EMPTY, ITEMS, KIND, LENGTH, ReadPlace, ReadStep

_MOST_ITEMS_APART: Final = 8
"""The number of items up to which the parts of a tuple's items are read. A longer one, such as a node's pods, counts as
a whole: the parts of each item would be compared for every node."""

_set = object.__setattr__
"""Fills a slot of a view; the classes of API objects refuse to set attributes."""


@define(eq=False)
class Notes:
    """The places that were read of one root, such as the pods of a hook's calls, in the order of the first reads.

    `problem` says what was read that has no value to be compared; empty if nothing was. `wholes` are places whose
    values are compared as a whole: what is read below them needs no notes.
    """

    places: dict[ReadPlace, None] = attrs.field(factory=dict)
    problem: str = ""
    wholes: frozenset[ReadPlace] = frozenset()

    def read(self, place: ReadPlace) -> None:
        self.places[place] = None

    def read_value(self, place: ReadPlace, value: object) -> None:
        """Note the place of a value that is compared as a whole."""
        self.places[place] = None
        try:
            hash(value)
        except TypeError:
            self.problem = self.problem or f"it reads a {type(value).__name__}, which can change"


def view_of(
    value: object, place: ReadPlace, notes: Notes, *, is_required: bool = False, has_alike: bool = False
) -> Any:
    """Return a view of the value, or the value itself if it has no parts, and note it where that tells of it.

    Args:
        is_required: whether the value at this place always is of this class. Otherwise its class is noted.
        has_alike: whether all items of a tuple at this place always are of one class. Otherwise their classes are
            noted where they are read.
    """
    kind = type(value)
    made: object
    if kind is tuple and value and all(_has_parts(type(item)) for item in value):  # type: ignore[attr-defined, arg-type]
        made = TupleView(value, place, notes, has_alike=has_alike)  # type: ignore[arg-type]  # its class is tuple
    elif kind is FrozenDict and value:
        made = MappingView(value, place, notes)  # type: ignore[arg-type]  # its class is FrozenDict
    elif _has_parts(kind):  # type: ignore[arg-type]  # a class is hashable
        made = object_view(value, place, notes)
    elif kind is tuple or kind is FrozenDict:
        if value:
            notes.read_value(place, value)
        else:
            # An empty container can't have a view, since encoders in C look at its memory. So it counts as read.
            notes.read((*place, EMPTY))
        return value
    else:
        # None often stands for an object that isn't there. A whole object would then be compared with it.
        if value is None:
            notes.read((*place, KIND))
        else:
            notes.read_value(place, value)
        return value
    if not is_required:
        notes.read((*place, KIND))
    return made


@cache
def _has_parts(kind: type) -> bool:
    return attrs.has(kind)


class ObjectView:
    """The base of views of attrs objects; `object_view` makes them."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        slots = type(self)
        raw = _set_aside(self)
        if name not in slots.kschedfw_parts:  # type: ignore[attr-defined]  # of the made class
            # Whatever the real object says about a name that it doesn't have.
            return getattr(raw, name)
        notes: Notes = self.kschedfw_notes
        place = (*self.kschedfw_place, ("attribute", name))
        try:
            value = getattr(raw, name)
        except Exception:
            notes.read(place)
            raise
        if place in notes.wholes:
            _set(self, name, value)
            return value
        declared: str = slots.kschedfw_parts[name]  # type: ignore[attr-defined]
        is_required = type(value).__name__ == declared.partition("[")[0]
        view = view_of(value, place, notes, is_required=is_required, has_alike=_has_items_alike(declared))
        _set(self, name, view)
        return view

    def __setattr__(self, name: str, value: object) -> NoReturn:
        kind = type(_set_aside(self)).__name__
        raise AttributeError(f"{name} can't be set: a pure hook must not change its {kind}")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __reduce_ex__(self, protocol: object) -> str | tuple[Any, ...]:
        # A copy, or what another process is sent.
        return _whole(self).__reduce_ex__(protocol)  # type: ignore[no-any-return]

    def __copy__(self) -> object:
        return _whole(self)

    def __deepcopy__(self, memo: object) -> object:
        return _whole(self)


def object_view(raw: object, place: ReadPlace, notes: Notes) -> Any:
    """Return a view of an attrs object."""
    view: Any = object.__new__(_view_class(type(raw)))  # type: ignore[arg-type]  # a class is hashable
    _set(view, "kschedfw_raw", raw)
    _set(view, "kschedfw_place", place)
    _set(view, "kschedfw_notes", notes)
    return view


def note_whole(value: object) -> None:
    """Note that everything of the views in a value was read. Views in objects that can't be hashed aren't found."""
    if isinstance(value, dict):
        # By the items: those of a view of a mapping tell its order, too.
        note_whole(tuple(value.items()))
    elif isinstance(value, (tuple, list, set, frozenset)):
        for each in value:
            note_whole(each)
    else:
        # Of an object that is compared by its parts, these are hashed.
        with suppress(TypeError):
            hash(value)


def _set_aside(view: ObjectView) -> Any:
    # Not by the attribute: if the slot is empty, as in a half-made copy, `__getattr__` would call itself for ever.
    return type(view).kschedfw_raw.__get__(view)  # type: ignore[attr-defined]


def _whole(view: ObjectView) -> Any:
    """Note that everything of the object was read. Return the real one."""
    raw = _set_aside(view)
    view.kschedfw_notes.read_value(view.kschedfw_place, raw)
    return raw


@cache
def _view_class(kind: type[Any]) -> type[Any]:
    """Return the class of views of objects of a class: a slot for each attribute and property."""
    parts: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        annotations = vars(base).get("__annotations__", {})
        for name, member in vars(base).items():
            if isinstance(member, property):
                getter = getattr(member.fget, "__annotations__", {})
                parts[name] = _class_named(getter.get("return"))
            elif isinstance(member, MemberDescriptorType) and name != "__weakref__":
                parts[name] = _class_named(annotations.get(name, parts.get(name)))
    if not hasattr(kind, "__slots__"):
        # Objects with a dictionary: their attributes are those that attrs knows of.
        for field in attrs.fields(kind):
            parts.setdefault(field.name, _class_named(field.type))
    members: dict[str, object] = {
        "__slots__": (*parts, "kschedfw_raw", "kschedfw_place", "kschedfw_notes"),
        "__module__": __name__,
        "kschedfw_parts": parts,
        # isinstance and attrs ask for it.
        "__class__": property(lambda _self: kind),
    }
    # The class's own __hash__ may answer with a hash that the object keeps; then it would read no part.
    members["__hash__"] = lambda self: hash(_whole(self))
    if not _has_value(kind):
        # Compared by identity: the view stands for the one object that it was made of.
        members["__eq__"] = lambda self, other: _whole(self) is getattr(other, "kschedfw_raw", other)
    return type(kind.__name__, (ObjectView, kind), members)


def _has_value(kind: type[Any]) -> bool:
    """Return whether objects of a class are equal by their parts, not by identity."""
    equality: object = kind.__eq__
    return equality is not object.__eq__


def _class_named(annotation: object) -> str:
    """Return the only class that values of this type have, as annotated; empty if it isn't known."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    # `tuple[Taint, ...]` and `FrozenDict[str, str]`, but no union: values of that have several classes.
    return "" if "|" in text else text


@cache
def _has_items_alike(annotation: str) -> bool:
    """Return whether this is a tuple of any number of objects of one class, such as `tuple[Taint, ...]`."""
    item = annotation.removeprefix("tuple[").removesuffix(", ...]")
    return item.isidentifier() and annotation == f"tuple[{item}, ...]"


class MappingView(FrozenDict[Any, Any]):
    """A view of a mapping that isn't empty: single keys, presence, and the length are places of their own."""

    __slots__ = ("_known", "_looked_for", "_notes", "_place", "_raw")

    def __init__(self, raw: FrozenDict[Any, Any], place: ReadPlace, notes: Notes) -> None:
        super().__init__(raw)
        self._raw, self._place, self._notes = raw, place, notes
        self._known: dict[object, Any] = {}
        self._looked_for: dict[object, bool] = {}

    @property  # type: ignore[misc]  # isinstance and attrs ask for it
    def __class__(self) -> type:
        return FrozenDict

    def get(self, key: object, default: Any = None) -> Any:
        try:
            value = self._known[key]
        except KeyError:
            value = self._read(key)
        return default if value is ABSENT else value

    def __getitem__(self, key: object) -> Any:
        try:
            value = self._known[key]
        except KeyError:
            value = self._read(key)
        if value is ABSENT:
            raise KeyError(key)
        return value

    def _read(self, key: object) -> Any:
        value, place = self._raw.get(key, ABSENT), (*self._place, ("key", key))
        if place in self._notes.wholes:
            pass  # compared already
        elif value is ABSENT:
            self._notes.read(place)
        else:
            value = view_of(value, place, self._notes)
        self._known[key] = value
        return value

    def __contains__(self, key: object) -> bool:
        found = self._looked_for.get(key)
        if found is None:
            # Presence has two values, while a label may have as many as there are nodes.
            self._notes.read((*self._place, ("key", key), KIND))
            found = self._looked_for[key] = key in self._raw
        return found

    def __len__(self) -> int:
        self._notes.read((*self._place, LENGTH))
        return len(self._raw)

    def _all(self) -> FrozenDict[Any, Any]:
        """Note that everything was read, in its order. Return the real mapping."""
        place = (*self._place, ITEMS)
        self._notes.read_value(place, tuple(self._raw.items()))
        return self._raw

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all().keys())

    def __reversed__(self) -> Iterator[Any]:
        return reversed(tuple(self._all()))  # type: ignore[no-any-return]  # keys are Any

    def keys(self) -> KeysView[Any]:  # type: ignore[override]  # a view of the real one
        return self._all().keys()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        return self._all().values()

    def items(self) -> ItemsView[Any, Any]:  # type: ignore[override]
        return self._all().items()

    def copy(self) -> dict[Any, Any]:
        return dict(self._all())

    def __or__(self, other: Any) -> Any:
        return self._all() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._all()

    def __eq__(self, other: object) -> bool:
        self._notes.read_value(self._place, self._raw)
        return self._raw == (other._all() if type(other) is MappingView else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]  # as FrozenDict's
        self._notes.read_value(self._place, self._raw)
        return hash(self._raw)

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        return self._all().__reduce__()

    def __reduce_ex__(self, _protocol: object) -> tuple[Any, ...]:
        return self.__reduce__()


class TupleView(tuple[Any, ...]):
    """A view of a tuple of objects: their parts and the length are places of their own, unless the tuple is long."""

    _raw: tuple[Any, ...]
    _place: ReadPlace
    _notes: Notes
    _each: ReadPlace
    _is_noted: bool

    def __new__(
        cls,
        raw: tuple[Any, ...],
        place: ReadPlace = (),
        notes: Notes | None = None,
        *,
        has_alike: bool = False,
    ) -> Any:
        # A copy, which attrs' `asdict` makes of the class that it finds.
        if notes is None:
            return tuple(raw)
        items = raw
        each: ReadStep = ("each", all(_has_value(type(item)) for item in raw))
        if len(raw) <= _MOST_ITEMS_APART:
            items = tuple([object_view(item, (*place, each), notes) for item in raw])
        view = super().__new__(cls, items)
        view._raw, view._place, view._notes, view._is_noted = raw, place, notes, False
        view._each = (*place, each) if has_alike else (*place, each, KIND)
        return view

    @property  # type: ignore[misc]  # isinstance and attrs ask for it
    def __class__(self) -> type:
        return tuple

    def __len__(self) -> int:
        self._notes.read((*self._place, LENGTH))
        return super().__len__()

    def _items(self) -> tuple[Any, ...]:
        """Note which items there are. Return them: views of few, the real ones of many."""
        if not self._is_noted:
            notes, place = self._notes, self._place
            if len(self._raw) > _MOST_ITEMS_APART:
                notes.read_value(place, self._raw)
            else:
                notes.read((*place, LENGTH))
                if self._each[-1] == KIND:
                    notes.read(self._each)
            self._is_noted = True
        return tuple(super().__iter__())

    def __iter__(self) -> Iterator[Any]:
        items: Iterator[Any] = iter(self._items())
        return items

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._items())  # type: ignore[no-any-return]  # items are Any

    def __getitem__(self, index: Any) -> Any:
        return self._items()[index]

    def __contains__(self, item: object) -> bool:
        return item in self._items()

    def index(self, *arguments: Any) -> int:
        return self._items().index(*arguments)

    def count(self, item: object) -> int:
        return self._items().count(item)

    def __add__(self, other: Any) -> Any:
        return self._items() + tuple(other) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return tuple(other) + self._items() if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return self._items() * times

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and self._items() == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return self._items() < tuple(other) if isinstance(other, tuple) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self._items() <= tuple(other) if isinstance(other, tuple) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return self._items() > tuple(other) if isinstance(other, tuple) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self._items() >= tuple(other) if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._items())

    def __repr__(self) -> str:
        return repr(self._items())

    def __reduce_ex__(self, _protocol: object) -> tuple[Any, ...]:
        return tuple, (list(self._items()),)
