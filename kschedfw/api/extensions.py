"""Extensions of installed distributions: one object per entry point of a group, imported when its name is asked for.

Plugins have a registry of their own (`Registry`), since they can also be registered, blocked and replaced.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import unquote

import attrs

from kschedfw.api.distributions import ImportFailedError, entry_points_of, home_of, imported, told
from kschedfw.api.errors import KschedfwError
from kschedfw.api.records import frozen

T = TypeVar("T")


class ExtensionError(KschedfwError):
    """The error of an extension that isn't installed, can't be loaded, or is offered twice; names the distribution."""


@frozen
class Extensions(Generic[T]):
    """The extensions in an entry-point group.

    `noun` is their name in errors, and `expected` the class that each must be an instance of. `homes` names the
    distributions of known extensions, for the error about one that isn't installed. `built_in` are names that mean
    something without an extension.
    """

    group: str
    noun: str
    expected: type[T]
    homes: Mapping[str, str] = attrs.field(factory=dict)
    built_in: Sequence[str] = ()

    @cached_property
    def _offers(self) -> Mapping[str, Sequence[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = defaultdict(list)
        # This takes 10 ms with 100 distributions installed.
        for offer in entry_points_of([self.group]):
            found[offer.name].append(offer)
        return found

    def names(self) -> list[str]:
        """Return the names on offer, sorted; nothing is imported."""
        return sorted(self._offers)

    def distributions(self) -> list[str]:
        """Return the distributions that offer extensions, each with its version, sorted."""
        offers = (offer for offers in self._offers.values() for offer in offers)
        return sorted(
            {f"{offer.dist.name} {offer.dist.version}" for offer in offers if offer.dist is not None}
        )

    def load(self, name: str) -> T:
        """Import the extension of this name.

        Raises:
            ExtensionError: there is none, several distributions offer it, its import fails, or it is of a wrong
                class.
        """
        if name not in self._offers:
            raise ExtensionError(self._not_found(name))
        offers = self._offers[name]
        if len(offers) > 1:
            both = " and ".join(sorted(f"{offer.value} of {_home(offer)}" for offer in offers))
            raise ExtensionError(f"{self.noun} {name!r} is offered by {both}; uninstall all but one")
        (offer,) = offers
        try:
            loaded = imported(offer)
        except ImportFailedError as error:
            raise self.failure(name, str(error)) from error
        if isinstance(loaded, self.expected):
            return loaded
        raise self.failure(
            name,
            f"{offer.value} is {type(loaded).__name__}, expected an instance of {self.expected.__name__}",
        )

    def failure(self, name: str, why: str) -> ExtensionError:
        """Return the error of an extension on offer, with its distribution."""
        return ExtensionError(f"{self.noun} {name!r} of {_home(self._offers[name][0])}: {why}")

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Call the code of an extension in the block: raise ExtensionError where it would end the process.

        That is for SystemExit and the like, at which a command would end as if all was well. Other exceptions pass,
        and so does Ctrl-C.
        """
        try:
            yield
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self.failure(name, told(error)) from error

    def _not_found(self, name: str) -> str:
        if name in self.homes:
            home = self.homes[name]
            return f"{self.noun} {name!r} is in the distribution {home}, which isn't installed: {how_to_install(home)}"
        known = [*self.built_in, *self.names()]
        similar = get_close_matches(name, known, n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"there are: {', '.join(known) or 'none'}"
        return f"no installed distribution offers {self.noun} {name!r} in the entry-point group {self.group!r}; {hint}"


def how_to_install(name: str, extra: str = "") -> str:
    """Return the command that installs one of kschedfw's distributions, perhaps with an extra.

    If kschedfw is from a checkout, so is the distribution: an index may not have it, or have somebody else's of that
    name. With an extra, an editable checkout stays editable.
    """
    wanted, option = name, ""
    if (found := checkout()) is not None:
        path, is_editable = found
        project = path if name == "kschedfw" else path / "plugins" / name
        if project.is_dir():
            wanted, option = str(project), "--editable " if extra and is_editable else ""
    return f"pip install {option}{shlex.quote(f'{wanted}[{extra}]' if extra else wanted)}"


def checkout() -> tuple[Path, bool] | None:
    """Return the checkout that kschedfw was installed from, and whether in editable mode; None if from an index.

    PEP 610 says where this is recorded.
    """
    try:
        recorded = json.loads(distribution("kschedfw").read_text("direct_url.json") or "{}")
    # Such as in a directory that is only on the path.
    except PackageNotFoundError:
        return None
    path = recorded.get("url", "").removeprefix("file://")
    if not path.startswith("/"):
        return None
    return Path(unquote(path)), bool(recorded.get("dir_info", {}).get("editable"))


def _home(offer: EntryPoint) -> str:
    return home_of(offer) or "an unknown distribution"
