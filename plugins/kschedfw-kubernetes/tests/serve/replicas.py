"""`kschedfw run` as processes of their own, against an API server in this one."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs
from kschedfw_apiserver import ApiServer, User
from kschedfw_apiserver.control_plane import ControlPlane
from kschedfw_apiserver.forked import ForkedProcess, running_forked
from kschedfw_apiserver.processes import running

from kschedfw.api.builders import make_node, make_pod
from kschedfw.api.pod import Pod

LEASE, RENEW, RETRY = 10.0, 8.0, 0.2
"""Seconds. A process that gets no processor time for as long as RENEW loses its lease: with 1.2 s, busy machines took
it from leaders that were to keep it."""
SHORT_LEASES = (
    f"--leader-elect-lease-duration={LEASE:g}s",
    f"--leader-elect-renew-deadline={RENEW:g}s",
    f"--leader-elect-retry-period={RETRY:g}s",
)


@attrs.frozen
class Reply:
    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Replica:
    """A scheduler process with a token of its own; killed at the end, if it lives still.

    It may do everything, unless it is another `user`: that of a real server is its administrator. A configuration says
    itself how the server is reached. It is forked from a process that has imported kschedfw, unless it starts `anew`.
    """

    def __init__(
        self,
        server: ApiServer | ControlPlane,
        folder: Path,
        name: str,
        *arguments: object,
        user: User | None = None,
        anew: bool = False,
    ) -> None:
        self.name = name
        if isinstance(server, ControlPlane):
            self.token = server.token
        else:
            self.token = token_of(name)
            server.add_user(self.token, user or User(name, ("system:masters",)))
        config = server.kubeconfig(folder / f"{name}.kubeconfig", token=self.token)
        self._log = folder / f"{name}.log"
        self.port = free_port()
        command = ["-m", "kschedfw", "run", "--bind-address", "127.0.0.1"]
        chosen = (
            () if any(str(each).startswith("--config") for each in arguments) else ("--kubeconfig", config)
        )
        command += ["--secure-port", str(self.port), *map(str, (*chosen, *arguments))]
        self.process: subprocess.Popen[str] | ForkedProcess
        self._until_exit = ExitStack()
        with self._log.open("wb") as log:
            enter = self._until_exit.enter_context
            if anew:
                self.process = enter(running([sys.executable, *command], stderr=log, stdout=log))
            else:
                self.process = enter(running_forked(*command, stderr=log, stdout=log))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._until_exit.close()
        if error is not None:
            error.add_note(f"log of {self.name}:\n{self.log}")

    @property
    def log(self) -> str:
        return self._log.read_text()

    def get(self, path: str, token: str = "", context: ssl.SSLContext | None = None) -> Reply:
        """Ask one of its endpoints; status 0 while nobody answers. The context may have a certificate."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        if context is None:
            # A default context reads the system's authorities, which takes 30 ms, and tests ask every few.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, context=context) as reply:
                return Reply(reply.status, reply.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.read().decode())
        except urllib.error.URLError:
            return Reply(0, "")

    def wait_until_ready(self) -> Self:
        self.wait_for(lambda: self.get("/readyz").status == 200)
        return self

    def wait_until_leading(self) -> Self:
        self.wait_for(lambda: "became the leader" in self.log)
        return self

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds. Only the limit of every test bounds the wait: no verdict depends on speed."""
        while not condition():
            assert self.process.poll() is None, f"ended with {self.process.poll()}"
            time.sleep(0.02)

    def ends(self, number: int = signal.SIGTERM) -> int:
        """Send the signal, and wait. Return the exit code."""
        self.process.send_signal(number)
        return self.process.wait()


def token_of(name: str) -> str:
    return f"token-of-{name}-9f8e7d6c"


def configuration(server: ApiServer, folder: Path, name: str, **fields: object) -> Path:
    """A configuration with these fields, by which the replica of the name reaches the server."""
    kubeconfig = server.kubeconfig(folder / "kubeconfig", token=token_of(name))
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        **fields,
    }
    file = folder / "config.json"
    file.write_text(json.dumps(content))
    return file


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def add_nodes(server: ApiServer, count: int = 2) -> None:
    for index in range(count):
        server.cluster.add(make_node(f"n{index}").capacity(cpu="8", memory="16Gi", pods="110").build())


def add_pod(server: ApiServer, name: str, cpu: str = "10m") -> None:
    server.cluster.add(make_pod(name).requests(cpu=cpu).build())


def is_bound(server: ApiServer, name: str) -> bool:
    pod = server.cluster.get(Pod, f"default/{name}")
    return pod is not None and bool(pod.node_name)
