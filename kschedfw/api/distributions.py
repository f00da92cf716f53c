"""Entry points of installed distributions: which there are, whose they are, and importing them.

Other people's distributions are looked at whatever a command does. So metadata that can't be read leaves out one
distribution, with a warning, and whatever the import of an entry point raises is one error that names it.

The files are read here, since importing importlib.metadata brings packages for mails and archives: of the instructions
of `kschedfw --help` it was a fifth.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from pathlib import Path
from typing import Final

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import printable
from kschedfw.api.records import frozen

_log = logging.getLogger(__name__)

_MOST_BYTES: Final = 1 << 20
"""The largest `entry_points.txt`. The largest that are known have some 100 KiB."""
_SEPARATORS: Final = re.compile(r"[-_.]+")
_LONGEST: Final = 1000

_told: set[str] = set()
"""The metadata directories that were warned of: each group of entry points is looked up by itself."""


@frozen
class EntryPoint:
    """An entry point: what `name` stands for in the group `group`, as `module:attribute`.

    `directory` has the distribution's metadata; None if no installed distribution offers it.
    """

    name: str
    value: str
    group: str
    directory: Path | None = None

    def load(self) -> object:
        """Import the module and return the attribute."""
        module, _, attribute = self.value.partition("[")[0].partition(":")
        names = filter(None, attribute.strip().split("."))
        return reduce(getattr, names, importlib.import_module(module.strip()))


class ImportFailedError(KschedfwError):
    """The error of an entry point whose import failed. Its text has the cause, with its place in the source."""


def entry_points_of(groups: Iterable[str]) -> Sequence[EntryPoint]:
    """Return the entry points in these groups. Leave out distributions whose metadata can't be read, with a warning."""
    wanted = frozenset(groups)
    return [point for point in _entry_points(_path_now()) if point.group in wanted]


def _path_now() -> tuple[tuple[str, int], ...]:
    """Return the directories of `sys.path` with their times of modification, which change with what is installed."""
    return tuple((entry, _modified(entry)) for entry in sys.path)


def _modified(directory: str) -> int:
    try:
        return Path(directory or ".").stat().st_mtime_ns
    except (OSError, ValueError):
        return 0


# A command asks for half a dozen groups, and reading the metadata of 150 distributions takes 8 ms.
@lru_cache(maxsize=1)
def _entry_points(_path: tuple[tuple[str, int], ...]) -> Sequence[EntryPoint]:
    seen = set[str]()
    found: list[EntryPoint] = []
    for directory in _metadata_directories():
        name = _SEPARATORS.sub("-", directory.stem.partition("-")[0]).lower()
        # As importlib.metadata does: of two of a name, only the first on the path counts.
        if name in seen:
            continue
        try:
            own = list(_read(directory))
        # The text may be anything.
        except ValueError as error:
            _warn(directory, error)
            continue
        seen.add(name)
        found += own
    return found


def _metadata_directories() -> Iterator[Path]:
    for entry in sys.path:
        # Such as a zip file, or nothing.
        with suppress(OSError, ValueError):
            yield from (each for each in Path(entry).iterdir() if each.suffix in (".dist-info", ".egg-info"))


def _read(directory: Path) -> Iterator[EntryPoint]:
    """Yield the entry points of a distribution.

    Raises:
        ValueError: `entry_points.txt` isn't UTF-8, is too large, or has a line that is no entry point.
    """
    try:
        with (directory / "entry_points.txt").open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    # Most distributions have none.
    except OSError:
        return
    if len(content) > _MOST_BYTES:
        raise ValueError(f"entry_points.txt has more than {_MOST_BYTES:,} bytes")
    group = ""
    for line in map(str.strip, content.decode("utf-8").splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise ValueError(f"{line!r} is no entry point")
            yield EntryPoint(name.strip(), value.strip(), group, directory)


def home_of(offer: EntryPoint) -> str | None:
    """Return name and version of the distribution of an entry point; None where it is unknown."""
    return None if offer.directory is None else name_and_version(offer.directory)


# One distribution offers many plugins.
@lru_cache(maxsize=64)
def name_and_version(directory: Path) -> str:
    """Return name and version of a distribution; the name of its directory where its metadata can't be read."""
    found: dict[str, str] = {}
    for line in _metadata_lines(directory):
        name, _, value = line.partition(":")
        found.setdefault(name.lower(), value.strip())
    if found.get("name") and found.get("version"):
        return printable(f"{found['name']} {found['version']}")
    return printable(f"{directory.name}, whose metadata can't be read")


def _metadata_lines(directory: Path) -> Sequence[str]:
    """Return the lines before the description; none if they can't be read."""
    for file in ("METADATA", "PKG-INFO"):
        try:
            text = (directory / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        return text.partition("\n\n")[0].splitlines()
    return ()


def imported(offer: EntryPoint) -> object:
    """Import what an entry point refers to.

    Raises:
        ImportFailedError: whatever it raises, SystemExit included. Only Ctrl-C passes.
    """
    try:
        return offer.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ImportFailedError(f"loading {offer.value} failed: {told(error)}") from error


def told(error: BaseException) -> str:
    """Return type, text and place of an exception that other people's code has raised."""
    try:
        text = str(error)
    except Exception:
        text = ""
    # Cut here, too: the message is a part of others.
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"{type(error).__name__}{f': {text}' if text else ''}{_place_of(error)}"


def _place_of(error: BaseException) -> str:
    """Return file and line of the error, for its message; empty for SyntaxErrors, whose text has both."""
    # Not the plugin's frames: the caller, the import machinery, and this module.
    machinery = ("<", *importlib.__path__, __file__)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)[1:]
        if not frame.filename.startswith(machinery)
    ]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _warn(metadata: Path, error: ValueError) -> None:
    directory = str(metadata)
    if directory in _told:
        return
    _told.add(directory)
    _log.warning(
        "%s is left out, since its metadata can't be read (%s); install it anew, or remove it",
        printable(directory, _LONGEST),
        printable(f"{type(error).__name__}: {error}"),
    )
