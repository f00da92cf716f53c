"""Changed copies of attrs objects where many are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs

T = TypeVar("T")


def evolver(cls: type[T], *changed: str) -> Callable[..., T]:
    """`attrs.evolve` for one class and always the same fields, whose new values follow the object by position.

        place = evolver(PodSpec, "node_name")
        place(spec, "node-1")

    Placing a pod takes half a dozen such copies, and to look up a class's fields costs several times the copy itself.
    """
    fields = [field.name for field in attrs.fields(cls) if field.init]  # type: ignore[arg-type]  # of attrs classes
    arguments = ", ".join(f"{name}={name if name in changed else f'obj.{name}'}" for name in fields)
    # Built as source, as attrs builds the constructor; the names are those of the class's own fields.
    function: Callable[..., T] = eval(f"lambda obj, {', '.join(changed)}: cls({arguments})", {"cls": cls})
    return function
