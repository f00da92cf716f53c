"""Whether a configuration was refused for the reason for which kube-scheduler refused it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kschedfw.api.field_errors import FieldError

_UNKNOWN_PLUGIN = re.compile(r'scheduler name (?P<profile>.+?): \w+Plugin "(?P<name>.+)" does not exist$')
_MISPLACED = re.compile(r'plugin "(?P<name>.+)" does not extend (?P<point>\w+)Plugin plugin$')
_ARGS = re.compile(r'initializing plugin ".+?": (?P<error>.+)$', re.DOTALL)
_UNKNOWN_FIELD = re.compile(r'unknown field "(?P<path>.+?)"')
_TWICE = re.compile(r'key ".+" already set in map')
_VERSION = re.compile(r'no kind ".+" is registered for version ".+?"')


def same_reason(recorded: str, errors: Iterable[FieldError]) -> bool:
    """Whether the errors say what kube-scheduler said; they may say more, and name the place more exactly."""
    texts = [str(error) for error in errors]
    if match := _UNKNOWN_PLUGIN.search(recorded):
        return _some(texts, f'plugin "{match["name"]}" does not exist', f'profile "{match["profile"]}"')
    if match := _MISPLACED.search(recorded):
        point = match["point"][0].lower() + match["point"][1:]
        return _some(texts, f'plugin "{match["name"]}" does not extend {point};')
    if match := _ARGS.search(recorded):
        return any(text.endswith(f".args.{match['error']}") for text in texts)
    if paths := _UNKNOWN_FIELD.findall(recorded):
        return all(
            any(re.search(rf'unknown field "(.*\.)?{re.escape(path)}"', text) for text in texts)
            for path in paths
        )
    for pattern in (_TWICE, _VERSION):
        if match := pattern.search(recorded):
            return _some(texts, match[0])
    if recorded.startswith("Object '"):
        return _some(texts, recorded.partition(" in ")[0])
    if recorded.startswith("yaml: "):
        return any(text.startswith("yaml: ") for text in texts)
    if recorded.startswith("decoding ."):
        return recorded.removeprefix("decoding .") in texts
    return recorded in texts


def _some(texts: Sequence[str], *parts: str) -> bool:
    return any(all(part in text for part in parts) for text in texts)
