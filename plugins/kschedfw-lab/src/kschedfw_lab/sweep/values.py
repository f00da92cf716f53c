"""The values of a factor: a list, or a range of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal, TypeAlias, TypeGuard, cast, get_args

import attrs

from kschedfw.api.reading import shown
from kschedfw_lab.sweep.errors import SweepError, similar

MOST_VALUES: Final = 10_000
"""The most values of one factor."""

_KEYS: Final = ("from", "to", "step", "points", "scale")
Scale: TypeAlias = Literal["linear", "log"]


@attrs.frozen
class Choices:
    """A list of equally likely values."""

    listed: tuple[object, ...]

    def at(self, share: float) -> object:
        """Return the value at a share of the list, from 0 to below 1."""
        return self.listed[min(int(share * len(self.listed)), len(self.listed) - 1)]


@attrs.frozen
class Range:
    """Numbers from `low` to `high`, both included.

    `step` is the distance between the numbers, `points` is how many there are. Without both, whole numbers have the
    step 1, and other bounds mean that any number between them is a value. On the scale `log`, numbers have equal ratios
    instead of equal distances.

    Raises:
        SweepError: the range has no number, or numbers, step and points don't go together.
    """

    low: float
    high: float
    step: float | None = None
    points: int | None = None
    scale: Scale = "linear"

    def __attrs_post_init__(self) -> None:
        numbers = {"from": self.low, "to": self.high, "step": self.step}
        for name, number in numbers.items():
            if number is not None and not is_number(number):
                raise SweepError.at(name, f"expected a number, found {shown(number)}")
        if self.scale not in get_args(Scale):
            raise SweepError.at("scale", f"expected linear or log, found {shown(self.scale)}")
        if self.low > self.high:
            raise SweepError(f"the range is empty: from {self.low} to {self.high}")
        if self.step is not None and self.points is not None:
            raise SweepError("step and points exclude each other")
        if self.step is not None and (self.step <= 0 or self.is_log):
            why = "goes with scale linear; give points" if self.is_log else "must be above 0"
            raise SweepError.at("step", f"{why}, found {self.step}")
        if self.points is not None:
            _points(self.points)
        if self.is_log and self.low <= 0:
            raise SweepError.at("from", f"must be above 0 with scale log, found {self.low}")
        if not math.isfinite(self.high - self.low) or (self.is_log and not self._ratio_is_finite):
            raise SweepError(f"the range is too wide: from {self.low} to {self.high}")
        if self.step is not None or self.points is not None:
            self._check_count()

    @property
    def is_log(self) -> bool:
        return self.scale == "log"

    @property
    def is_continuous(self) -> bool:
        return self.step is None and self.points is None and not self._is_whole

    @property
    def _ratio_is_finite(self) -> bool:
        try:
            return math.isfinite(self.high / self.low)
        except OverflowError:
            return False

    @property
    def _is_whole(self) -> bool:
        return all(is_whole(each) for each in (self.low, self.high, self.step or 0))

    def _count(self) -> int:
        if self.points is not None:
            return self.points
        if self.is_continuous:
            return 0
        # Compute in decimals, so that 0.1 to 0.3 by 0.1 are three numbers.
        return int((_decimal(self.high) - _decimal(self.low)) / _decimal(self.step or 1)) + 1

    def _check_count(self) -> None:
        if (count := self._count()) > MOST_VALUES:
            raise SweepError(f"the range has {count:,} values; at most {MOST_VALUES:,}")

    @property
    def listed(self) -> tuple[object, ...]:
        """The numbers, in ascending order.

        Raises:
            SweepError: there are infinitely many, or more than `MOST_VALUES`.
        """
        if self.is_continuous:
            raise SweepError(
                f"any number from {self.low} to {self.high} is a value; give a step or points, or another design"
            )
        if self.points is not None:
            last = self.points - 1
            # Rounding may make two points equal.
            return tuple(dict.fromkeys(self._between(index / last) for index in range(self.points)))
        self._check_count()
        step = _decimal(self.step or 1)
        numbers = (_decimal(self.low) + index * step for index in range(self._count()))
        return tuple(int(number) if self._is_whole else float(number) for number in numbers)

    def at(self, share: float) -> object:
        """Return the number at a share of the range, from 0 to below 1.

        Numbers that aren't whole have six significant digits.
        """
        if self.step is not None or self.points is not None:
            return Choices(self.listed).at(share)
        if self._is_whole:
            low, high = int(self.low), int(self.high)
            # Up to high + 1, which is cut off: so the last number is as likely as the others. A float may round up to
            # it.
            drawn = low * ((high + 1) / low) ** share if self.is_log else low + share * (high + 1 - low)
            return min(int(drawn), high)
        return self._between(share)

    def _between(self, share: float) -> float:
        if share in (0.0, 1.0):
            return self.high if share else self.low
        width = self.high - self.low
        number = self.low * (self.high / self.low) ** share if self.is_log else self.low + share * width
        return round(number) if self._is_whole else float(f"{number:.6g}")


Values: TypeAlias = Choices | Range


def read_values(given: object) -> Values:
    """Return the values in a specification: a list, a range as a mapping with `from` and `to`, or one value.

    Raises:
        SweepError: there is no value, one comes twice, or the range is invalid.
    """
    if isinstance(given, (Choices, Range)):
        return given
    if isinstance(given, Mapping) and ("from" in given or "to" in given):
        return _range(given)
    if isinstance(given, range):
        given = list(given)
    if not isinstance(given, Sequence) or isinstance(given, str):
        return Choices((given,))
    if not given:
        raise SweepError("the list is empty; give at least one value")
    if len(given) > MOST_VALUES:
        raise SweepError(f"the list has {len(given):,} values; at most {MOST_VALUES:,}")
    seen: set[str] = set()
    for index, value in enumerate(given):
        if (text := repr(value)) in seen:
            raise SweepError.at(f"[{index}]", f"{shown(value)} is there twice")
        seen.add(text)
    return Choices(tuple(given))


def _range(given: Mapping[str, object]) -> Range:
    for key in given:
        if key not in _KEYS:
            raise SweepError.at(str(key), f"unknown field; {similar(str(key), _KEYS)}")
    return Range(
        _number(given, "from"),
        _number(given, "to"),
        step=_number(given, "step") if "step" in given else None,
        points=_points(given["points"]) if "points" in given else None,
        scale=cast("Scale", given.get("scale", "linear")),
    )


def _number(given: Mapping[str, object], key: str) -> float:
    value = given.get(key)
    if not is_number(value):
        raise SweepError.at(key, f"expected a number, found {shown(value)}")
    return value


def _points(given: object) -> int:
    if not (is_whole(given) and given >= 2):
        raise SweepError.at("points", f"expected a whole number from 2 up, found {shown(given)}")
    return given


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether the value is an integer. A bool isn't one."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether the value is an int64 or a finite float. A bool isn't one."""
    if is_whole(value):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and math.isfinite(value)


def _decimal(number: float) -> Decimal:
    return Decimal(str(number))
