"""A plugin for mypy that finds hooks that don't fit their hookspecs: `plugins = ["kschedfw.mypy"]` in its settings.

It finds what a Framework refuses at run time: a hook that doesn't exist or isn't marked, an argument that the
hook doesn't have or that has another type, a result of another type, `async def`, a missing `self`, an option
of pluggy's that has no effect. The methods `evidence` and `sign` are checked in classes that have a hook. Types
are compared by mypy's rules. A hook that its class says is pure, and whose source shows that it isn't, is an error,
too. All errors have the code `kschedfw`, by which a module can be left out of the check.
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
    CallExpr,
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
    TypeInfo,
)
from mypy.options import Options
from mypy.plugin import ClassDefContext, MethodContext, Plugin
from mypy.subtypes import is_subtype
from mypy.types import CallableType, Type

from kschedfw.mypy.purity import impurities

HOOK: Final = ErrorCode("kschedfw", "Check that the hooks of kschedfw's plugins fit their specs", "Plugins")

_HOOKSPECS: Final = "kschedfw.framework.hookspecs"
_HOOKIMPL: Final = "kschedfw.framework.plugin.hookimpl"
_PLUGIN: Final = "kschedfw.framework.plugin.Plugin"
_ASKED: Final = {
    "evidence": ("kschedfw.framework.diagnosis", "GivesEvidence", "evidence"),
    # `Plugin.sign` is declared so that any signature may override it; this one has the same arguments and result.
    "sign": ("kschedfw.framework.plugin", "Plugin", "sign_for_batch"),
}
"""Methods that take subsets of their arguments as hooks do, and where their whole signature is."""
_SPECIFYING: Final = (_HOOKSPECS, *(module for module, _, _ in _ASKED.values()))
_WITHOUT_EFFECT: Final = ("tryfirst", "trylast", "wrapper", "hookwrapper")
_ALIKE: Final = 0.5  # the cutoff that the framework uses for the same suggestion at run time
_FROM_HERE: Final = -1
"""The line of a dependency that stands on no line of the file."""
_PRIORITY: Final = 10
"""mypy's priority of an ordinary import (`mypy.build.PRI_MED`)."""

Problem = tuple[str, Context]


def plugin(version: str) -> type[Plugin]:  # noqa: ARG001  # mypy calls it with its version
    """Return the class of the plugin; mypy calls this by name."""
    return HookChecker


class HookChecker(Plugin):
    """A check of every method that is marked `@hookimpl`; of `@hookimpl(…)` only the options."""

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Return the hookspecs and the classes with other checked methods, for every file that may have a hook."""
        names = {name for each in file.imports for name in _imported(each)}
        if file.fullname in _SPECIFYING or not any(name.partition(".")[0] == "kschedfw" for name in names):
            return []
        return [(_PRIORITY, module, _FROM_HERE) for module in _SPECIFYING]

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return the check of methods marked by kschedfw's marker, or another project's."""
        is_marker = fullname.startswith("pluggy.") and fullname.endswith(".HookimplMarker.__call__")
        return _look if is_marker else None

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Return the search for unmarked hooks; mypy offers no other place that sees each class."""
        return None if fullname.startswith("builtins.") else self._find_unmarked

    def _find_unmarked(self, context: ClassDefContext) -> None:
        definition = context.cls
        if not any(base.fullname == _PLUGIN for base in definition.info.mro[1:]):
            return
        for method in definition.defs.body:
            if isinstance(method, FuncDef) and self._is_hook(method.name):
                text = f'Method "{method.name}" has the name of a hook, and is not marked @hookimpl'
                context.api.fail(text, method, code=HOOK)

    def _is_hook(self, name: str) -> bool:
        symbol = self.lookup_fully_qualified(f"{_HOOKSPECS}.{name}")
        return symbol is not None and isinstance(symbol.node, Decorator)


def _imported(statement: ImportBase) -> Iterable[str]:
    match statement:
        case Import():
            return [name for name, _ in statement.ids]
        case ImportFrom() | ImportAll():
            return [statement.id]
    return []


def _look(context: MethodContext) -> Type:
    marked, checker = context.context, cast(TypeChecker, context.api)
    if isinstance(marked, CallExpr) and _has([marked.callee], _HOOKIMPL):
        for name in marked.arg_names:
            if name in _WITHOUT_EFFECT:
                checker.fail(
                    f'"{name}" has no effect; hooks are called in the profile\'s order', marked, code=HOOK
                )
    if isinstance(marked, Decorator) and _has(marked.decorators, _HOOKIMPL):
        problems = _problems(marked.func, _specs(checker.modules), checker.options)
        for text, where in (*problems, *_problems_of_class(marked, checker)):
            checker.fail(text, where, code=HOOK)
        for text, where in impurities(marked):
            checker.fail(f'Hook "{marked.func.name}" says that it is pure, and {text}', where, code=HOOK)
    return context.default_return_type


def _problems_of_class(marked: Decorator, checker: TypeChecker) -> Iterator[Problem]:
    """Yield problems of the unmarked `evidence` and `sign`, reported at the first hook of their class."""
    info = marked.func.info
    if not info or next(filter(_is_marked, info.defn.defs.body), None) is not marked:
        return
    for name, place in _ASKED.items():
        symbol, spec = info.names.get(name), _type_of_method(*place, checker.modules)
        if symbol is not None and isinstance(symbol.node, FuncDef) and spec is not None:
            yield from _method_problems(symbol.node, f'Method "{name}"', spec, checker.options)


def _type_of_method(
    module: str, owner: str, method: str, modules: Mapping[str, MypyFile]
) -> CallableType | None:
    """Return the type of a method of a class, without self."""
    symbol = modules[module].names.get(owner) if module in modules else None
    found = (
        symbol.node.names.get(method) if symbol is not None and isinstance(symbol.node, TypeInfo) else None
    )
    if found is None or not isinstance(found.node, FuncDef) or not isinstance(found.node.type, CallableType):
        return None
    whole = found.node.type
    return whole.copy_modified(
        arg_types=whole.arg_types[1:], arg_kinds=whole.arg_kinds[1:], arg_names=whole.arg_names[1:]
    )


def _is_marked(statement: Context) -> bool:
    return isinstance(statement, Decorator) and _has(statement.decorators, _HOOKIMPL)


def _has(decorators: Iterable[Expression], name: str) -> bool:
    return any(isinstance(each, RefExpr) and each.fullname == name for each in decorators)


def _specs(modules: Mapping[str, MypyFile]) -> Mapping[str, CallableType]:
    """Return the types of the hookspecs."""
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
    yield from _method_problems(function, f'Hook "{hook}"', spec, options)


def _method_problems(
    function: FuncDef, title: str, spec: CallableType, options: Options
) -> Iterator[Problem]:
    if function.is_coroutine:
        yield f"{title} is async, and nobody would await it", function
        return
    written = function.type if isinstance(function.type, CallableType) else None
    allowed = {name: kind for name, kind in zip(spec.arg_names, spec.arg_types, strict=True) if name}
    first = 0 if function.is_static else 1
    if first and (not function.arguments or function.arguments[0].variable.name in allowed):
        first = 0
        yield f"{title} has no self", function
    for position, argument in enumerate(function.arguments[first:], start=first):
        given = None if written is None else written.arg_types[position]
        yield from _argument_problems(title, argument, given, allowed, options)
    if written is not None and not is_subtype(written.ret_type, spec.ret_type):
        returned, expected = (format_type_bare(each, options) for each in (written.ret_type, spec.ret_type))
        yield f'{title} returns "{returned}"; it may return "{expected}"', function


def _argument_problems(
    title: str, argument: Argument, given: Type | None, allowed: Mapping[str, Type], options: Options
) -> Iterator[Problem]:
    name = argument.variable.name
    may_take = f" (it may take {', '.join(allowed)})" if allowed else "; it takes none"
    if argument.kind in (ArgKind.ARG_STAR, ArgKind.ARG_STAR2):
        stars = "*" if argument.kind is ArgKind.ARG_STAR else "**"
        yield f'{title} takes "{stars}{name}", which would be empty{may_take}', argument
        return
    if argument.kind.is_named():
        yield f'{title} takes "{name}" by keyword only; hooks are called by position', argument
    if name not in allowed:
        if argument.kind.is_optional():
            return  # it has a default, so the framework needn't pass it
        similar = get_close_matches(name, allowed, n=1, cutoff=_ALIKE)
        hint = f'; did you mean "{similar[0]}"?' if similar else ""
        yield f'{title} has no argument "{name}"{hint}{may_take}', argument
    elif given is not None and not is_subtype(allowed[name], given):
        taken, expected = (format_type_bare(each, options) for each in (given, allowed[name]))
        yield f'{title} takes "{name}" as "{taken}"; it is "{expected}"', argument
