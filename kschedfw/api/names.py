"""The syntax of names, label keys and label values (apimachinery `validate/content`, v1.36).

Each function returns the problems of a text, in Kubernetes' words; an empty list means it is valid.
"""

from __future__ import annotations

import functools
import re
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"

_LABEL_WHY: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_WHY: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_QUALIFIED_WHY: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_VALUE_WHY: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE}')"
)

_LABEL_RE, _SUBDOMAIN_RE, _QUALIFIED_RE, _VALUE_RE = map(re.compile, (_LABEL, _SUBDOMAIN, _QUALIFIED, _VALUE))


@functools.lru_cache(maxsize=1 << 14)
def label_problems(text: str) -> tuple[str, ...]:
    """Return the problems of an RFC 1123 label: the name of a namespace, a container, a StatefulSet."""
    why = "must not contain dots" if _SUBDOMAIN_RE.fullmatch(text) else _LABEL_WHY
    return _problems(text, 63, _LABEL_RE, why)


@functools.lru_cache(maxsize=1 << 14)
def subdomain_problems(text: str) -> tuple[str, ...]:
    """Return the problems of an RFC 1123 subdomain: the name of most objects."""
    return _problems(text, 253, _SUBDOMAIN_RE, _SUBDOMAIN_WHY)


@functools.lru_cache(maxsize=1 << 14)
def label_value_problems(text: str) -> tuple[str, ...]:
    return _problems(text, 63, _VALUE_RE, _VALUE_WHY)


@functools.lru_cache(maxsize=1 << 14)
def qualified_name_problems(text: str) -> tuple[str, ...]:
    """Return the problems of a label's key or a resource's name: `name` or `domain/name`."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_QUALIFIED_WHY} {optional}",)
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {why}" for why in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {why}" for why in _problems(name, 63, _QUALIFIED_RE, _QUALIFIED_WHY)]
    return tuple(problems)


def _problems(text: str, longest: int, pattern: re.Pattern[str], why: str) -> tuple[str, ...]:
    problems = (f"must be no more than {longest} bytes",) if len(text.encode()) > longest else ()
    return problems if pattern.fullmatch(text) else (*problems, why)
