"""Tokens of CEL, and the values of literals."""

import re
from collections.abc import Iterator
from typing import Final

import attrs

from kschedfw_devices.cel.syntax import Issue
from kschedfw_devices.cel.values import UInt, Value


@attrs.frozen
class Token:
    """`kind` is `int`, `uint`, `double`, `string`, `bytes`, `identifier`, `end`, or the text of a sign or keyword."""

    kind: str
    text: str
    offset: int


class LexError(Exception):
    """The error of a source that is no CEL from some place on."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(offset, message)


_TOKEN: Final = re.compile(
    r"""(?P<blank> [\t\ \r\n\f]+ | //[^\n]* )
      | (?P<string> [bB]? (?: [rR](?:'{3}(?s:.*?)'{3} | \"{3}(?s:.*?)\"{3} | '[^'\n\r]*' | \"[^\"\n\r]*\")
            | '{3}(?s:\\.|[^\\])*?'{3} | \"{3}(?s:\\.|[^\\])*?\"{3}
            | '(?:\\.|[^\\'\n\r])*' | \"(?:\\.|[^\\\"\n\r])*\" ))
      | (?P<double> (?:[0-9]+)?\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ )
      | (?P<uint> (?:0x[0-9a-fA-F]+|[0-9]+)[uU] )
      | (?P<int> 0x[0-9a-fA-F]+|[0-9]+ )
      | (?P<identifier> [A-Za-z_][A-Za-z0-9_]* )
      | (?P<sign> \|\| | && | [<>=!]= | [-+*/%<>!?:.,()\[\]{}] )""",
    re.VERBOSE,
)
_MOST_DIGITS: Final = 21
"""One digit more than any number of 64 bits has."""
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})


def tokens(source: str) -> Iterator[Token]:
    """Split the source; the last token is `end`.

    Raises:
        LexError: a character that no token starts with, or a string that doesn't end.
    """
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise LexError(position, f"Syntax error: token recognition error at: '{source[position]}'")
        text, kind = match[0], str(match.lastgroup)
        if kind == "sign" or text in _KEYWORDS:
            kind = text
        elif kind == "string" and text[0] in "bB":
            kind = "bytes"
        if kind != "blank":
            yield Token(kind, text, position)
        position = match.end()
    yield Token("end", "<EOF>", position)


def literal(token: Token, *, negative: bool = False) -> Value:
    """Return the value of a number, a string or bytes.

    Raises:
        LexError: a number that is too large, or an escape that is none.
    """
    text = token.text
    match token.kind:
        case "double":
            number = float(text)
            # Python makes an infinity of what is a range error to Go's `ParseFloat`.
            if number in (float("inf"), float("-inf")):
                raise LexError(token.offset, "invalid double literal")
            return -number if negative else number
        case "int":
            # With its sign, since -2**63 is in range and 2**63 isn't.
            value = _whole(text) * (-1 if negative else 1)
            if not -(2**63) <= value < 2**63:
                raise LexError(token.offset, "invalid int literal")
            return value
        case "uint":
            value = _whole(text[:-1])
            if value >= 2**64:
                raise LexError(token.offset, "invalid uint literal")
            return UInt(value)
    return _unquoted(token)


def _whole(text: str) -> int:
    """Return the number in the digits; if they are too many for 64 bits, some number that is too large."""
    is_hexadecimal = text.startswith("0x")
    # Python reads at most 4,300 decimal digits, and takes quadratic time for them.
    digits = text.removeprefix("0x").lstrip("0")[:_MOST_DIGITS]
    return int(digits or "0", 16 if is_hexadecimal else 10)


def _unquoted(token: Token) -> str | bytes:
    text, is_bytes = token.text, token.kind == "bytes"
    if is_bytes:
        text = text[1:]
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if text[:3] in ("'''", '"""') and len(text) >= 6 else 1
    # Line ends of raw texts are normalized, too, as in cel-go.
    text = text[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in text:
        return text.encode() if is_bytes else text
    parts = list(_unescaped(text, is_bytes, token.offset))
    if is_bytes:
        return b"".join(part for part in parts if isinstance(part, bytes))
    return "".join(part for part in parts if isinstance(part, str))


_ESCAPE: Final = re.compile(
    r"""\\(?: (?P<simple> [abfnrtv\\?"'`]) | [xX](?P<byte> [0-9a-fA-F]{2}) | (?P<octal> [0-3][0-7]{2})
        | u(?P<short> [0-9a-fA-F]{4}) | U(?P<long> [0-9a-fA-F]{8}) )""",
    re.VERBOSE,
)
_SIMPLE: Final = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))


def _unescaped(text: str, is_bytes: bool, offset: int) -> Iterator[str | bytes]:
    position = 0
    while (backslash := text.find("\\", position)) >= 0:
        plain = text[position:backslash]
        yield plain.encode() if is_bytes else plain
        match = _ESCAPE.match(text, backslash)
        if match is None:
            raise LexError(offset, "Syntax error: unable to unescape string")
        position = match.end()
        yield _character(match, is_bytes, offset)
    yield text[position:].encode() if is_bytes else text[position:]


def _character(match: re.Match[str], is_bytes: bool, offset: int) -> str | bytes:
    if match["simple"]:
        character = _SIMPLE[match["simple"]]
        return character.encode() if is_bytes else character
    digits = match["short"] or match["long"]
    if is_bytes:
        if digits:
            raise LexError(offset, "Syntax error: unable to unescape string")
        code = int(match["byte"], 16) if match["byte"] else int(match["octal"], 8)
        return bytes([code])
    code = int(match["octal"], 8) if match["octal"] else int(match["byte"] or digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LexError(offset, "Syntax error: invalid unicode code point")
    return chr(code)
