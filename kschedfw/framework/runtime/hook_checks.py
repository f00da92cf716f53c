"""Checks of a plugin class's hooks, and of methods called by name like hooks, against their specifications.

Annotations are compared only as far as they are known. An argument or a result without an annotation may be
anything, and so may one whose annotation can't be evaluated, such as a name that only the type checker imports.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, Final, Union, get_args, get_origin
from weakref import WeakKeyDictionary

import numpy as np

from kschedfw.api.records import frozen
from kschedfw.framework import diagnosis, hookspecs
from kschedfw.framework import plugin as plugins
from kschedfw.framework.diagnosis import GivesEvidence
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.plugin import PROJECT, AnyPlugin, Plugin

_UNKNOWN = object()
"""An unknown type, which is compatible with all others."""

MARKER = f"{PROJECT}_impl"
"""The attribute in which pluggy's marker leaves its options."""

# difflib rates `node` and `node_info` at 0.62.
_ALIKE = 0.5


@frozen
class _Spec:
    """The arguments and the result of a hook, or of a method that is called by name like one.

    `noun` is its name in errors. Names in annotations are resolved in `namespace`.
    """

    noun: str
    signature: inspect.Signature
    namespace: dict[str, object]

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(self.signature.parameters)


@frozen
class _Implementation:
    """A plugin's method that implements a hook, or that is called by name like one."""

    name: str
    function: Callable[..., object]
    has_self: bool
    options: Mapping[str, object]

    @classmethod
    def hooks_of(cls, members: Mapping[str, object]) -> Iterator[_Implementation]:
        for name in sorted(members):
            function, has_self = _function_of(members[name])
            options = getattr(function, MARKER, None)
            if isinstance(options, dict) and inspect.isfunction(function):
                yield cls(options.get("specname") or name, function, has_self, options)


def _function_of(attribute: object) -> tuple[object, bool]:
    """Return a class attribute as a function, and whether the function takes self."""
    function = attribute.__func__ if isinstance(attribute, staticmethod | classmethod) else attribute
    return function, not isinstance(attribute, staticmethod)


def _members(plugin: type[AnyPlugin]) -> Mapping[str, object]:
    members: dict[str, object] = {}
    for base in reversed(plugin.__mro__):
        members.update(vars(base))
    return members


# Reading a configuration asks for each plugin many times.
_IMPLEMENTED: Final[WeakKeyDictionary[type[AnyPlugin], frozenset[str]]] = WeakKeyDictionary()


def implemented_hooks(plugin: type[AnyPlugin]) -> frozenset[str]:
    """Return the names of the hooks that methods of a plugin class implement, by their markers.

    They are looked for when a class is first asked about.
    """
    if (known := _IMPLEMENTED.get(plugin)) is None:
        names = (impl.name for impl in _Implementation.hooks_of(_members(plugin)))
        known = _IMPLEMENTED[plugin] = frozenset(names)
    return known


def hook_problems(plugin: type[AnyPlugin]) -> Iterator[str]:
    """Yield a sentence for each mismatch between the hooks of a plugin class and the hookspecs."""
    members = _members(plugin)
    implemented = set()
    for impl in _Implementation.hooks_of(members):
        implemented.add(impl.name)
        if impl.name in HOOKS:
            yield from _marker_problems(impl)
            yield from _problems(impl, _spec(impl.name), plugin)
        elif not impl.options.get("optionalhook"):
            similar = get_close_matches(impl.name, HOOKS, n=1)
            hint = f"did you mean {similar[0]!r}?" if similar else f"hooks are {', '.join(HOOKS)}"
            yield f"unknown hook {impl.name!r}; {hint}"
    for hook, spec in HOOKS.items():
        if hook not in implemented and callable(members.get(hook)):
            yield f"its method {hook!r} is not marked @hookimpl"
        if hook in implemented and spec.goes_with is not None and spec.goes_with not in implemented:
            yield f"it has the hook {hook!r} but not {spec.goes_with!r}, which it goes with"
    for method in ASKED_METHODS:
        function, has_self = _function_of(members.get(method))
        if inspect.isfunction(function) and function is not Plugin.sign:
            yield from _problems(_Implementation(method, function, has_self, {}), _spec(method), plugin)


_UNUSED: Final = {
    "wrapper": "is a wrapper; hooks of other plugins can't be wrapped",
    "hookwrapper": "is a wrapper; hooks of other plugins can't be wrapped",
    "tryfirst": "is marked tryfirst; plugins are called in the profile's order",
    "trylast": "is marked trylast; plugins are called in the profile's order",
}
"""Options of pluggy's marker that have no effect here, with the reason."""


def _marker_problems(impl: _Implementation) -> Iterator[str]:
    found = dict.fromkeys(why for option, why in _UNUSED.items() if impl.options.get(option))
    yield from (f"its hook {impl.name!r} {why}" for why in found)


def _problems(impl: _Implementation, spec: _Spec, plugin: type[AnyPlugin]) -> Iterator[str]:
    if impl.options.get("wrapper") or impl.options.get("hookwrapper"):
        # A wrapper is a generator, so further checks would only add noise.
        return
    if inspect.iscoroutinefunction(impl.function) or inspect.isasyncgenfunction(impl.function):
        yield f"its {spec.noun} is async, and nobody would await it; write def {impl.function.__name__}"
        return
    signature = inspect.signature(impl.function)
    taken = list(signature.parameters.values())
    if impl.has_self and (not taken or taken[0].name in spec.arguments):
        arguments = ", ".join(["self", *(each.name for each in taken)])
        yield f"its {spec.noun} has no self; write def {impl.function.__name__}({arguments})"
    elif impl.has_self:
        del taken[0]
    for each in taken:
        yield from _argument_problems(impl, spec, each, plugin)
    expected = spec.signature.return_annotation
    if not _covers(_of_spec(impl.name, expected), _evaluated(signature.return_annotation, impl, plugin)):
        yield f"its {spec.noun} returns {_shown(signature.return_annotation)}; it may return {expected}"


def _argument_problems(
    impl: _Implementation, spec: _Spec, argument: inspect.Parameter, plugin: type[AnyPlugin]
) -> Iterator[str]:
    name, allowed = argument.name, spec.arguments
    if argument.kind is inspect.Parameter.KEYWORD_ONLY:
        yield f"its {spec.noun} takes {name} by keyword only; hooks are called by position"
    if argument.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        stars = "*" if argument.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        yield f"its {spec.noun} takes {stars}{name}, which would be empty{_may_take('', allowed)}"
        return
    has_default = argument.default is not argument.empty
    if name not in allowed:
        # With a default it may keep an argument of its own.
        if not has_default:
            yield f"its {spec.noun} has no argument {name!r}{_may_take(name, allowed)}"
        return
    # pluggy never passes these.
    if has_default:
        yield f"its {spec.noun} gives {name} a default; hooks' arguments have none"
    expected = spec.signature.parameters[name].annotation
    if not _covers(_evaluated(argument.annotation, impl, plugin), _of_spec(impl.name, expected)):
        yield f"its {spec.noun} takes {name} as {_shown(argument.annotation)}; it is {expected}"


def _may_take(name: str, allowed: Sequence[str]) -> str:
    if not allowed:
        return "; it takes none"
    similar = get_close_matches(name, allowed, n=1, cutoff=_ALIKE)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"{hint} (it may take {', '.join(allowed)})"


# Types


@cache
def _spec(name: str) -> _Spec:
    if name in HOOKS:
        return _Spec(f"hook {name!r}", inspect.signature(getattr(hookspecs, name)), vars(hookspecs))
    function, module = _ASKED[name]
    signature = inspect.signature(function)
    without_self = list(signature.parameters.values())[1:]
    return _Spec(f"method {name!r}", signature.replace(parameters=without_self), vars(module))


_ASKED: Final[Mapping[str, tuple[Callable[..., object], types.ModuleType]]] = {
    "evidence": (GivesEvidence.evidence, diagnosis),
    "sign": (Plugin.sign, plugins),
}

ASKED_METHODS: Final[Mapping[str, tuple[str, ...]]] = {name: _spec(name).arguments for name in _ASKED}
"""The arguments of methods that aren't hooks but, like hooks, take any subset of their arguments, by name."""


@cache
def _of_spec(name: str, annotation: str) -> object:
    return eval(annotation, _spec(name).namespace)


def _evaluated(annotation: object, impl: _Implementation, plugin: type[AnyPlugin]) -> object:
    if annotation is inspect.Parameter.empty:
        return _UNKNOWN
    if not isinstance(annotation, str):
        return annotation
    function = inspect.unwrap(impl.function)
    try:
        return eval(_compiled(annotation), getattr(function, "__globals__", {}), vars(plugin))
    # Evaluating may raise anything: for an import for the type checker alone, a local class, and so on.
    except Exception:
        return _UNKNOWN


# Plugins write the same few annotations, and compiling takes most of an evaluation's time.
@lru_cache(maxsize=256)
def _compiled(annotation: str) -> types.CodeType:
    return compile(annotation, "<annotation>", "eval")


def _covers(wide: object, narrow: object) -> bool:
    """Return whether a value of the narrow type may be passed as the wide type; True if in doubt."""
    alternatives = _alternatives(wide)
    return all(any(_takes(each, one) for each in alternatives) for one in _alternatives(narrow))


def _alternatives(hint: object) -> Sequence[object]:
    if hint is None:
        return (type(None),)
    if get_origin(hint) in (Union, types.UnionType):
        return [each for one in get_args(hint) for each in _alternatives(one)]
    return (hint,)


def _takes(wide: object, narrow: object) -> bool:
    """Return what `_covers` returns, for types that are no unions."""
    one, other = get_origin(wide) or wide, get_origin(narrow) or narrow
    if wide is Any or narrow is Any or not (isinstance(one, type) and isinstance(other, type)):
        return True
    if other is object or _is_protocol(one) or _is_protocol(other):
        # `object` says nothing about the type, and protocols aren't compared.
        return True
    if one is int and issubclass(other, np.integer):
        # NumPy's integers are valid scores.
        return True
    if not issubclass(other, one):
        return False
    ours, theirs = get_args(wide), get_args(narrow)
    if one is np.ndarray or len(ours) != len(theirs):
        # Shapes and dtypes are for the type checker.
        return True
    return all(map(_covers, ours, theirs))


def _is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False))


def _shown(annotation: object) -> str:
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
