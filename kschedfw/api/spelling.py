"""Names that may be meant by misspelt ones."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import SequenceMatcher, get_close_matches
from typing import Final

_SIMILAR: Final = 0.66
"""difflib's ratio from which on one name may be meant by another: sdd and ssd have 0.67, zones and zone 0.89."""
_SIMILAR_BUT_FOR_THE_FIRST: Final = 0.8
"""The same for names whose first letters differ: a100 and h100 have 0.75, kool-b and pool-b 0.83."""
_DIGIT: Final = re.compile(r"\d")


def close_to(name: str, names: Collection[str]) -> str | None:
    """Return the one of the names that a misspelt name may mean; None if no name is close, or it is one of them.

    Return None, too, if several are equally close: zone `1d` is none of `1a`, `1b` and `1c`.
    """
    if name in names:
        return None
    # However short: `L4` and `l4` have no letter in common.
    alike = [each for each in names if each.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    # A domain that both have makes nothing alike: `topology.kubernetes.io/rack` isn't the zone.
    domain = name[: name.rfind("/") + 1]
    own = {each.removeprefix(domain): each for each in names if domain and each.startswith(domain)}
    if found := _closest(name.removeprefix(domain), own):
        equal = [own[each] for each in found]
    else:
        equal = _closest(name, [each for each in names if _may_be_whole(name, each)])
    likely = [each for each in equal if each[:1] == name[:1]] or equal
    return likely[0] if len(likely) == 1 else None


def _may_be_whole(name: str, other: str) -> bool:
    """Tell whether names are alike as a whole: if both have a domain, another one, and what follows is alike, too."""
    (domain, _, rest), (other_domain, _, other_rest) = name.rpartition("/"), other.rpartition("/")
    if not domain or not other_domain:
        return True
    return domain != other_domain and bool(get_close_matches(rest, [other_rest], 1, _SIMILAR))


def _closest(name: str, names: Collection[str]) -> list[str]:
    """Return the similar names that are closest, all if several are equally close."""
    similar = get_close_matches(name, [each for each in names if _is_slip(name, each)], 5, _SIMILAR)
    ratios = {each: SequenceMatcher(None, each, name).ratio() for each in similar}
    # Few people get the first letter wrong: h100 is no a100.
    found = {
        each: ratio
        for each, ratio in ratios.items()
        if each[:1].lower() == name[:1].lower() or ratio >= _SIMILAR_BUT_FOR_THE_FIRST
    }
    closest = max(found.values(), default=0.0)
    return [each for each, ratio in found.items() if ratio == closest]


def _is_slip(name: str, other: str) -> bool:
    """Tell whether names differ by more than their numbers, or by swapped or doubled digits: node 12 isn't node 13."""
    if _DIGIT.sub("", name) != _DIGIT.sub("", other):
        return True
    return sorted(name) == sorted(other) or _without_doubled(name) == _without_doubled(other)


def _without_doubled(name: str) -> str:
    """Return the name with each digit only once where it is repeated."""
    return "".join(
        each for before, each in zip(f" {name}", name, strict=False) if each != before or not each.isdigit()
    )


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return the question whether one of the names was meant, in parentheses after a space; empty if none is close."""
    meant = close_to(name, names)
    return "" if meant is None else f" (did you mean {meant}?)"
