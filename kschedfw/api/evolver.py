"""Fast changed copies of attrs objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs

T = TypeVar("T")


def evolver(cls: type[T], *changed: str, computed: Sequence[str] = ()) -> Callable[..., T]:
    """Make a faster `attrs.evolve` for one class with slots and fixed fields.

    The new values follow the object by position:

        place = evolver(PodSpec, "node_name")
        place(spec, "node-1")

    New values aren't converted, so they must be results of the fields' converters. All fields must be arguments
    of the constructor. The copy keeps the values of cached properties that are named in `computed`.

    Placing a pod takes half a dozen such copies. A constructor takes three times as long, since it sets the
    fields of a frozen object by name and converts values again; `attrs.evolve` takes longer still.
    """
    fields = [field.name for field in attrs.fields(cls)]  # type: ignore[arg-type]  # of attrs classes
    fields += computed
    known: dict[str, Any] = {"cls": cls, "new": object.__new__}
    known |= {f"set_{name}": getattr(cls, name).__set__ for name in fields}
    lines = [f"set_{name}(copy, {name if name in changed else f'obj.{name}'})" for name in fields]
    # Compiled from source, as attrs does for constructors; the names are those of the class's fields.
    source = "\n    ".join(
        [f"def evolve(obj, {', '.join(changed)}):", "copy = new(cls)", *lines, "return copy"]
    )
    exec(source, known)
    evolve: Callable[..., T] = known["evolve"]
    return evolve
