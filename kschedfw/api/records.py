"""Define attrs classes whose methods are made when they are first used.

attrs writes and compiles the methods of a class when the class is defined, which takes half a millisecond. kschedfw has
hundreds of such classes, and a process uses a third of them: who schedules pods without volumes needs no StorageClass.
Of those, few objects are compared, hashed or shown: the methods for that take half of the time, and come by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from threading import RLock
from types import FunctionType
from typing import TYPE_CHECKING

import attrs

__all__ = ["define", "frozen", "is_attrs_class"]

if TYPE_CHECKING:
    # To a type checker these are attrs' own: it knows fields, converters and `attrs.evolve`.
    from attrs import define, frozen
else:

    def frozen(cls: type | None = None, /, **options: bool) -> object:
        """Define a class as `attrs.frozen` does; make its methods when one of them is first asked for."""
        return _decorator(attrs.frozen, cls, options)

    def define(cls: type | None = None, /, **options: bool) -> object:
        """Define a class as `attrs.define` does; make its methods when one of them is first asked for."""
        return _decorator(attrs.define, cls, options)


# attrs may add these to a class. The names that a class keeps are known once its methods are made.
_MADE = (
    *("__attrs_attrs__", "__attrs_own_setattr__", "__match_args__"),
    *("__init__", "__replace__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"),
)
_MADE_FOR_VALUES = (
    *("__attrs_props__", "__repr__", "__eq__", "__ne__", "__hash__"),
    *("__lt__", "__le__", "__gt__", "__ge__"),
)

# The slot in which attrs keeps a hash. A test compares all slots with those that attrs makes.
_KEPT_HASH = "_attrs_cached_hash"

# One for all classes: making a class makes its bases.
_LOCK = RLock()


class _Pending:
    """A method, or what attrs knows of a class: until somebody asks for it."""

    def __init__(self, name: str, complete: Callable[[], type]) -> None:
        self._name, self._complete = name, complete

    def __get__(self, instance: object, owner: type | None = None) -> object:
        # From the class that is completed, not from `owner`: a subclass that overrides the method may have called this
        # one.
        value = getattr(self._complete(), self._name)
        return value.__get__(instance, owner) if hasattr(value, "__get__") else value


def is_attrs_class(cls: object) -> bool:
    """Tell whether attrs defines the class, as `attrs.has` does, without making the class's methods."""
    return isinstance(cls, type) and any("__attrs_attrs__" in vars(base) for base in cls.__mro__)


def _decorator(
    decorate: Callable[..., type], cls: type | None, options: dict[str, bool]
) -> type | Callable[[type], type]:
    def define_later(plain: type) -> type:
        # The class has methods of its own that call what attrs makes, or its layout is attrs' affair.
        if options.get("init") is False or options.get("slots") is False:
            return decorate(plain, **options)
        return _deferred(plain, decorate, options)

    return define_later if cls is None else define_later(cls)


def _deferred(plain: type, decorate: Callable[..., type], options: dict[str, bool]) -> type:
    """Return `plain` with slots, and with what attrs adds to it as soon as some of that is needed."""
    annotations = dict(vars(plain).get("__annotations__", {}))
    computed = [name for name, value in vars(plain).items() if isinstance(value, cached_property)]
    # attrs computes properties when it finds their slots empty.
    names = (*_MADE, "__getattr__") if computed else _MADE
    # The constructor of a class that keeps its hash sets the kept one, so all methods of it are made together.
    keeps_hash = options.get("cache_hash", False)

    def complete(names: tuple[str, ...], **changed: bool) -> type:
        own = vars(cls)
        with _LOCK:
            if not any(isinstance(own.get(name), _Pending) for name in names):
                return cls  # another thread was faster
            # attrs has added those of computed properties, which it would take for fields the second time.
            plain.__annotations__ = dict(annotations)
            made = decorate(plain, **{**options, **changed})
            for name in names:
                if isinstance(own.get(name), _Pending):
                    if name in vars(made):
                        setattr(cls, name, vars(made)[name])
                        _mend(vars(made)[name], made, cls)
                    else:
                        delattr(cls, name)
        return cls

    if keeps_hash:
        later = for_values = partial(complete, (*names, *_MADE_FOR_VALUES))
    else:
        later = partial(complete, names, repr=False, eq=False, order=False)
        for_values = partial(complete, _MADE_FOR_VALUES)
    pending = {name: _Pending(name, later) for name in names}
    pending |= {name: _Pending(name, for_values) for name in _MADE_FOR_VALUES}
    cls = _with_slots(plain, (*computed, *([_KEPT_HASH] if keeps_hash else [])), pending)
    # attrs annotates computed properties, too. Pure hooks' views look for the class of their values there.
    results = {name: vars(plain)[name].func.__annotations__.get("return") for name in computed}
    cls.__annotations__ = annotations | results
    for value in vars(plain).values():
        _mend(value, plain, cls)
    return cls


def _with_slots(plain: type, more: Sequence[str], pending: dict[str, _Pending]) -> type:
    """Return the class again, with a slot for each field and for `more`; a class that exists can't get any."""
    fields = (
        [name for name, annotation in plain.__annotations__.items() if "ClassVar" not in str(annotation)]
        if "__annotations__" in vars(plain)
        else []
    )
    inherited = {slot for base in plain.__mro__[1:] for slot in getattr(base, "__slots__", ())}
    weakly = [] if any("__weakref__" in vars(base) for base in plain.__mro__[1:-1]) else ["__weakref__"]
    left_out = {*fields, *more, "__dict__", "__weakref__"}
    body = pending | {name: value for name, value in vars(plain).items() if name not in left_out}
    body["__slots__"] = tuple(name for name in (*fields, *weakly, *more) if name not in inherited)
    body["__qualname__"] = plain.__qualname__
    return type(plain)(plain.__name__, plain.__bases__, body)


def _mend(value: object, old: type, new: type) -> None:
    """Make `super()` in a method mean the class that took the place of another, as attrs does."""
    function = (
        getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", value)
    )
    if isinstance(function, FunctionType):
        for cell in function.__closure__ or ():
            # Empty is the cell of a variable that gets its value later.
            with suppress(ValueError):
                if cell.cell_contents is old:
                    cell.cell_contents = new
