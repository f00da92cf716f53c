"""Writes docs/hooks.md from the docstrings of the hookspecs: `python docs/generate_hooks.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

from kschedfw.framework import hookspecs
from kschedfw.framework.hook_spec import HookSpec
from kschedfw.framework.hookspecs import HOOKS

OUTPUT = Path(__file__).parent / "hooks.md"

INTRODUCTION = """\
# Hooks

<!-- Written by docs/generate_hooks.py from the docstrings of kschedfw/framework/hookspecs.py. Change those. -->

The contract of every hook. [Writing plugins](writing-plugins.md) says how to go about it.
"""


def hooks_reference() -> str:
    """The text of docs/hooks.md."""
    return "\n".join([INTRODUCTION, *_general(), *(line for name in HOOKS for line in _section(name))])


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
    yield "| hook | enabled at | status, beside Success and Error | what |"
    yield "| --- | --- | --- | --- |"
    for name, spec in HOOKS.items():
        summary = inspect.cleandoc(_spec(name).__doc__ or "").split("\n", 1)[0]
        point = "any" if spec.point is None else f"`{spec.point}`"
        yield f"| [`{name}`](#{name}) | {point} | {_codes(spec)} | {summary} |"
    yield ""


def _codes(spec: HookSpec) -> str:
    if spec.codes is None:
        return "–"
    return ", ".join(map(str, sorted(spec.codes))) or "none"


def _section(name: str) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"```py\n{signature(name)}\n```\n"
    yield f"{inspect.cleandoc(_spec(name).__doc__ or '')}\n"
    if (needed := HOOKS[name].goes_with) is not None:
        yield f"A plugin with this hook must have [`{needed}`](#{needed}), too.\n"


if __name__ == "__main__":
    OUTPUT.write_text(hooks_reference(), encoding="utf-8")
