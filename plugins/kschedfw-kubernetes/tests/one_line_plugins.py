"""Plugins in one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kschedfw import Plugin, hookimpl

PluginClass = type[Plugin[Any]]


def plugin(name: str, /, **hooks: Callable[..., object]) -> PluginClass:
    """Return a plugin class whose hooks are the given functions, which take any of their hook's arguments, no self."""
    marked = {hook: staticmethod(hookimpl(function)) for hook, function in hooks.items()}
    return type(name, (Plugin,), {"name": name, **marked})


def answering(answer: object) -> Callable[[], object]:
    """Return a hook that takes no argument and always answers this; an exception is raised."""

    def hook() -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return hook
