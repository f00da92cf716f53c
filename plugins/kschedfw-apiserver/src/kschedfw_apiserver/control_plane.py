"""A real kube-apiserver with etcd, where KUBEBUILDER_ASSETS names a folder with both (the convention of envtest).

It is a plugin of pytest, too, for suites that ask for one: `-p kschedfw_apiserver.control_plane`.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest

VARIABLE = "KUBEBUILDER_ASSETS"
_BINARIES = ("etcd", "kube-apiserver")
_SECONDS = 120.0
_TOKEN = "administrator"


def assets() -> Path | None:
    """The folder with the binaries; None if the variable isn't set. Raises where they aren't in it."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return None
    missing = [name for name in _BINARIES if not (Path(folder) / name).is_file()]
    if missing:
        raise pytest.UsageError(f"{VARIABLE}={folder}: there is no {' and no '.join(missing)}")
    return Path(folder)


needs_control_plane = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        assets() is None,
        reason=f"NOT TESTED against a real kube-apiserver: {VARIABLE} names no folder with it and etcd",
    ),
]
"""Marks of tests that need one."""


@attrs.frozen
class ControlPlane:
    """One that runs. Its administrator has `token`."""

    url: str
    authority: Path
    users: Mapping[str, str]
    """User names by token."""
    restart: Callable[[str], None]
    """Kill `etcd` or `kube-apiserver`, and start it again with the state that there was; returns when all is ready."""
    token: str = _TOKEN

    def kubeconfig(self, path: Path, *, token: str = _TOKEN, namespace: str = "default") -> Path:
        """Return a kubeconfig as `ApiServer.kubeconfig` does."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        context = {"cluster": "real", "user": "real", "namespace": namespace}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "real", "user": {"token": token}}],
            "contexts": [{"name": "real", "context": context}],
            "current-context": "real",
        }
        path.write_text(json.dumps(document))
        return path

    def client(self, token: str = _TOKEN) -> httpx2.Client:
        context = ssl.create_default_context(cafile=str(self.authority))
        headers = {"authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.url, verify=context, headers=headers, timeout=30)

    def clear(self) -> None:
        """Delete all pods at once, and all nodes: those left by one test would be candidates in the next."""
        with self.client() as client:
            pods = client.get("/api/v1/pods").raise_for_status().json()["items"]
            for namespace in sorted({each["metadata"]["namespace"] for each in pods}):
                at_once = {"gracePeriodSeconds": 0}
                client.delete(f"/api/v1/namespaces/{namespace}/pods", params=at_once).raise_for_status()
            client.delete("/api/v1/nodes").raise_for_status()


@contextmanager
def control_plane(
    folder: Path, *, users: Mapping[str, str] | None = None, flags: tuple[str, ...] = ()
) -> Iterator[ControlPlane]:
    """Runs etcd and kube-apiserver with their state in the folder; `users` by their tokens, who have no rights."""
    binaries = assets()
    assert binaries is not None
    etcd_port, peer_port, port = _free_ports(3)
    tokens = folder / "tokens.csv"
    given = dict(users or {})
    lines = [
        f'{_TOKEN},administrator,0,"system:masters"',
        *(f"{token},{name},{name}" for token, name in given.items()),
    ]
    tokens.write_text("\n".join(lines) + "\n")
    key, public = _service_account_key(folder)
    etcd_url = f"http://127.0.0.1:{etcd_port}"
    commands = [
        [
            "etcd",
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={etcd_url}",
            f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
            "--unsafe-no-fsync",
        ],
        [
            "kube-apiserver",
            f"--etcd-servers={etcd_url}",
            f"--cert-dir={folder / 'certificates'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            # Nobody gives pods a service account, and nobody takes the taint of new nodes off.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            *flags,
        ],
    ]
    environment = {**os.environ, "ETCD_ADVERTISE_CLIENT_URLS": etcd_url}
    processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(name: str) -> None:
        command = next(command for command in commands if command[0] == name)
        with (folder / f"{name}.log").open("ab") as log:
            processes[name] = subprocess.Popen(
                [str(binaries / name), *command[1:]],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        if name == "etcd":
            _wait_for_port(etcd_port)

    def restart(name: str) -> None:
        processes[name].kill()
        processes[name].wait()
        start(name)
        _wait_until_ready(running, processes, folder)

    authority = folder / "certificates" / "apiserver.crt"
    running = ControlPlane(f"https://127.0.0.1:{port}", authority, given, restart)
    try:
        for name in _BINARIES:
            start(name)
        _wait_until_ready(running, processes, folder)
        yield running
    finally:
        for process in reversed(processes.values()):
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def lasting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A kube-apiserver with an etcd of its own, for fixtures that outlive a test; tests ask for `real_server`."""
    with control_plane(tmp_path_factory.mktemp("control-plane"), users={"alices": "alice"}) as real:
        yield real


@pytest.fixture
def real_server(lasting_server: ControlPlane) -> Iterator[ControlPlane]:
    """The kube-apiserver, without pods and nodes of tests before; for tests with the marks `needs_control_plane`."""
    yield lasting_server
    lasting_server.clear()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _service_account_key(folder: Path) -> tuple[Path, Path]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = folder / "service-accounts.key", folder / "service-accounts.pub"
    pem = serialization.Encoding.PEM
    private.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    )
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def _wait_for_port(port: int) -> None:
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nothing listens on port {port}")


def _wait_until_ready(
    running: ControlPlane, processes: Mapping[str, subprocess.Popen[Any]], folder: Path
) -> None:
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        for process in processes.values():
            if process.poll() is not None:
                logs = "".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.log")))
                raise RuntimeError(f"{process.args!r} ended with {process.returncode}:\n{logs}")
        if running.authority.exists():
            try:
                with running.client() as client:
                    if client.get("/readyz").status_code == 200:
                        return
            except (httpx2.HTTPError, ssl.SSLError):
                pass
        time.sleep(0.2)
    raise TimeoutError(f"kube-apiserver isn't ready after {_SECONDS:g} s; its log is in {folder}")
