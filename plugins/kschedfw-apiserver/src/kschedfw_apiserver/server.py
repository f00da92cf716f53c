"""An API server on a thread, for tests."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from kschedfw import Clock, CustomKind, InMemoryCluster, KschedfwError, ObjectMeta, SystemClock
from kschedfw.api import Namespace, how_to_install
from kschedfw_apiserver.access import Access, User
from kschedfw_apiserver.answering import Answering
from kschedfw_apiserver.app import ApiApp
from kschedfw_apiserver.audit import AuditLog
from kschedfw_apiserver.faults import Faults, FaultyApp
from kschedfw_apiserver.resources import LEASES, Catalogue
from kschedfw_apiserver.store import Store

if TYPE_CHECKING:
    from kschedfw_apiserver.serving import ServingThread

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that every cluster has."""


class ServerError(KschedfwError):
    """The API server for tests can't be started."""


@attrs.frozen
class Certificate:
    """The files for TLS: the server's certificate with its key, and the authority's certificate that clients trust."""

    chain: Path
    authority: Path


class ApiServer:
    """An API server over a cluster in memory: a context manager that serves it on this machine, from a thread.

    Objects that clients write are in `cluster`, and objects written to the cluster are served. Needs the extra `serve`.

    Without users, every request is the administrator's. After the first `add_user`, every request needs a token, and
    may do what the roles bound to the token's user allow.

    Args:
        cluster: the cluster to serve; an empty one by default. It gets the namespaces that every cluster has.
        custom: custom kinds that are served without a CustomResourceDefinition.
        history: the number of changes of each resource that are kept for watches from an older version.
        bookmark_seconds: the seconds between bookmarks of a watch that requests them.
        seed: the seed of uids and of generated names.
        faults: the faults to inject.
        certificate: the certificate for https; http without it.
        port: the port to listen on; 0 for any free one.
    """

    def __init__(
        self,
        cluster: InMemoryCluster | None = None,
        *,
        custom: Iterable[CustomKind] = (),
        history: int = 100_000,
        bookmark_seconds: float = 60.0,
        seed: int = 0,
        faults: Faults | None = None,
        clock: Clock | None = None,
        certificate: Certificate | None = None,
        port: int = 0,
    ) -> None:
        self.cluster = InMemoryCluster() if cluster is None else cluster
        clock = SystemClock() if clock is None else clock
        self._store = Store(self.cluster, Catalogue(custom), clock, history=history)
        for name in NAMESPACES:
            if self.cluster.get(Namespace, name) is None:
                self.cluster.add(Namespace(ObjectMeta(name)))
        self._access = Access(self._store)
        answering = Answering(self._store, self._access, clock, Random(seed))
        self._app = ApiApp(self._store, answering, self._access, clock, bookmark_seconds=bookmark_seconds)
        self.app = FaultyApp(self._app, Faults() if faults is None else faults)
        self._certificate = certificate
        self._port = port
        self._thread: ServingThread | None = None

    @property
    def audit(self) -> AuditLog:
        return self._app.audit

    @property
    def faults(self) -> Faults:
        """The injected faults. They may be set at any time."""
        return self.app.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.app.faults = faults

    @property
    def url(self) -> str:
        """The server's URL, on 127.0.0.1. It is available once the server has been started."""
        return f"{'https' if self._certificate else 'http'}://127.0.0.1:{self._port}"

    def add_user(self, token: str, user: User) -> None:
        """Add a user with this token."""
        self._access.add(token, user)

    def compact(self) -> None:
        """Forget old versions: watches and continue tokens from one are answered with status 410."""
        self._store.compact()

    def hand_lease(self, name: str, holder: str = "", *, namespace: str = "kube-system") -> None:
        """Give a lease to another holder, or to none if `holder` is empty. The former holder isn't notified."""
        lease = self._store.get(LEASES, namespace, name)
        if lease is None:
            raise ServerError(f"there is no Lease {namespace}/{name}")
        spec = {**lease.manifest.get("spec", {}), "holderIdentity": holder}
        self._store.replace(lease, {**lease.manifest, "spec": spec})

    def kubeconfig(self, path: Path, *, token: str = "", namespace: str = "default") -> Path:
        """Write a kubeconfig with the server's address to this file. Return its path."""
        cluster: dict[str, Any] = {"server": self.url}
        if self._certificate is not None:
            cluster["certificate-authority"] = str(self._certificate.authority)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token} if token else {}}],
            "contexts": [
                {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
            ],
            "current-context": "test",
        }
        path.write_text(json.dumps(document))
        return path

    def start(self) -> Self:
        """Serve until `stop`. A restarted server uses the same port as before.

        Raises:
            ServerError: the extra isn't installed.
            OSError: the port is taken.
        """
        try:
            from kschedfw_apiserver.serving import ServingThread
        except ImportError:
            raise ServerError(
                f"the API server for tests needs the extra serve: {how_to_install('kschedfw-kubernetes', 'serve')}"
            ) from None
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate.chain)
        self._thread = ServingThread(self.app, self._port, context)
        self._port = self._thread.port
        self._thread.start()
        return self

    def stop(self) -> None:
        """Abort all connections and stop serving, as if the server were killed. Its objects are kept."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def cut_connections(self) -> None:
        """Abort all connections. New ones are accepted."""
        if self._thread is not None:
            self._thread.cut_connections()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self._store.close()
