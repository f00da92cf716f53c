"""A check that a plugin answers the same in a process with another hash seed and in another time zone."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
import traceback
import unittest
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from kschedfw.api import Named
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.testing.plugin_contract.stage import difference, stage_of
from kschedfw.testing.plugin_contract.subject import Ingredients, Subject, violated

_CLUSTERS: Final = 5
"""The number of clusters in which answers are compared: the process takes longer to start than to ask."""
# As in POSIX: needs no database of time zones. No process is in this zone by itself.
_TIME_ZONE: Final = "XXX-12:45"
_MAIN: Final = "from kschedfw.testing.plugin_contract.elsewhere import main; main()"

Books: TypeAlias = Mapping[str, object]


class ElsewhereChecks(Subject):
    """Checks that a decision can be repeated in another process."""

    def test_another_hash_seed_and_time_zone_change_no_answer(self) -> None:
        errand = _Errand(
            self.plugin,
            self.args,
            self.objects,
            self.other_plugins,
            self.start_time,
            self._ingredients()[:_CLUSTERS],
        )
        there = _books_elsewhere(errand)
        for ingredients, one, other in zip(errand.ingredients, errand.books(), there, strict=True):
            if (different := difference(one, other)) != "":
                try:
                    violated(
                        f"{self._name} answers otherwise in another process, with another hash seed and in another "
                        f"time zone: {different} is {one.get(different)!r} here, and {other.get(different)!r} there",
                        "sort a set before its order counts, hash texts with `zlib.crc32` instead of `hash`, and give "
                        "`datetime.fromtimestamp` a time zone: otherwise no decision can be repeated",
                    )
                except AssertionError as error:
                    error.add_note(str(ingredients))
                    raise


@attrs.frozen
class _Errand:
    """A plugin and the clusters in which it is asked; pickled, for another process."""

    plugin: type[AnyPlugin] | str
    args: object
    objects: Sequence[Named]
    other_plugins: Sequence[type[AnyPlugin] | str]
    start_time: datetime
    ingredients: Sequence[Ingredients]

    def books(self) -> list[Books]:
        """Return the plugin's answers in each cluster."""
        attributes = attrs.asdict(self, recurse=False)
        del attributes["ingredients"]
        subject = type("Elsewhere", (Subject,), attributes)()
        return [stage_of(subject, each.world()).books() for each in self.ingredients]

    def modules(self) -> list[tuple[str, str]]:
        """Return the modules that define the classes, as names and files.

        A module of tests may be in no directory of `sys.path`, so that its name doesn't suffice.
        """
        classes = [each for each in (self.plugin, *self.other_plugins) if not isinstance(each, str)]
        names = {each.__module__ for each in (*classes, type(self.args))}
        files = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in sorted(names))
        return [(name, file) for name, file in files if file is not None]


@attrs.frozen
class _Unimportable:
    """The reason why the other process can't make the plugin."""

    reason: str


@attrs.frozen
class _Failed:
    """The failure of a check in the other process."""

    traceback: str


_AnswerElsewhere: TypeAlias = Sequence[Books] | _Unimportable | _Failed


@cache
def _other_process() -> subprocess.Popen[bytes]:
    """Return a process with another hash seed and time zone, which does errands until this process ends.

    There is one for all contracts, since a process takes most of a second to start. It does each errand in a fork of
    its own, so that plugins don't meet.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN],
        env=os.environ
        | {"PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1", "TZ": _TIME_ZONE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.communicate)
    return process


def _books_elsewhere(errand: _Errand) -> Sequence[Books]:
    name = errand.plugin if isinstance(errand.plugin, str) else errand.plugin.__qualname__
    try:
        pickled = pickle.dumps(errand)
    except Exception as error:
        answer: _AnswerElsewhere = _Unimportable(str(error))
    else:
        process = _other_process()
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump((sys.path, errand.modules(), pickled), process.stdin)
        process.stdin.flush()
        answer = pickle.load(process.stdout)
    if isinstance(answer, _Unimportable):
        raise unittest.SkipTest(
            f"another process can't make {name}: {answer.reason}. Define the classes of the plugin and of its "
            "arguments at the top of a module"
        )
    if isinstance(answer, _Failed):
        violated(
            f"{name} fails in another process, with another hash seed and in another time zone:\n{answer.traceback}",
            "what holds in one process has to hold in any",
        )
    return answer


def main() -> None:
    """Do the errands that come on standard input, each in a fork, until it is closed; answer on standard output."""
    # Hooks that print must not write into the answers.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            path, modules, pickled = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        child = os.fork()
        if child == 0:
            sys.path[:] = path
            pickle.dump(_answer(modules, pickled), output)
            output.flush()
            # Without the exit handlers of the process that was forked.
            os._exit(0)
        _, ended = os.waitpid(child, 0)
        if ended != 0:
            pickle.dump(_Failed(f"the process ended with {ended}"), output)
            output.flush()


def _answer(modules: Iterable[tuple[str, str]], pickled: bytes) -> _AnswerElsewhere:
    try:
        _import(modules)
        errand: _Errand = pickle.loads(pickled)
    except Exception as error:
        return _Unimportable(traceback.format_exception_only(error)[-1].strip())
    try:
        return errand.books()
    except Exception:
        return _Failed(traceback.format_exc())


def _import(modules: Iterable[tuple[str, str]]) -> None:
    """Import modules by name, or from their files where the name leads elsewhere or nowhere."""
    for name, file in modules:
        try:
            found = getattr(importlib.import_module(name), "__file__", None)
        except ImportError:
            found = None
        if found is not None and Path(found).samefile(file):
            continue
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
