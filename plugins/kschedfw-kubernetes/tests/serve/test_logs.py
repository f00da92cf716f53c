"""What the log looks like, how much of it there is, and that no credential gets into it."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_kubernetes.serve.logs import LoggingFormat, ModuleVerbosity, set_up_logging, without_secrets

from kschedfw.scheduler.structured import Structured

MODULES = (
    "kschedfw_kubernetes.cluster.reflector",
    "kschedfw_kubernetes.cluster.client",
    "kschedfw.scheduler.scheduler",
)
SetUp = Callable[..., io.StringIO]


def levels() -> dict[str, int]:
    """The level of each logger that there is by now."""
    names = ["", *logging.root.manager.loggerDict]
    return {name: logging.getLogger(name).level for name in names}


@pytest.fixture
def set_up() -> Iterator[SetUp]:
    root = logging.getLogger()
    before, handlers = levels(), list(root.handlers)
    stream = io.StringIO()

    def start(
        verbosity: int = 0, format: LoggingFormat = LoggingFormat.TEXT, vmodule: str = ""
    ) -> io.StringIO:
        set_up_logging(verbosity, format, stream, ModuleVerbosity.parse(vmodule))
        return stream

    yield start
    root.handlers[:] = handlers
    for name in levels():
        logging.getLogger(name).setLevel(before.get(name, logging.NOTSET))


DECISION = Structured("Bound", pod="default/a", node='n"1', feasibleNodes=3)


def test_text_is_klogs(set_up: SetUp) -> None:
    log = set_up(2)
    logging.getLogger("kschedfw.scheduler").info(DECISION)
    header, _, message = log.getvalue().partition("] ")
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+", header)
    assert message == '"Bound" pod="default/a" node="n\\"1" feasibleNodes=3\n'


def test_json_has_the_values_apart(set_up: SetUp) -> None:
    log = set_up(2, LoggingFormat.JSON)
    logging.getLogger("kschedfw.scheduler").info(DECISION)
    line = json.loads(log.getvalue())
    assert line.pop("ts") > 1e12
    assert re.fullmatch(r"serve/test_logs\.py:\d+", line.pop("caller"))
    assert line == {"msg": "Bound", "v": 2, "pod": "default/a", "node": 'n"1', "feasibleNodes": 3}


@pytest.mark.parametrize(
    ("vmodule", "told"),
    [
        ("", []),
        ("reflector=4", ["kschedfw_kubernetes.cluster.reflector"]),
        ("reflector=4,reflector=0", ["kschedfw_kubernetes.cluster.reflector"]),  # the first that matches
        ("refl*=2", []),  # INFO, but not DEBUG
        (
            "kschedfw_kubernetes/cluster/*=4",
            ["kschedfw_kubernetes.cluster.reflector", "kschedfw_kubernetes.cluster.client"],
        ),
        ("*/scheduler=4", ["kschedfw.scheduler.scheduler"]),
    ],
)
def test_single_modules_have_a_verbosity_of_their_own(set_up: SetUp, vmodule: str, told: list[str]) -> None:
    log = set_up(0, vmodule=vmodule)
    for name in MODULES:
        logging.getLogger(name).debug("from %s", name)
    assert re.findall(r"from (\S+)", log.getvalue()) == told


@pytest.mark.parametrize("format", LoggingFormat)
def test_errors_have_their_traceback(set_up: SetUp, format: LoggingFormat) -> None:
    log = set_up(0, format)
    try:
        raise ValueError("token: abcdef")
    except ValueError:
        logging.getLogger("kschedfw.scheduler").exception("failed with %s", "x")
    assert "Traceback" in log.getvalue()
    assert "abcdef" not in log.getvalue()
    if format is LoggingFormat.JSON:
        line = json.loads(log.getvalue())
        assert (line["msg"], line["err"]) == ("failed with x", "token: …")


@pytest.mark.parametrize(
    ("verbosity", "told"),
    [(0, "WARNING serve"), (1, "WARNING serve"), (2, "WARNING INFO serve"), (4, "WARNING INFO DEBUG serve")],
)
def test_verbosity(set_up: SetUp, verbosity: int, told: str) -> None:
    log = set_up(verbosity)
    for level in (logging.WARNING, logging.INFO, logging.DEBUG):
        logging.getLogger("kschedfw.scheduler").log(level, logging.getLevelName(level))
    logging.getLogger("kschedfw_kubernetes.serve.process").info("serve")
    assert " ".join(re.findall(r"\] (\w+)", log.getvalue())) == told


def test_other_libraries_are_heard_only_when_something_is_wrong(set_up: SetUp) -> None:
    log = set_up(9)
    logging.getLogger("httpx2").info("a request")
    logging.getLogger("httpx2").warning("trouble")
    assert "a request" not in log.getvalue()
    assert "trouble" in log.getvalue()


def test_a_message_is_one_line(set_up: SetUp) -> None:
    log = set_up(2)
    logging.getLogger("kschedfw").warning("first\nE1122 forged\x1b[2J")
    assert log.getvalue().count("\n") == 1
    assert "\x1b" not in log.getvalue()


FORMS = (
    "Authorization: Bearer {}",
    "authorization: basic {}",
    '{{"token": "{}"}}',
    "token={}",
    "password: '{}'",
    "https://user:{}@host/path",
    "client-key-data: {}",
    "eyJhbGciOiJSUzI1NiJ9.{}.signature",
    "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----",
)
SECRETS = st.text("abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", min_size=12, max_size=40)


@given(form=st.sampled_from(FORMS), secret=SECRETS)
def test_credentials_are_left_out(form: str, secret: str) -> None:
    assert secret not in without_secrets(f"before {form.format(secret)} after")


@pytest.mark.parametrize(
    "harmless",
    ['pod="default/token-reviewer"', "https://host:6443/api", "0/3 nodes are available: 3 node(s)"],
)
def test_the_rest_stays(harmless: str) -> None:
    assert without_secrets(harmless) == harmless
