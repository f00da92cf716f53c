"""Define attrs classes whose methods are made when they are first used.

attrs writes and compiles the methods of a class when the class is defined, which takes half a millisecond. kschedfw has
hundreds of such classes, and a process uses a third of them: who schedules pods without volumes needs no StorageClass.
Of those, few objects are compared, hashed or shown: the methods for that take half of the time, and come by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
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

# One for all classes: making a class makes its bases.
_LOCK = RLock()


class _Pending:
    """A method, or what attrs knows of a class: until somebody asks for it."""

    def __init__(self, cls: type, name: str, make: Callable[[], None]) -> None:
        self._cls, self._name, self._make = cls, name, make

    def __get__(self, instance: object, owner: type | None = None) -> object:
        self._make()
        # From the class that was made, not from `owner`: a subclass that overrides the method may have called this one.
        value = getattr(self._cls, self._name)
        return value.__get__(instance, owner) if hasattr(value, "__get__") else value


def is_attrs_class(cls: object) -> bool:
    """Tell whether attrs defines the class, as `attrs.has` does, without making the class's methods."""
    return isinstance(cls, type) and any("__attrs_attrs__" in vars(base) for base in cls.__mro__)


def _decorator(
    decorate: Callable[..., type], cls: type | None, options: dict[str, bool]
) -> type | Callable[[type], type]:
    def define_later(plain: type) -> type:
        if _needs_attrs_now(plain, options):
            return decorate(plain, **options)
        made = _with_slots(plain)
        without = {**options, "repr": False, "eq": False, "order": False}
        _defer(made, plain, _MADE, lambda: decorate(plain, **without))
        _defer(made, plain, _MADE_FOR_VALUES, lambda: decorate(plain, **options))
        return made

    return define_later if cls is None else define_later(cls)


def _needs_attrs_now(plain: type, options: dict[str, bool]) -> bool:
    """Return whether attrs decides more about the class's layout than its slots are, or has to mend a `super()`."""
    return (
        "cache_hash" in options
        or options.get("init") is False
        or options.get("slots") is False
        or any(
            isinstance(value, cached_property) or "__class__" in _closed_over(value)
            for value in vars(plain).values()
        )
    )


def _closed_over(value: object) -> tuple[str, ...]:
    function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return function.__code__.co_freevars if isinstance(function, FunctionType) else ()


def _defer(cls: type, plain: type, names: tuple[str, ...], make: Callable[[], type]) -> None:
    """Add to `cls` what `make` adds to `plain` under these names, as soon as one of them is asked for."""

    def complete() -> None:
        own = vars(cls)
        with _LOCK:
            if not any(isinstance(own.get(name), _Pending) for name in names):
                return  # another thread was faster
            made = vars(make())
            for name in names:
                if isinstance(own.get(name), _Pending):
                    if name in made:
                        setattr(cls, name, made[name])
                    else:
                        delattr(cls, name)

    for name in names:
        if name not in vars(plain):
            setattr(cls, name, _Pending(cls, name, complete))


def _with_slots(plain: type) -> type:
    """Return the class again, with a slot for each field; slots can't be added to a class that exists."""
    fields = (
        [name for name, annotation in plain.__annotations__.items() if "ClassVar" not in str(annotation)]
        if "__annotations__" in vars(plain)
        else []
    )
    inherited = {slot for base in plain.__mro__[1:] for slot in getattr(base, "__slots__", ())}
    weakly = [] if any("__weakref__" in vars(base) for base in plain.__mro__[1:-1]) else ["__weakref__"]
    body = {
        name: value for name, value in vars(plain).items() if name not in {*fields, "__dict__", "__weakref__"}
    }
    body["__slots__"] = (*(name for name in fields if name not in inherited), *weakly)
    body["__qualname__"] = plain.__qualname__
    return type(plain)(plain.__name__, plain.__bases__, body)
