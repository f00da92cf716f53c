"""An immutable, hashable dict for the maps inside API objects (labels, requests, match labels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict that can't change after construction and therefore may be hashed.

    It is a subclass of `dict`, because scheduling looks up labels all the time, and no mapping in pure Python is
    nearly as fast as `dict.get`.
    """

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:  # type: ignore[override]  # dict is unhashable by declaration; this one never changes
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    if TYPE_CHECKING:
        # Arguments that no value fits: a type checker refuses a write where it stands, and goes on. A result of the
        # type NoReturn would tell it that nothing after the write is reached, and it would check none of that.
        def __setitem__(self, key: Never, value: Never) -> None: ...  # type: ignore[override]
        def __delitem__(self, key: Never) -> None: ...  # type: ignore[override]
        def __ior__(self, other: Never) -> Self: ...  # type: ignore[misc, override]
        def pop(self, key: Never, *default: Never) -> V: ...  # type: ignore[override]
        def setdefault(self, key: Never, default: Never) -> V: ...  # type: ignore[override]
        def update(self, *args: Never, **kwargs: Never) -> None: ...  # type: ignore[override]
    else:

        def _refuse(self, *_args, **_kwargs):
            raise TypeError(
                f"{type(self).__name__} is immutable; build a new one: FrozenDict({{**old, key: value}})"
            )

        __setitem__ = _refuse
        __delitem__ = _refuse
        # The operator |= would change the dict.
        __ior__ = _refuse
        clear = _refuse
        pop = _refuse
        popitem = _refuse
        setdefault = _refuse
        update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        # pickle and copy would otherwise rebuild it item by item through __setitem__.
        return (type(self), (dict(self),))

    def __repr__(self) -> str:
        return f"FrozenDict({dict.__repr__(self)})"


EMPTY: FrozenDict[Any, Any] = FrozenDict()


def string_map(mapping: Mapping[str, str]) -> FrozenDict[str, str]:
    """The mapping as a FrozenDict: the converter of fields that hold labels and the like."""
    return mapping if isinstance(mapping, FrozenDict) else FrozenDict(mapping)
