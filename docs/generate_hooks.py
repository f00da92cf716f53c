"""Writes docs/hooks.md from the docstrings of the hookspecs: `python docs/generate_hooks.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

from kschedfw.framework import hookspecs
from kschedfw.framework.runtime.hook_signatures import SPECS
from kschedfw.framework.runtime.hooks import POINT_OF_HOOK

OUTPUT = Path(__file__).parent / "hooks.md"

INTRODUCTION = """\
# Hooks

<!-- Written by docs/generate_hooks.py from the docstrings of kschedfw/framework/hookspecs.py. Change those. -->

The contract of every hook. [Writing plugins](writing-plugins.md) says how to go about it.
"""


def hooks_reference() -> str:
    """The text of docs/hooks.md."""
    return "\n".join([INTRODUCTION, *_general(), *(line for name in SPECS for line in _section(name))])


def signature(name: str) -> str:
    """The hook as a `def` line, with annotations as they stand in the source."""
    parameters = inspect.signature(_spec(name))
    arguments = [f"{parameter.name}: {parameter.annotation}" for parameter in parameters.parameters.values()]
    return f"def {name}({', '.join(arguments)}) -> {parameters.return_annotation}"


def _spec(name: str) -> Callable[..., object]:
    spec: Callable[..., object] = getattr(hookspecs, name)
    return spec


def _general() -> Iterator[str]:
    """What the module says of all hooks, but for its first line, and a table of them."""
    yield inspect.cleandoc(hookspecs.__doc__ or "").partition("\n\n")[2] + "\n"
    yield "| hook | enabled at | what |"
    yield "| --- | --- | --- |"
    for name in SPECS:
        summary = inspect.cleandoc(_spec(name).__doc__ or "").split("\n", 1)[0]
        yield f"| [`{name}`](#{name}) | {_point(name)} | {summary} |"
    yield ""


def _section(name: str) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"```py\n{signature(name)}\n```\n"
    yield f"{inspect.cleandoc(_spec(name).__doc__ or '')}\n"


def _point(name: str) -> str:
    point = POINT_OF_HOOK.get(name)
    return "any" if point is None else f"`{point}`"


if __name__ == "__main__":
    OUTPUT.write_text(hooks_reference(), encoding="utf-8")
