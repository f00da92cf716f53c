"""The processes of other tests: they can be interrupted, and nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from kschedfw_apiserver.processes import interruptible, running

pytestmark = pytest.mark.slow

WITH_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def _ignored_interrupts() -> Iterator[None]:
    """Ignore SIGINT during the test, as a process under `nohup` does."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN


@pytest.mark.usefixtures("_ignored_interrupts")
def test_process_is_interrupted_although_this_one_ignores_interrupts() -> None:
    with running([sys.executable, "-c", "print(flush=True); import time; time.sleep(600)"]) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


@pytest.mark.usefixtures("_ignored_interrupts")
def test_this_process_is_interrupted_although_it_ignores_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGINT)


def test_what_a_process_started_ends_with_it() -> None:
    with running([sys.executable, "-c", WITH_A_CHILD]) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert is_at_work(child)
    while is_at_work(child):  # its new parent may take a moment
        pass


def is_at_work(process: int) -> bool:
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], stdout=subprocess.PIPE, text=True, check=False
    )
    return listed.stdout.strip()[:1] not in ("", "Z")
