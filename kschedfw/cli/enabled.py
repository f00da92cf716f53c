"""Plugins, weights, arguments and other names in options; for an unknown one, similar names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from kschedfw.api.errors import KschedfwError
from kschedfw.config import default_profile
from kschedfw.framework.profile import EnabledPlugin, Profile

# kube-scheduler's weights have 32 bits.
MAX_WEIGHT = (1 << 31) - 1


class UsageError(KschedfwError):
    """The error of invalid arguments, or of arguments that exclude each other."""


def enabled_plugin(option: str, text: str) -> EnabledPlugin:
    """Return the plugin in `NAME` or `NAME=WEIGHT`.

    Raises:
        UsageError: the weight is invalid; names the option.
    """
    name, equals, weight = text.partition("=")
    if not equals:
        return EnabledPlugin(name)
    if not weight.isdecimal() or not 1 <= int(weight) <= MAX_WEIGHT:
        raise UsageError(f"{option} {text}: the weight must be 1–{MAX_WEIGHT}")
    return EnabledPlugin(name, int(weight))


def given_args(option: str, text: str) -> tuple[str, Mapping[str, object]]:
    """Return the plugin and the arguments in `NAME=JSON`, with keys as in a configuration.

    Raises:
        UsageError: the text isn't of this form; names the option.
    """
    name, equals, document = text.partition("=")
    if not equals:
        raise UsageError(f"{option} {text}: must be NAME=JSON, such as {text}={{}}")
    try:
        args = json.loads(document)
    except ValueError as error:
        raise UsageError(f"{option} {text}: must be NAME=JSON; {error}") from None
    if not isinstance(args, dict):
        raise UsageError(f'{option} {text}: the arguments must be an object, such as {{"key": "value"}}')
    return name, args


def changed_default_profile(
    enable: Sequence[str], disable: Sequence[str], args: Sequence[str] = ()
) -> Profile:
    """Return the default profile without some plugins, and with others added at the end or with a new weight.

    Raises:
        UsageError: a weight is invalid, arguments can't be read, or the profile lacks a plugin to disable or with
            arguments.
    """
    plugins = {plugin.name: plugin for plugin in default_profile().multi_point}
    for name in disable:
        if name not in plugins:
            similar = get_close_matches(name, plugins, n=1)
            hint = f"did you mean {similar[0]!r}?" if similar else f"it has {', '.join(plugins)}"
            raise UsageError(f"--disable {name}: the default profile has no such plugin; {hint}")
        del plugins[name]
    for text in enable:
        plugin = enabled_plugin("--enable", text)
        plugins[plugin.name] = plugin
    given = dict(given_args("--args", text) for text in args)
    for name in given:
        if name not in plugins:
            raise UsageError(f"--args {name}: the profile has no such plugin; --enable {name} adds it")
    return Profile(plugins.values(), args=given)


_NAMED = 3
"""The most names that the error about an unknown name lists."""


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that isn't known, and say which are similar.

    Raises:
        UsageError: there is none of this name.
    """
    names = sorted(set(known))
    if name in names:
        return
    if not names:
        hint = f", and no other {kind} either"
    elif similar := get_close_matches(name, names, n=_NAMED):
        hint = f"; did you mean {' or '.join(similar)}?"
    else:
        nearest = get_close_matches(name, names, n=_NAMED, cutoff=0.0)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        hint = f"; there {'is' if len(names) == 1 else 'are'} {', '.join(nearest)}{more}"
    raise UsageError(f"{kind} {name!r}: there is none of this name{hint}")
