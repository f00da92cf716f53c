"""Kubernetes' named formats in CEL: the syntax of names of objects, labels, dates and so on."""

import base64
import datetime
import re
from collections.abc import Callable
from typing import ClassVar, Final

import attrs

from kschedfw_devices.cel.functions import overload
from kschedfw_devices.cel.network import is_url
from kschedfw_devices.cel.values import NONE, Optional


@attrs.frozen
class Format:
    """A named format; `validate` returns the problems of a text."""

    cel_name: ClassVar = "kubernetes.NamedFormat"

    name: str
    pattern_size: int = attrs.field(eq=False)
    """The length of the pattern, as costs are counted."""
    validate: Callable[[str], list[str]] = attrs.field(eq=False)


_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE: Final = re.compile(rf"({_QUALIFIED.pattern})?")
_UUID: Final = re.compile(r"(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})")


def _fits(
    pattern: re.Pattern[str], length: int | None, what: str, *, prefix: bool = False
) -> Callable[[str], list[str]]:
    """Return the check for a pattern and a length; a prefix may end in a dash."""

    def validate(text: str) -> list[str]:
        if length is not None and len(text.encode(errors="surrogatepass")) > length:
            return [f"must be no more than {length} characters"]
        checked = text[:-1] + "a" if prefix and len(text) > 1 and text.endswith("-") else text
        if pattern.fullmatch(checked):
            return []
        return [f"{what} (regex used for validation is '{pattern.pattern}')"]

    return validate


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if slash and (_SUBDOMAIN_CHECK(prefix) != [] or "/" in prefix):
        return ["prefix part must be a DNS subdomain"]
    return _NAME_CHECK(name)


_SUBDOMAIN_CHECK: Final = _fits(_SUBDOMAIN, 253, "a lowercase RFC 1123 subdomain is required")
_NAME_CHECK: Final = _fits(
    _QUALIFIED, 63, "name part must consist of alphanumeric characters, '-', '_' or '.'"
)
_FORMATS: Final[dict[str, Format]] = {}


def _declare_format(function: str, name: str, size: int, validate: Callable[[str], list[str]]) -> None:
    made = Format(name, size, validate)
    _FORMATS[function] = made
    overload(f"format.{function}() -> format")(lambda: made)


for _name, _pattern, _length, _size, _what in (
    ("1123Label", _LABEL, 63, 30, "a lowercase RFC 1123 label is required"),
    ("1123Subdomain", _SUBDOMAIN, 253, 60, "a lowercase RFC 1123 subdomain is required"),
    ("1035Label", _LABEL_1035, 63, 30, "a DNS-1035 label is required"),
):
    for _suffix in ("", "Prefix"):
        _check = _fits(_pattern, _length, _what, prefix=bool(_suffix))
        _declare_format(f"dns{_name}{_suffix}", f"DNS{_name}{_suffix}", _size, _check)
_declare_format("qualifiedName", "QualifiedName", 60, _qualified_name)
_declare_format("labelValue", "LabelValue", 40, _fits(_LABEL_VALUE, 63, "a valid label is required"))


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return ["invalid base64"]
    return []


def _date(text: str) -> list[str]:
    try:
        datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC)
    except ValueError:
        return ["invalid date"]
    # strptime takes months and days of one digit, too.
    return [] if _DATE.fullmatch(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    date, time = text[:10], _TIME.fullmatch(text[10:])
    return (
        [] if time and not _date(date) and int(time[1]) <= 23 and int(time[2]) <= 59 else ["invalid datetime"]
    )


_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(
    r"[tT]([0-9]{2}):([0-9]{2}):[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)

_declare_format("uri", "URI", 1103, lambda text: [] if is_url(text) else [f"{text!r} is no URI"])
_declare_format("uuid", "uuid", 70, _fits(_UUID, None, "does not match the UUID format"))
_declare_format("byte", "byte", 84, _byte)
_declare_format("date", "date", 72, _date)
_declare_format("datetime", "datetime", 72, _datetime)


@overload("format.named(string) -> optional(format)")
def _named(name: str) -> Optional:
    found = _FORMATS.get(name)
    return NONE if found is None else Optional(found)


@overload("<format>.validate(string) -> optional(list(string))")
def _validate(format: Format, text: str) -> Optional:
    wrong = format.validate(text)
    return Optional(wrong) if wrong else NONE
