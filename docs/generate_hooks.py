"""Writes docs/hooks.md from the docstrings of the hookspecs: `python docs/generate_hooks.py`.

It also records the signatures in docs/hook-contract.json. Where they differ from those recorded
before, the contract's version rises: the minor if plugins go on fitting as they are, else the major.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypedDict

from kschedfw.framework import hookspecs
from kschedfw.framework.hook_spec import HookSpec
from kschedfw.framework.hookspecs import HOOKS

OUTPUT = Path(__file__).parent / "hooks.md"
CONTRACT = Path(__file__).parent / "hook-contract.json"

INTRODUCTION = """\
# Hooks

For plugin authors: after this page you know what each hook is given, what it may answer, and when it is called.

<!-- Written by docs/generate_hooks.py from the docstrings of kschedfw/framework/hookspecs.py. Change those. -->

This is the contract of hooks in version {version}. [Writing plugins](writing-plugins.md) says how to begin, and
[Compatibility](compatibility.md#the-contract-of-hooks) what a version promises.
"""


class RecordedHook(TypedDict):
    """The parts of a hook that a plugin may rely on."""

    arguments: list[str]
    point: str | None
    codes: list[str] | None
    goes_with: str | None


class Contract(TypedDict):
    """Return the content of docs/hook-contract.json."""

    version: str
    hooks: dict[str, RecordedHook]


def declared() -> dict[str, RecordedHook]:
    """The hooks as the hookspecs have them now."""
    return {
        name: {
            "arguments": list(spec.arguments),
            "point": None if spec.point is None else str(spec.point),
            "codes": None if spec.codes is None else sorted(map(str, spec.codes)),
            "goes_with": spec.goes_with,
        }
        for name, spec in HOOKS.items()
    }


def next_contract(recorded: Contract, hooks: Mapping[str, RecordedHook]) -> Contract:
    """The contract of these hooks: in the recorded version if nothing differs, else in the next minor or major."""
    major, minor = map(int, recorded["version"].split("."))
    before = recorded["hooks"]
    if before == hooks:
        return recorded
    fits = all(name in hooks and _fits(old, hooks[name]) for name, old in before.items())
    version = f"{major}.{minor + 1}" if fits else f"{major + 1}.0"
    return {"version": version, "hooks": dict(hooks)}


def _fits(old: RecordedHook, new: RecordedHook) -> bool:
    """Tell whether a plugin with the hook as it was may stay as it is: arguments are taken by name, in any number."""
    codes = set(old["codes"] or ()) <= set(new["codes"] or ()) and (old["codes"] is None) == (
        new["codes"] is None
    )
    needs = new["goes_with"] in (None, old["goes_with"])
    return set(old["arguments"]) <= set(new["arguments"]) and codes and needs and old["point"] == new["point"]


def hooks_reference() -> str:
    """The text of docs/hooks.md."""
    version = json.loads(CONTRACT.read_text(encoding="utf-8"))["version"]
    introduction = INTRODUCTION.format(version=version)
    return "\n".join([introduction, *_general(), *(line for name in HOOKS for line in _section(name))])


def signature(name: str) -> str:
    """The hook as a `def` line, with annotations as they stand in the source."""
    parameters = inspect.signature(_spec(name))
    arguments = [f"{parameter.name}: {parameter.annotation}" for parameter in parameters.parameters.values()]
    return f"def {name}({', '.join(arguments)}) -> {parameters.return_annotation}"


def _spec(name: str) -> Callable[..., object]:
    spec: Callable[..., object] = getattr(hookspecs, name)
    return spec


def _general() -> Iterator[str]:
    """Return the module's docstring without its first line, and a table of the hooks."""
    yield inspect.cleandoc(hookspecs.__doc__ or "").partition("\n\n")[2] + "\n"
    yield "| hook | enabled at | status, beside Success and Error |"
    yield "| --- | --- | --- |"
    for name, spec in HOOKS.items():
        point = "any" if spec.point is None else f"`{spec.point}`"
        yield f"| [`{name}`](#{name}) | {point} | {_codes(spec)} |"
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
    contract = next_contract(json.loads(CONTRACT.read_text(encoding="utf-8")), declared())
    CONTRACT.write_text(json.dumps(contract, indent=1) + "\n", encoding="utf-8")
    OUTPUT.write_text(hooks_reference(), encoding="utf-8")
