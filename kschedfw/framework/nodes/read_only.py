"""Lists and arrays for plugins to read, which only their owner may change.

Numbers and lists are read in the innermost loops of a cycle, so no wrapper stands between them and their
reader.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

ItemT = TypeVar("ItemT")
ScalarT = TypeVar("ScalarT", bound=np.generic)


class ReadOnlyList(list[ItemT]):
    """A list whose own methods refuse to change it; its owner calls `list`'s (`list.append(items, item)`).

    Changes of the owner show in it, as in a view. It stays a real `list`, since a view in pure Python takes
    several times as long to read.
    """

    __slots__ = ()

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError(
            "this list is read-only; change a copy of it, list(items), or a clone() of the NodeInfo that has it"
        )

    __setitem__ = _refuse
    __delitem__ = _refuse
    __iadd__ = _refuse
    __imul__ = _refuse
    append = _refuse
    clear = _refuse
    extend = _refuse
    insert = _refuse
    pop = _refuse
    remove = _refuse
    reverse = _refuse
    sort = _refuse

    def __reduce__(self) -> tuple[type[list[ItemT]], tuple[list[ItemT]]]:
        # pickle and copy would otherwise rebuild it by `append`; a copy belongs to whoever made it
        return (list, (list(self),))


def read_only_view(array: npt.NDArray[ScalarT]) -> npt.NDArray[ScalarT]:
    """Return a view of `array` that raises ValueError when written to. Writes of the owner to `array` show in it."""
    view = array.view()
    view.flags.writeable = False
    return view
