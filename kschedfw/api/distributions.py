"""Entry points of installed distributions: which there are, whose they are, and importing them.

Other people's distributions are looked at whatever a command does. So metadata that can't be read leaves out one
distribution, with a warning, and whatever the import of an entry point raises is one error that names it.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from typing import Final

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import printable

_log = logging.getLogger(__name__)

_MOST_BYTES: Final = 1 << 20
"""The largest `entry_points.txt`. The largest that are known have some 100 KiB."""
_SEPARATORS: Final = re.compile(r"[-_.]+")
_LONGEST: Final = 1000

_told: set[str] = set()
"""The metadata directories that were warned of: each group of entry points is looked up by itself."""


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
    for each in distributions():
        try:
            name = _normalized(each)
            # As importlib.metadata does: of two of a name, only the first on the path counts.
            if name in seen:
                continue
            _check_size(each)
            own = list(each.entry_points)
        # The text may be anything, and parsing it raises whatever it comes to.
        except Exception as error:
            _warn(each, error)
            continue
        seen.add(name)
        found += own
    return found


def home_of(offer: EntryPoint) -> str | None:
    """Return name and version of the distribution of an entry point; None where it is unknown."""
    return None if offer.dist is None else name_and_version(offer.dist)


def name_and_version(distribution: Distribution) -> str:
    """Return name and version of a distribution; the name of its directory where its metadata can't be read."""
    try:
        found: Sequence[object] = distribution.metadata["Name"], distribution.version
    except Exception:
        found = (None,)
    if all(isinstance(each, str) for each in found):
        return printable(" ".join(map(str, found)))
    return printable(f"{_directory(distribution).name}, whose metadata can't be read")


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
    # Not the plugin's frames: the import machinery, and the backport, which loads entry points once it is imported.
    machinery = ("<", *importlib.__path__)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)[1:]
        if not frame.filename.startswith(machinery) and "importlib_metadata" not in Path(frame.filename).parts
    ]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _normalized(distribution: Distribution) -> str:
    """Return the distribution's name in normalized form.

    The name is part of the metadata directory's name, if that is a `.dist-info` or `.egg-info`: this reads no file.
    """
    directory = _directory(distribution)
    has_name = directory.suffix in (".dist-info", ".egg-info")
    name = directory.stem.partition("-")[0] if has_name else distribution.name
    return _SEPARATORS.sub("-", name).lower()


def _directory(distribution: Distribution) -> Path:
    # Not a part of the interface of importlib.metadata, whose `locate_file` of "" is the directory above.
    return Path(str(getattr(distribution, "_path", type(distribution).__name__)))


def _check_size(distribution: Distribution) -> None:
    try:
        size = (_directory(distribution) / "entry_points.txt").stat().st_size
    # None in it, or none of its own on disk, such as in a zip file.
    except OSError:
        return
    if size > _MOST_BYTES:
        raise ValueError(f"entry_points.txt has {size:,} bytes, more than {_MOST_BYTES:,}")


def _warn(distribution: Distribution, error: Exception) -> None:
    directory = str(_directory(distribution))
    if directory in _told:
        return
    _told.add(directory)
    _log.warning(
        "%s is left out, since its metadata can't be read (%s); install it anew, or remove it",
        printable(directory, _LONGEST),
        printable(f"{type(error).__name__}: {error}"),
    )
