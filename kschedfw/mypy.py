"""A plugin for mypy that finds hooks which don't fit their hookspecs: `plugins = ["kschedfw.mypy"]` in its settings.

It finds while typing what a Framework refuses when it is made: a hook that doesn't exist, an argument that the hook
hasn't got or that has another type, a result of another type, `async def`, a missing `self`. Types are compared by
mypy's rules. All errors have the code `kschedfw`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, cast

from mypy.checker import TypeChecker
from mypy.errorcodes import ErrorCode
from mypy.messages import format_type_bare
from mypy.nodes import (
    ArgKind,
    Argument,
    Context,
    Decorator,
    Expression,
    FuncDef,
    Import,
    ImportAll,
    ImportBase,
    ImportFrom,
    MypyFile,
    RefExpr,
)
from mypy.options import Options
from mypy.plugin import MethodContext, Plugin
from mypy.subtypes import is_subtype
from mypy.types import CallableType, Type

HOOK: Final = ErrorCode("kschedfw", "Check that the hooks of kschedfw's plugins fit their specs", "Plugins")

_HOOKSPECS: Final = "kschedfw.framework.hookspecs"
_HOOKIMPL: Final = "kschedfw.framework.plugin.hookimpl"
_ALIKE: Final = 0.5  # as when the framework is made
_FROM_HERE: Final = -1
_PRIORITY: Final = 10

Problem = tuple[str, Context]


def plugin(version: str) -> type[Plugin]:  # noqa: ARG001  # mypy calls it with its version
    """What mypy asks a plugin's module for."""
    return HookChecker


class HookChecker(Plugin):
    """Checks every method that is marked `@hookimpl`; not those marked with options, `@hookimpl(…)`."""

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """The hookspecs, for every file that may have a hook."""
        names = {name for each in file.imports for name in _imported(each)}
        uses = any(name.partition(".")[0] == "kschedfw" for name in names)
        return [(_PRIORITY, _HOOKSPECS, _FROM_HERE)] if uses and file.fullname != _HOOKSPECS else []

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """To look at what a marker of pluggy is put on: kschedfw's, or another project's."""
        is_marker = fullname.startswith("pluggy.") and fullname.endswith(".HookimplMarker.__call__")
        return _look if is_marker else None


def _imported(statement: ImportBase) -> Iterable[str]:
    match statement:
        case Import():
            return [name for name, _ in statement.ids]
        case ImportFrom() | ImportAll():
            return [statement.id]
    return []


def _look(context: MethodContext) -> Type:
    decorated = context.context
    if isinstance(decorated, Decorator) and _has(decorated.decorators, _HOOKIMPL):
        checker = cast(TypeChecker, context.api)
        for text, where in _problems(decorated.func, _specs(checker.modules), checker.options):
            checker.fail(text, where, code=HOOK)
    return context.default_return_type


def _has(decorators: Iterable[Expression], name: str) -> bool:
    return any(isinstance(each, RefExpr) and each.fullname == name for each in decorators)


def _specs(modules: Mapping[str, MypyFile]) -> Mapping[str, CallableType]:
    """The types of the hookspecs."""
    found: dict[str, CallableType] = {}
    file = modules.get(_HOOKSPECS)
    for name, symbol in ({} if file is None else file.names).items():
        node = symbol.node
        # What is decorated there is a hookspec. By what isn't known of a module that comes from mypy's cache.
        if isinstance(node, Decorator) and isinstance(node.func.type, CallableType):
            found[name] = node.func.type
    return found


def _problems(function: FuncDef, specs: Mapping[str, CallableType], options: Options) -> Iterator[Problem]:
    hook = function.name
    spec = specs.get(hook)
    if spec is None:
        if specs:
            similar = get_close_matches(hook, specs, n=1)
            hint = f'did you mean "{similar[0]}"?' if similar else f"hooks are {', '.join(specs)}"
            yield f'There is no hook "{hook}"; {hint}', function
        return
    if function.is_coroutine:
        yield f'Hook "{hook}" is async, and nobody would await it', function
        return
    written = function.type if isinstance(function.type, CallableType) else None
    allowed = {name: kind for name, kind in zip(spec.arg_names, spec.arg_types, strict=True) if name}
    first = 0 if function.is_static else 1
    if first and (not function.arguments or function.arguments[0].variable.name in allowed):
        first = 0
        yield f'Hook "{hook}" has no self', function
    for position, argument in enumerate(function.arguments[first:], start=first):
        given = None if written is None else written.arg_types[position]
        yield from _argument_problems(hook, argument, given, allowed, options)
    if written is not None and not is_subtype(written.ret_type, spec.ret_type):
        returned, expected = (format_type_bare(each, options) for each in (written.ret_type, spec.ret_type))
        yield f'Hook "{hook}" returns "{returned}"; it may return "{expected}"', function


def _argument_problems(
    hook: str, argument: Argument, given: Type | None, allowed: Mapping[str, Type], options: Options
) -> Iterator[Problem]:
    name = argument.variable.name
    if argument.kind in (ArgKind.ARG_STAR, ArgKind.ARG_STAR2):
        return
    if argument.kind.is_named():
        yield f'Hook "{hook}" takes "{name}" by keyword only; hooks are called by position', argument
    if name not in allowed:
        if argument.kind.is_optional():
            return  # nobody passes it, and nobody needs to
        similar = get_close_matches(name, allowed, n=1, cutoff=_ALIKE)
        hint = f'; did you mean "{similar[0]}"?' if similar else ""
        may_take = f" (it may take {', '.join(allowed)})" if allowed else "; it takes none"
        yield f'Hook "{hook}" has no argument "{name}"{hint}{may_take}', argument
    elif given is not None and not is_subtype(allowed[name], given):
        taken, expected = (format_type_bare(each, options) for each in (given, allowed[name]))
        yield f'Hook "{hook}" takes "{name}" as "{taken}"; it is "{expected}"', argument
