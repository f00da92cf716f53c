"""Checks the hooks of a plugin class against the hookspecs.

Of annotations only what is written is compared: an argument or a result without one may be anything, and so may one
whose annotation can't be evaluated, such as a name that only the type checker imports.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Union, get_args, get_origin

import attrs
import numpy as np

from kschedfw.framework import hookspecs
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.plugin import PROJECT, AnyPlugin

_UNKNOWN = object()
"""A type that is compatible with all others, since nothing is known of it."""

_ALIKE = 0.5  # `node` is as like to `node_info` as 0.62


@attrs.frozen
class _Hookimpl:
    """A method that is marked as a hook."""

    hook: str
    function: Callable[..., object]
    has_self: bool
    options: Mapping[str, object]

    @classmethod
    def all_of(cls, members: Mapping[str, object]) -> Iterator[_Hookimpl]:
        for name in sorted(members):
            attribute = members[name]
            is_static = isinstance(attribute, staticmethod)
            function = attribute.__func__ if isinstance(attribute, staticmethod | classmethod) else attribute
            options = getattr(function, f"{PROJECT}_impl", None)
            if inspect.isfunction(function) and isinstance(options, dict):
                yield cls(options.get("specname") or name, function, not is_static, options)


def hook_problems(plugin: type[AnyPlugin]) -> Iterator[str]:
    """Everything about the hooks of a plugin class that doesn't fit the hookspecs, a sentence each."""
    members: dict[str, object] = {}
    for base in reversed(plugin.__mro__):
        members.update(vars(base))
    implemented = set()
    for impl in _Hookimpl.all_of(members):
        implemented.add(impl.hook)
        if impl.hook in HOOKS:
            yield from _problems(impl, plugin)
        elif not impl.options.get("optionalhook"):
            similar = get_close_matches(impl.hook, HOOKS, n=1)
            hint = f"did you mean {similar[0]!r}?" if similar else f"hooks are {', '.join(HOOKS)}"
            yield f"unknown hook {impl.hook!r}; {hint}"
    for hook, spec in HOOKS.items():
        if hook not in implemented and callable(members.get(hook)):
            yield f"its method {hook!r} is not marked @hookimpl"
        if hook in implemented and spec.goes_with is not None and spec.goes_with not in implemented:
            yield f"it has the hook {hook!r} but not {spec.goes_with!r}, which it goes with"


def _problems(impl: _Hookimpl, plugin: type[AnyPlugin]) -> Iterator[str]:
    hook, allowed = impl.hook, HOOKS[impl.hook].arguments
    if impl.options.get("wrapper") or impl.options.get("hookwrapper"):
        yield f"its hook {hook!r} is a wrapper; hooks of other plugins can't be wrapped"
        return
    if inspect.iscoroutinefunction(impl.function) or inspect.isasyncgenfunction(impl.function):
        yield f"its hook {hook!r} is async, and nobody would await it; write def {impl.function.__name__}"
        return
    signature = inspect.signature(impl.function)
    taken = list(signature.parameters.values())
    if impl.has_self and (not taken or taken[0].name in allowed):
        arguments = ", ".join(["self", *(each.name for each in taken)])
        yield f"its hook {hook!r} has no self; write def {impl.function.__name__}({arguments})"
    elif impl.has_self:
        del taken[0]
    for each in taken:
        yield from _argument_problems(impl, each, plugin)
    expected = _spec(hook).return_annotation
    if not _covers(_of_spec(expected), _evaluated(signature.return_annotation, impl, plugin)):
        yield f"its hook {hook!r} returns {_shown(signature.return_annotation)}; it may return {expected}"


def _argument_problems(
    impl: _Hookimpl, argument: inspect.Parameter, plugin: type[AnyPlugin]
) -> Iterator[str]:
    hook, name, allowed = impl.hook, argument.name, HOOKS[impl.hook].arguments
    if argument.kind is inspect.Parameter.KEYWORD_ONLY:
        yield f"its hook {hook!r} takes {name} by keyword only; hooks are called by position"
    if argument.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return
    has_default = argument.default is not argument.empty
    if name not in allowed:
        if not has_default:  # or it is left at that
            yield f"its hook {hook!r} has no argument {name!r}{_may_take(name, allowed)}"
        return
    if has_default:  # pluggy never passes these
        yield f"its hook {hook!r} gives {name} a default; hooks' arguments have none"
    expected = _spec(hook).parameters[name].annotation
    if not _covers(_evaluated(argument.annotation, impl, plugin), _of_spec(expected)):
        yield f"its hook {hook!r} takes {name} as {_shown(argument.annotation)}; it is {expected}"


def _may_take(name: str, allowed: Sequence[str]) -> str:
    if not allowed:
        return "; it takes none"
    similar = get_close_matches(name, allowed, n=1, cutoff=_ALIKE)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"{hint} (it may take {', '.join(allowed)})"


# Types


@cache
def _spec(hook: str) -> inspect.Signature:
    return inspect.signature(getattr(hookspecs, hook))


@cache
def _of_spec(annotation: str) -> object:
    return eval(annotation, vars(hookspecs))


def _evaluated(annotation: object, impl: _Hookimpl, plugin: type[AnyPlugin]) -> object:
    if annotation is inspect.Parameter.empty:
        return _UNKNOWN
    if not isinstance(annotation, str):
        return annotation
    function = inspect.unwrap(impl.function)
    try:
        return eval(annotation, getattr(function, "__globals__", {}), dict(vars(plugin)))
    except Exception:  # whatever evaluating may raise: an import for the type checker alone, a local class …
        return _UNKNOWN


def _covers(wide: object, narrow: object) -> bool:
    """Whether a value of the narrow type may be taken for one of the wide type; if in doubt, it may."""
    alternatives = _alternatives(wide)
    return all(any(_takes(each, one) for each in alternatives) for one in _alternatives(narrow))


def _alternatives(hint: object) -> Sequence[object]:
    if hint is None:
        return (type(None),)
    if get_origin(hint) in (Union, types.UnionType):
        return [each for one in get_args(hint) for each in _alternatives(one)]
    return (hint,)


def _takes(wide: object, narrow: object) -> bool:
    """The same for types that are no unions."""
    one, other = get_origin(wide) or wide, get_origin(narrow) or narrow
    if wide is Any or narrow is Any or not (isinstance(one, type) and isinstance(other, type)):
        return True
    if other is object or _is_protocol(one) or _is_protocol(other):
        return True  # who writes `object` doesn't say
    if one is int and issubclass(other, np.integer):
        return True  # as scores, they are taken for what they are
    if not issubclass(other, one):
        return False
    ours, theirs = get_args(wide), get_args(narrow)
    if one is np.ndarray or len(ours) != len(theirs):
        return True  # shapes and dtypes are for the type checker
    return all(map(_covers, ours, theirs))


def _is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False))


def _shown(annotation: object) -> str:
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
