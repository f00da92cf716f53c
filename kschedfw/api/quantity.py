"""Kubernetes' resource quantities: `100m`, `1.5Gi`, `2e3`.

The semantics are those of `resource.Quantity` in Kubernetes v1.36 (k8s.io/apimachinery, pkg/api/resource):
accepted texts, rounding, output, and the results of int64 overflows.

Two properties of that type matter here. When a quantity is read, it is rounded up to a multiple of a nano (10⁻⁹).
And a quantity has one of two forms, which differ only in special cases: *narrow*, an int64 with a power of ten, for
texts so short that they certainly fit; and *wide*, a big integer that counts nanos, for all others. An overflow of a
narrow one gives 0, that of a wide one wraps around modulo 2⁶⁴.
"""

import functools
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.records import frozen

__all__ = ["Quantity", "QuantityError", "QuantityFormat", "parse_quantity", "quantities", "wrapped"]


class QuantityFormat(StrEnum):
    """The family of suffixes a quantity was written with, and will be written with again."""

    # Suffixes n u m k M G T P E: powers of 1000.
    DECIMAL_SI = "DecimalSI"
    # Suffixes Ki Mi Gi Ti Pi Ei: powers of 1024.
    BINARY_SI = "BinarySI"
    # Exponents such as e3 or E-6.
    DECIMAL_EXPONENT = "DecimalExponent"


class QuantityError(KschedfwError, ValueError):
    """The error of a value that isn't a quantity. The text has the value, then Kubernetes' reason."""


_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

# The accepted texts. Unlike the expression in the error text, this one allows missing digits ("." and "m" are zero)
# and only one point. Possessive, so that a long wrong text takes linear time.
_SYNTAX: Final = re.compile(
    r"""(?P<sign> [+-]?+)
        (?P<zeros> 0*+) (?P<whole> [0-9]*+)
        (?: \. (?P<fraction> [0-9]*+) )?+
        (?P<suffix> [eEinumkKMGTP]*+ [+-]?+ [0-9]*+)""",
    re.VERBOSE,
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL: Final = {
    3 * i: text for i, text in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), start=-3)
}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
# By suffix: the power of two, the power of ten, and the format.
_SUFFIXES: Final = {text: (0, power, QuantityFormat.DECIMAL_SI) for power, text in _DECIMAL.items()} | {
    text: (10 * i, 0, QuantityFormat.BINARY_SI) for i, text in enumerate(_BINARY) if text
}

_NANO: Final = -9
_MILLI: Final = -3
_INT64_MAX: Final = 2**63 - 1
# A decimal number of so many digits always fits an int64.
_NARROW_DIGITS: Final = 18
# Python refuses to read or write integers of more than 4300 digits.
_MAX_LENGTH: Final = 4000
_TOO_LONG: Final = f"a quantity has at most {_MAX_LENGTH} characters"
# The white space that JSON leaves as it is inside a string.
_SPACE: Final = (
    " \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)


@frozen(repr=False, init=False)
class Quantity:
    """An exact amount, with the format it was written in. Made by `parse` or `parse_quantity`.

    Equality, order and hash go by the amount alone, like Kubernetes' `Cmp`: `1000m` equals `1`, and `1Ki` equals
    `1024`.
    """

    _unscaled: int
    """The amount is `_unscaled` · 10 ** `_scale`. No factor of ten is left in this; zero has scale 0."""
    _scale: int
    format: QuantityFormat = attrs.field(eq=False)
    _grain: int | None = attrs.field(eq=False)
    """None: narrow. Else wide, and Kubernetes' big integer counts units of 10 ** `_grain`."""
    _verbatim: str = attrs.field(eq=False)
    """The text it was read from where Kubernetes takes that for canonical, else empty."""

    def __init__(self, *parts: object) -> None:
        """Raise TypeError: quantities are read, not constructed.

        Raises:
            TypeError: always; says how a quantity is made.
        """
        text = parts[0] if len(parts) == 1 else "100m"
        raise TypeError(f"a quantity is made from a text or a number: Quantity.parse({text!r})")

    @classmethod
    def parse(cls, text: str | int | float) -> "Quantity":
        """Read a quantity as `resource.ParseQuantity` does; a number is read as its shortest decimal text.

        Fractions of a nano are rounded away from zero. An amount with a binary suffix is capped at ±(2⁶³ − 1);
        others have no limit, but see `value`.

        Raises:
            QuantityError: `text` is not a quantity (there may be no space in it either), or has more than
                4,000 characters (Kubernetes has no such limit), or is a bool, not finite, or neither text nor
                number.
        """
        return _parse(text if isinstance(text, str) else _text_of(text))

    @classmethod
    def of(cls, value: int, format: QuantityFormat) -> "Quantity":
        """Return a whole number in a format, as `resource.NewQuantity` makes it."""
        return _quantity(*_without_factors_of_ten(value, 0), format, None, "")

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._unscaled > 0) - (self._unscaled < 0)

    def value(self) -> int:
        """Return the amount in whole units (bytes, counts), rounded up: an int64, as Kubernetes' `Quantity.Value`.

        "Up" is away from zero, but a negative wide one with a fraction gives one more than its integer part:
        `-1.5` gives -2, and `-1.0005Ki`, which is -1024.512, gives -1023. An amount beyond int64 gives 0 if narrow
        (`10E`), and wraps around if wide (`9223372036854775808`).
        """
        return self._counted_in(0)

    def milli_value(self) -> int:
        """Return the amount in thousandths (millicores), with the range, rounding and overflows of `value`."""
        return self._counted_in(_MILLI)

    def as_int64(self) -> int | None:
        """Return the amount if it is narrow, whole and fits an int64; else None (Kubernetes' `AsInt64`).

        Unlike there, a text whose fraction is zero (`1.0`, `1000m`) counts as whole.
        """
        if self._grain is not None or self._scale < 0:
            return None
        number: int = self._unscaled * 10 ** min(self._scale, 19)
        return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None

    def _counted_in(self, power: int) -> int:
        """Return the amount in units of 10 ** `power`, which is 0 or -3."""
        unscaled, shift = self._unscaled, self._scale - power
        if self._grain is None:
            if shift < 0:
                return self.sign * _ceil_div(abs(unscaled), 10**-shift)
            # 10 ** 19 is more than an int64 holds already, and an exponent may be enormous.
            scaled: int = unscaled * 10 ** min(shift, 19)
            return scaled if -_INT64_MAX <= scaled <= _INT64_MAX else 0
        if unscaled >= 0:
            if shift < 0:
                return wrapped(_ceil_div(unscaled, 10**-shift))
            return wrapped(unscaled * pow(10, shift, 1 << 64))
        # Kubernetes wraps a negative one around before it divides, then adds one for any remainder.
        grains = wrapped(unscaled * pow(10, self._scale - self._grain, 1 << 64))
        if self._grain >= power:
            return wrapped(grains * 10 ** (self._grain - power))
        grains_per_unit: int = 10 ** (power - self._grain)
        quotient, remainder = divmod(abs(grains), grains_per_unit)
        return (quotient if grains > 0 else -quotient) + (remainder != 0)

    def __float__(self) -> float:
        """Return the nearest float, or infinity where the amount is too large (Kubernetes' `AsApproximateFloat64`)."""
        return float(f"{self._unscaled}e{self._scale}")

    def __str__(self) -> str:
        """Return the text that Kubernetes would write.

        It is an integer with the largest suffix of its format with which it is exact. The exception is a bug of
        v1.36: DecimalSI has no suffix for 10²¹, and multiples of it lose their zeros. Texts that Kubernetes takes
        for canonical are kept: `+1`, `025`, `1.025`.
        """
        if self._verbatim:
            return self._verbatim
        unscaled, scale = self._unscaled, self._scale
        if self.format is QuantityFormat.BINARY_SI and scale >= 0:
            number = unscaled * 10**scale
            if abs(number) >= 1024:
                thousands = 0
                while number % 1024 == 0:
                    number, thousands = number // 1024, thousands + 1
                return f"{number}{_BINARY[thousands]}"
        digits, power = unscaled * 10 ** (scale % 3), scale - scale % 3
        if self.format is QuantityFormat.DECIMAL_EXPONENT:
            return f"{digits}e{power}" if power else str(digits)
        return f"{digits}{_DECIMAL.get(power, '')}"

    def __repr__(self) -> str:
        return f"Quantity.parse({str(self)!r})"

    def __add__(self, other: "Quantity") -> "Quantity":
        """Return the exact sum, in the format of `self`, or of `other` where `self` is zero."""
        if not isinstance(other, Quantity):
            return NotImplemented
        scale = min(self._scale, other._scale)
        number = self._unscaled * 10 ** (self._scale - scale) + other._unscaled * 10 ** (other._scale - scale)
        narrow = self._grain is other._grain is None and -_INT64_MAX <= number <= _INT64_MAX
        format = self.format if self.sign else other.format
        return _quantity(
            *_without_factors_of_ten(number, scale),
            format,
            None if narrow else min(self._unit, other._unit),
            "",
        )

    def __neg__(self) -> "Quantity":
        """Return the amount with the other sign, in the same format."""
        return _quantity(-self._unscaled, self._scale, self.format, self._grain, "")

    def __mul__(self, factor: int) -> "Quantity":
        """Return the exact multiple, in the same format (Kubernetes' `Mul`).

        A narrow amount becomes wide where its digits no longer fit an int64. Kubernetes also counts the zeros of a
        text without suffix as digits.

        Raises:
            OverflowError: the factor doesn't fit an int64.
        """
        # Not True or False, which are integers, too.
        if type(factor) is not int:
            return NotImplemented
        if not -_INT64_MAX - 1 <= factor <= _INT64_MAX:
            raise OverflowError(f"a factor must fit an int64, not {factor}")
        number = self._unscaled * factor
        narrow = self._grain is None and -_INT64_MAX <= number <= _INT64_MAX
        return _quantity(
            *_without_factors_of_ten(number, self._scale), self.format, None if narrow else self._unit, ""
        )

    @property
    def _unit(self) -> int:
        """The power of ten that Kubernetes' big integer counts where this amount is, or becomes, wide.

        Kubernetes counts thousandths for `1000m`, too; here that text is 1, and counts ones.
        """
        return self._scale if self._grain is None else self._grain

    # Each comparison is written out: `functools.total_ordering` makes the others four times as slow.
    def __lt__(self, other: "Quantity") -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._is_below(other)

    def __gt__(self, other: "Quantity") -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return other._is_below(self)

    def __le__(self, other: "Quantity") -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return not other._is_below(self)

    def __ge__(self, other: "Quantity") -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return not self._is_below(other)

    def _is_below(self, other: "Quantity") -> bool:
        if self._scale == other._scale:
            return bool(self._unscaled < other._unscaled)
        if self.sign != other.sign or self.sign == 0:
            return self.sign < other.sign
        # Scales can be 2³¹ apart: align them only when both numbers have their first digit in the same place.
        place, other_place = (len(str(abs(q._unscaled))) + q._scale for q in (self, other))
        if place != other_place:
            return (place < other_place) is (self.sign > 0)
        gap: int = self._scale - other._scale
        if gap >= 0:
            return bool(self._unscaled * 10**gap < other._unscaled)
        return bool(self._unscaled < other._unscaled * 10**-gap)


def _quantity(
    unscaled: int, scale: int, format: QuantityFormat, grain: int | None, verbatim: str
) -> Quantity:
    made = object.__new__(Quantity)
    made.__attrs_init__(unscaled, scale, format, grain, verbatim)
    return made


def parse_quantity(value: str | int | float) -> Quantity:
    """Read a quantity from a manifest: as `Quantity.parse`, but spaces around it are ignored, as in the API's JSON.

    Results are cached, since manifests repeat the same few texts.

    Raises:
        QuantityError: as `Quantity.parse`.
    """
    return _parse(value.strip(_SPACE) if isinstance(value, str) else _text_of(value))


def quantities(amounts: Mapping[str, Quantity | str | int]) -> FrozenDict[str, Quantity]:
    """Return amounts by resource, read as from a manifest: `{"cpu": "500m"}`.

    The converter of fields such as `ResourceRequirements.requests`.

    Raises:
        QuantityError: an amount isn't a quantity; the error names the resource.
    """
    if type(amounts) is FrozenDict and (not amounts or {*map(type, amounts.values())} == {Quantity}):
        return amounts
    return FrozenDict({name: _amount_of(name, amount) for name, amount in amounts.items()})


def _amount_of(name: str, amount: Quantity | str | int) -> Quantity:
    if isinstance(amount, Quantity):
        return amount
    try:
        return parse_quantity(amount)
    except QuantityError as error:
        raise QuantityError(f"{name}: {error}") from None


def _text_of(value: object) -> str:
    """Write a number the way JSON does, where a float has the fewest digits that tell it from others."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Each digit holds more than three bits, so `str` accepts all other integers.
        if value.bit_length() > 3 * _MAX_LENGTH:
            raise QuantityError(f"an integer of {value.bit_length()} bits: {_TOO_LONG}")
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        shortest = Decimal(repr(float(value))).normalize()
        if value == 0 or 1e-6 <= abs(value) < 1e21:
            return f"{shortest:f}"
        return f"{shortest:e}"
    raise _error(value, "a quantity is a text or a finite number")


@functools.lru_cache(maxsize=1 << 16)
def _parse(text: str) -> Quantity:
    if len(text) > _MAX_LENGTH:
        raise _error(text, _TOO_LONG)
    match = _SYNTAX.fullmatch(text)
    if not match or not text:
        raise _error(text, _WRONG_FORMAT)
    sign, zeros, whole, fraction, suffix = match.groups(default="")
    exponent2, exponent10, format = _meaning_of(suffix, text)
    digits = (whole or "0") + fraction
    scale = wrapped(exponent10 - len(fraction), 32)
    number = int(digits)
    if format is QuantityFormat.BINARY_SI:
        # Three tenths of a digit for each power of two, and an int64 has room for at least 14 beside.
        narrow = not fraction and len(digits) <= 14 - exponent2 * 3 // 10
        looks_canonical = number % 8 != 0
    else:
        narrow = len(digits) <= _NARROW_DIGITS and scale >= _NANO
        looks_canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    number <<= exponent2
    grain = None
    if not narrow:
        if not (zeros or whole or fraction):
            raise _error(text, _WRONG_NUMBER)
        number, scale, grain = _as_wide(number, scale, capped=format is QuantityFormat.BINARY_SI)
        if format is QuantityFormat.BINARY_SI and scale < 0 < number < 10**-scale:
            # An amount below one is written with a decimal suffix.
            format = QuantityFormat.DECIMAL_SI
    number, scale = _without_factors_of_ten(-number if sign == "-" else number, scale)
    return _quantity(number, scale, format, grain, text if narrow and looks_canonical else "")


def _meaning_of(suffix: str, text: str) -> tuple[int, int, QuantityFormat]:
    """Return the power of two, the power of ten and the format that `suffix`, the end of `text`, stands for."""
    if known := _SUFFIXES.get(suffix):
        return known
    exponent = _EXPONENT.fullmatch(suffix)
    if not exponent or not -(2**63) <= int(exponent[1]) < 2**63:
        raise _error(text, _WRONG_SUFFIX)
    # Kubernetes keeps 32 bits of it: 1e4294967299 is 1e3.
    return 0, wrapped(int(exponent[1]), 32), QuantityFormat.DECIMAL_EXPONENT


def _as_wide(number: int, scale: int, *, capped: bool) -> tuple[int, int, int]:
    """Round `number` · 10 ** `scale`, which isn't negative, up to nanos, and cap it. Return both and the grain."""
    if scale < _NANO and number:
        # The power of ten can be 2³¹ in hostile input.
        drop = min(_NANO - scale, len(str(number)))
        number, scale = _ceil_div(number, 10**drop), _NANO
    if capped and number > _INT64_MAX * 10**-scale:
        return _INT64_MAX, 0, 0
    return number, scale, _NANO


def _without_factors_of_ten(number: int, scale: int) -> tuple[int, int]:
    if not number:
        return 0, 0
    written = str(number)
    zeros = len(written) - len(written.rstrip("0"))
    return (number // 10**zeros, scale + zeros) if zeros else (number, scale)


def _ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


def wrapped(number: int, bits: int = 64) -> int:
    """Return `number` as a signed integer of `bits` bits would hold it, overflow wrapping around."""
    # The usual case: nothing wraps around.
    if bits == 64 and -_INT64_MAX <= number <= _INT64_MAX:
        return number
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _error(value: object, why: str) -> QuantityError:
    shown = repr(value)
    return QuantityError(f"{shown if len(shown) <= 80 else shown[:79] + '…'}: {why}")
