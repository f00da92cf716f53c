"""A Dask cluster as an executor; needs the extra `dask`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from urllib.parse import urlsplit

from kschedfw.api import counted, how_to_install
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.sweep.engine import Engine
from kschedfw_lab.sweep.errors import SweepError

TIMEOUT: Final = 10.0
"""Seconds to wait for the scheduler, and then for its first worker."""


@contextmanager
def dask_engine(address: str, distributions: Sequence[str], timeout: float = TIMEOUT) -> Iterator[Engine]:
    """Connect to the Dask scheduler at this address, such as `tcp://10.0.0.7:8786`, until the end of the block.

    Messages that the client logs meanwhile aren't shown: a lost connection becomes an EngineError of the sweep.

    Args:
        address: the address of the scheduler.
        distributions: the distributions that all workers must have, each a name and a version.
        timeout: seconds to wait for the scheduler, and then for its first worker.

    Raises:
        MissingExtraError: distributed isn't installed.
        SweepError: no scheduler answers, no worker comes, or a worker lacks one of the distributions.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError:
        needs = f"--dask needs the extra dask: {how_to_install('kschedfw-lab', 'dask')}"
        raise MissingExtraError(needs) from None
    _check_address(address)
    with _without_log():
        try:
            client = Client(address, timeout=timeout, set_as_default=False)  # type: ignore[no-untyped-call]  # no types
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SweepError(f"--dask {address}: no Dask scheduler answers there: {why}") from None
        with client:
            yield _engine(client, address, distributions, timeout)


@contextmanager
def _without_log() -> Iterator[None]:
    # Silence each logger by itself, since several of them have a handler of their own.
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    loud = [logger for name in names if not (logger := logging.getLogger(name)).disabled]
    for logger in loud:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loud:
            logger.disabled = False


def _engine(client: Any, address: str, distributions: Sequence[str], timeout: float) -> Engine:
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError:
        raise SweepError(f"--dask {address}: the cluster has no workers after {timeout:g} seconds") from None
    _check(client, address, distributions)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    name = counted(len(workers), "Dask worker")
    if client.dashboard_link:
        name += f", dashboard {client.dashboard_link}"
    return Engine(client.get_executor(), len(workers), name)


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        is_complete = bool(parts.hostname and parts.port)
    except ValueError:  # The port is no number, or too large.
        is_complete = False
    if not is_complete:
        raise SweepError(
            f"--dask {address}: is no address; expected tcp://HOST:PORT, where the scheduler listens"
        )


def _check(client: Any, address: str, distributions: Sequence[str]) -> None:
    """Check that every worker has the distributions.

    The check itself uses only modules that every worker has.
    """
    lacking: dict[str, list[str]] = {}
    for text in distributions:
        name, _, wanted = text.rpartition(" ")
        for worker, found in client.run(version, name, on_error="return").items():
            if isinstance(found, PackageNotFoundError):
                lacking.setdefault(f"{text} isn't installed", []).append(worker)
            elif found != wanted:
                lacking.setdefault(f"{name} is {found}, and here it is {wanted}", []).append(worker)
    if lacking:
        problems = "; ".join(
            f"{problem} on {workers[0]}{f' and {len(workers) - 1} more' if len(workers) > 1 else ''}"
            for problem, workers in lacking.items()
        )
        raise SweepError(f"--dask {address}: {problems}")
