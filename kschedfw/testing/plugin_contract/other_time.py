"""Makes the wall clock go wrong, so that what looks at it gives itself away."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

_YEARS = 7 * 365 * 86_400 + 12_345
_CLOCKS: tuple[tuple[str, int], ...] = (
    ("time", _YEARS),
    ("time_ns", _YEARS * 1_000_000_000),
    ("monotonic", _YEARS),
    ("monotonic_ns", _YEARS * 1_000_000_000),
    ("perf_counter", _YEARS),
    ("perf_counter_ns", _YEARS * 1_000_000_000),
)


class _LaterDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _LaterDatetime:
        return super().now(tz) + datetime.timedelta(seconds=_YEARS)

    @classmethod
    def utcnow(cls) -> _LaterDatetime:
        return cls.now(datetime.UTC).replace(tzinfo=None)


class _LaterDate(datetime.date):
    @classmethod
    def today(cls) -> _LaterDate:
        return super().today() + datetime.timedelta(seconds=_YEARS)


@contextmanager
def other_time(package: str) -> Iterator[None]:
    """The wall clock is years ahead: in the modules `time` and `datetime`, and where the package imported from them."""
    later: dict[object, object] = {
        getattr(time, name): _ahead(getattr(time, name), offset) for name, offset in _CLOCKS
    }
    later |= {datetime.datetime: _LaterDatetime, datetime.date: _LaterDate}
    with ExitStack() as patches:
        modules = [
            module
            for name, module in sys.modules.items()
            if name == package or name.startswith(f"{package}.")
        ]
        for module in (time, datetime, *modules):
            for name, value in list(vars(module).items()):
                if isinstance(value, _PATCHED) and value in later:
                    patches.enter_context(mock.patch.object(module, name, later[value]))
        yield


_PATCHED = (type, type(len))


def _ahead(clock: Callable[[], float], offset: int) -> Callable[[], float]:
    return lambda: clock() + offset
