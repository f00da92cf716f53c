"""A Postgres server that a test starts, if one is installed."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import attrs
import pytest

from kschedfw.testing.waiting import PATIENCE


def programs() -> Path | None:
    """The folder with initdb and postgres, of the newest version that is installed."""
    found = shutil.which("initdb")
    installed = [Path(found).resolve().parent] if found else []
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    installed += [each.parent for each in sorted(debian, key=lambda each: int(each.parts[-3]))]
    return installed[-1] if installed else None


needs_postgres = [
    pytest.mark.slow,
    pytest.mark.skipif(
        programs() is None,
        reason="NOT TESTED against Postgres: there is no initdb on the PATH, nor in /usr/lib/postgresql/*/bin",
    ),
    pytest.mark.skipif(
        find_spec("psycopg") is None or find_spec("psycopg_pool") is None,
        reason="NOT TESTED against Postgres: psycopg[binary,pool] isn't installed; extra dev has it",
    ),
]
"""Marks of tests that need one."""


@attrs.frozen
class Server:
    """A server that listens on a socket in `folder`."""

    folder: Path

    def address(self, database: str) -> str:
        return f"postgresql://kschedfw@/{database}?host={self.folder}"

    def sql(self, database: str, command: str) -> str:
        """Run a command, and return the values that it gives, a line a row."""
        bin_folder = programs()
        assert bin_folder is not None
        psql: list[str | Path] = [
            bin_folder / "psql",
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            self.address(database),
        ]
        done = subprocess.run(
            [*psql, "-c", command], check=False, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def new_database(self) -> str:
        name = f"site_{secrets.token_hex(4)}"
        self.sql("postgres", f"CREATE DATABASE {name}")
        return name


@contextmanager
def server() -> Iterator[Server]:
    """Start a server with nothing in it; its files are gone at the end. Root has to start it as somebody else."""
    bin_folder = programs()
    assert bin_folder is not None
    folder = Path(
        tempfile.mkdtemp(prefix="kschedfw-pg-")
    )  # short: a socket's path has less than 108 characters
    user = "nobody" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    try:
        subprocess.run(
            [bin_folder / "initdb", "-D", data, "-U", "kschedfw", "--auth=trust", "-E", "UTF8", "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            timeout=PATIENCE,
            user=user,
        )
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", str(folder)]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [bin_folder / "postgres", "-D", data, *options],
                stdout=log,
                stderr=log,
                cwd=folder,
                user=user,
            )
            try:
                _wait_until_it_answers(bin_folder, folder, process)
                yield Server(folder)
            finally:
                process.terminate()
                process.wait(PATIENCE)
    finally:
        shutil.rmtree(folder)


def _wait_until_it_answers(bin_folder: Path, folder: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.perf_counter() + PATIENCE
    while subprocess.run([bin_folder / "pg_isready", "-q", "-h", folder], check=False).returncode != 0:
        text = (folder / "log").read_text()
        assert process.poll() is None, text
        assert time.perf_counter() < end, text
        time.sleep(0.05)
