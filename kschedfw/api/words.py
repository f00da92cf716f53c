"""Words for people: numbers of things, plurals, and articles."""

from __future__ import annotations

import re
from typing import Final

_WITH_ES: Final = re.compile(r"(s|x|z|ch|sh)$")
_WITH_IES: Final = re.compile(r"[^aeiou]y$")
_VOWEL_FIRST: Final = re.compile(r"[aeio]|u(?![^aeiou][aeiou])", re.IGNORECASE)
"""The beginning of a word that is spoken with a vowel first: `uplink`, but not `unit` and `user`."""


def plural(noun: str) -> str:
    """Return the regular plural of a noun, or of a phrase that ends with one."""
    if _WITH_ES.search(noun):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if _WITH_IES.search(noun) else f"{noun}s"


def counted(number: int, noun: str) -> str:
    """Return a number of things: `1 pod`, `2,000 pods`, `0 more patches`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def with_article(noun: str) -> str:
    """Return the noun with its indefinite article: `a zone`, `an example.org/rack`."""
    return f"{'an' if _VOWEL_FIRST.match(noun) else 'a'} {noun}"
