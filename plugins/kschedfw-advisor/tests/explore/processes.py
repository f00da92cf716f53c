"""`kschedfw explore` as a process of its own."""

from __future__ import annotations

import re
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar

import attrs
from kschedfw_apiserver.forked import running_forked

from kschedfw.testing.waiting import PATIENCE


@attrs.frozen
class Explored:
    """The page's address with and without its token, and a client that keeps cookies."""

    base: str
    address: str
    opener: urllib.request.OpenerDirector

    def read(self, path: str) -> str:
        with self.opener.open(self.base + path) as reply:
            return str(reply.read().decode())


@contextmanager
def explored(*arguments: object) -> Iterator[Explored]:
    """A page that was opened once; its server is ended with Ctrl-C, and has to end well."""
    said = ""
    with running_forked("-m", "kschedfw", "explore", *arguments) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said += line
            if found := re.match(r"kschedfw: explore at (http://127\.0\.0\.1:\d+/)(\?token=\S{43})\n", line):
                assert process.stderr.readline() == "kschedfw: Ctrl-C ends it\n"
                opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
                opener.open(found[1] + found[2]).close()
                yield Explored(found[1], found[1] + found[2], opener)
                break
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, rest) == (0, "", ""), said
