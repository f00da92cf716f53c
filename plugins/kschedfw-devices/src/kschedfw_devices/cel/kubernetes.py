"""Kubernetes' own types in CEL: quantities and semantic versions."""

import math
import re
from collections.abc import Callable
from functools import total_ordering
from typing import ClassVar, Final

import attrs

from kschedfw.api import Quantity, QuantityError
from kschedfw_devices.cel.functions import accepts, overload, overloads
from kschedfw_devices.cel.values import EvaluationError, Value

# --- Semantic versions


@total_ordering
@attrs.frozen
class Version:
    """A semantic version (2.0.0); order and equality ignore the build metadata."""

    cel_name: ClassVar = "kubernetes.Semver"

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = attrs.field(default=(), eq=False)

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Read `1.2.3-rc.1+build`.

        Raises:
            ValueError: it is no version; the text is that of Kubernetes' version library.
        """
        return _parse_version(text)

    def __lt__(self, other: "Version") -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._order < other._order

    @property
    def _order(self) -> tuple[object, ...]:
        # A version comes after its prereleases; numbers come before words, and fewer parts before more.
        parts = tuple((isinstance(p, str), p) for p in self.prerelease)
        return (self.major, self.minor, self.patch, not self.prerelease, parts)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return text + ("+" + ".".join(self.build) if self.build else "")


_NUMBER: Final = re.compile(r"[0-9]+")
_WORD: Final = re.compile(r"[0-9A-Za-z-]+")
_MAX_NUMBER: Final = 2**64 - 1


def _parse_version(text: str) -> Version:
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _version_number("Major", parts[0]), _version_number("Minor", parts[1])
    patch, plus, build = parts[2].partition("+")
    patch, dash, prerelease = patch.partition("-")
    number = _version_number("Patch", patch)
    return Version(
        major,
        minor,
        number,
        tuple(_prerelease(p) for p in prerelease.split(".")) if dash else (),
        tuple(_build(p) for p in build.split(".")) if plus else (),
    )


def _version_number(name: str, text: str) -> int:
    if not text.isascii() or any(not c.isdigit() for c in text):
        raise ValueError(f'Invalid character(s) found in {name.lower()} number "{text}"')
    if len(text) > 1 and text.startswith("0"):
        raise ValueError(f'{name} number must not contain leading zeroes "{text}"')
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _MAX_NUMBER:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if _NUMBER.fullmatch(text):
        if len(text) > 1 and text.startswith("0"):
            raise ValueError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        if len(text) > 20 or int(text) > _MAX_NUMBER:
            raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
        return int(text)
    if not _WORD.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in prerelease "{text}"')
    return text


def _build(text: str) -> str:
    if not text:
        raise ValueError("Build meta data is empty")
    if not _WORD.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in build meta data "{text}"')
    return text


def _normalized(text: str) -> str:
    """Make a version of a text that is nearly one: a leading `v`, leading zeroes and missing parts are allowed."""
    text = text.removeprefix("v")
    parts = text.split(".", 2)
    for i, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[i] = stripped if stripped and stripped[0].isdigit() else "0" + stripped
    if len(parts) < 3:
        if any(sign in parts[-1] for sign in "+-"):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


@overload("semver(string) -> semver", "semver(string, bool) -> semver")
def _semver(text: str, normalize: bool = False) -> Version:
    try:
        return Version.parse(_normalized(text) if normalize else text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


overload("isSemver(string) -> bool", "isSemver(string, bool) -> bool")(accepts(_semver))


def _signed(number: int) -> int:
    """Return a uint64 converted to int64."""
    return number if number < 2**63 else number - 2**64


_OF_VERSION: Final[dict[str, Callable[[Version], int]]] = {
    "<semver>.major() -> int": lambda version: _signed(version.major),
    "<semver>.minor() -> int": lambda version: _signed(version.minor),
    "<semver>.patch() -> int": lambda version: _signed(version.patch),
}
overloads(_OF_VERSION)


# --- Quantities


@attrs.frozen
class Amount:
    """A quantity as CEL sees it."""

    cel_name: ClassVar = "kubernetes.Quantity"

    quantity: Quantity
    whole: bool = attrs.field(default=True, eq=False)
    """False: it was written with a fraction or a small suffix, so it is no integer even if it has the value of one."""

    @classmethod
    def of(cls, quantity: Quantity) -> "Amount":
        return cls(quantity)

    def __lt__(self, other: "Amount") -> bool:
        return self.quantity < other.quantity

    def integer(self) -> int | None:
        """Return the amount if it is an int64 that Kubernetes keeps as one; else None."""
        return self.quantity.as_int64() if self.whole else None

    def plus(self, other: "Amount") -> "Amount":
        # An exponent may be 2³¹: the sum of 1e2147483647 and 1 has as many digits.
        if math.isinf(float(self.quantity)) or math.isinf(float(other.quantity)):
            raise EvaluationError("quantity is too large to be added to")
        return Amount(self.quantity + other.quantity, self.whole and other.whole)

    @classmethod
    def of_value(cls, value: "Amount | int") -> "Amount":
        return value if isinstance(value, Amount) else cls(Quantity.parse(value))


_FRACTIONAL: Final = re.compile(r"[+-]?[0-9]*(?:\.[0-9]+.*|\.?[num]|\.?[eE]-0*[1-9].*)")


@overload("quantity(string) -> quantity")
def _quantity(text: str) -> Amount:
    try:
        return Amount(Quantity.parse(text), _FRACTIONAL.fullmatch(text) is None)
    except QuantityError as error:
        # Kubernetes' part of the text, without the value in front of it.
        raise EvaluationError(str(error).rpartition(": ")[2]) from None


def _as_integer(amount: Amount) -> int:
    value = amount.integer()
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


_OF_QUANTITY: Final[dict[str, Callable[[Amount], Value]]] = {
    "sign(quantity) -> int": lambda amount: amount.quantity.sign,
    "<quantity>.asApproximateFloat() -> double": lambda amount: float(amount.quantity),
    "<quantity>.asInteger() -> int": _as_integer,
    "<quantity>.isInteger() -> bool": lambda amount: amount.integer() is not None,
}
overloads(_OF_QUANTITY)
overload("isQuantity(string) -> bool")(accepts(_quantity))


@overload("<quantity>.add(quantity) -> quantity", "<quantity>.add(int) -> quantity")
def _add(amount: Amount, other: Amount | int) -> Amount:
    return amount.plus(Amount.of_value(other))


@overload("<quantity>.sub(quantity) -> quantity", "<quantity>.sub(int) -> quantity")
def _sub(amount: Amount, other: Amount | int) -> Amount:
    less = Amount.of_value(other)
    return amount.plus(Amount(-less.quantity, less.whole))


# --- What quantities and versions have in common

for _kind in ("quantity", "semver"):
    overloads(
        {
            f"<{_kind}>.isGreaterThan({_kind}) -> bool": lambda a, b: b < a,
            f"<{_kind}>.isLessThan({_kind}) -> bool": lambda a, b: a < b,
            f"<{_kind}>.compareTo({_kind}) -> int": lambda a, b: (b < a) - (a < b),
        }
    )
