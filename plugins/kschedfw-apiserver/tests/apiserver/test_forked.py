"""Forked processes of tests: they run, end and are ended like those that start anew."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from apiserver.test_processes import is_at_work
from kschedfw_apiserver.forked import run_forked, running_forked

pytestmark = pytest.mark.slow


def test_a_program_has_its_arguments_directory_environment_and_exit_code(tmp_path: Path) -> None:
    program = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['WORD']); sys.exit(3)"
    environment = {**os.environ, "WORD": "given"}
    ended = run_forked("-c", program, "a", 1, cwd=tmp_path, env=environment)
    assert ended == (3, f"['a', '1'] {tmp_path} given\n")


def test_a_module_is_run_as_python_does_it(tmp_path: Path) -> None:
    ended = run_forked("-m", "kschedfw", "nonsense", cwd=tmp_path, env=os.environ)
    assert ended.code == 2
    assert "No such command 'nonsense'" in ended.output


def test_an_error_is_shown_with_its_stack_and_threads_are_waited_for(tmp_path: Path) -> None:
    late = (
        "import threading, time; threading.Timer(0.1, lambda: print('late')).start(); raise ValueError('x')"
    )
    ended = run_forked("-c", late, cwd=tmp_path, env=os.environ)
    assert ended.code == 1
    assert {"ValueError: x", "late"} <= set(ended.output.splitlines())


def test_both_streams_are_read_however_much_is_written() -> None:
    with running_forked(
        "-c", "import sys; print('o' * 200_000); print('e' * 200_000, file=sys.stderr)"
    ) as both:
        out, err = both.communicate()
    assert (both.returncode, out, err) == (0, "o" * 200_000 + "\n", "e" * 200_000 + "\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_arrive_and_the_exit_code_tells_of_them(number: signal.Signals) -> None:
    with running_forked("-c", "print(flush=True); import time; time.sleep(600)") as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        # An interpreter that Ctrl-C ends sends itself the signal, so that shells see why.
        assert process.wait() == -number


def test_what_it_started_ends_with_it() -> None:
    program = "import os, time; child = os.fork(); child and print(child, flush=True); time.sleep(600)"
    with running_forked("-c", program) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
    assert process.returncode == -signal.SIGKILL
    while is_at_work(child):  # its new parent may take a moment
        pass


def test_variables_that_only_a_starting_interpreter_reads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"can't have .*'PYTHONPATH': 'elsewhere'"):
        run_forked("-c", "", cwd=tmp_path, env={**os.environ, "PYTHONPATH": "elsewhere"})
