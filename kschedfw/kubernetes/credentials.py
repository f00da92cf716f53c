"""Who asks: tokens, passwords, client certificates, and commands that give them (client-go `exec`)."""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

import attrs
import msgspec

from kschedfw.framework.clock import Clock
from kschedfw.kubernetes.errors import ConnectionConfigError, CredentialsError
from kschedfw.kubernetes.kubeconfig import ConnectionConfig, ExecPlugin, decoded
from kschedfw.kubernetes.request_metrics import NO_REQUEST_METRICS, PluginCall, RequestMetrics

_TOKEN_LIFETIME: Final = 60.0
"""Seconds after which a token file is read again: the kubelet replaces it."""
_PLUGIN_TIMEOUT: Final = 60.0
_LARGEST_OUTPUT: Final = 1 << 20
_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@attrs.frozen(repr=False)
class Identity:
    """What a request is sent with. `tls` has the client's certificate, if it has one."""

    authorization: str = ""
    tls: ssl.SSLContext | None = None


class _Status(msgspec.Struct, rename={"certificate": "clientCertificateData", "key": "clientKeyData"}):
    token: str = ""
    certificate: str = ""
    key: str = ""
    expirationTimestamp: datetime | None = None  # noqa: N815  # the field's name


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


class Credentials:
    """Gives the identity to send the next request with. Thread-safe."""

    def __init__(
        self,
        config: ConnectionConfig,
        clock: Clock,
        environment: Mapping[str, str] = os.environ,
        metrics: RequestMetrics = NO_REQUEST_METRICS,
    ) -> None:
        self._config = config
        self._clock = clock
        self._environment = environment
        self._metrics = metrics
        self._lock = threading.Lock()
        self._identity: Identity | None = None
        self._expires: float | None = None
        """On the wall clock; None for what doesn't expire."""
        self._plugin_certificate = b""
        """What the exec plugin gave last (PEM)."""

    def identity(self) -> Identity:
        """The present identity.

        Raises:
            CredentialsError: the token file is missing, or the plugin failed.
            ConnectionConfigError: a certificate or key can't be read.
        """
        with self._lock:
            identity = self._identity
            if identity is None or (self._expires is not None and self._clock.now() >= self._expires):
                identity = self._identity = self._obtain(identity)
            return identity

    def refuse(self, identity: Identity) -> bool:
        """Say that the server doesn't accept the identity any more; whether there may be another one."""
        user = self._config.user
        with self._lock:
            if self._identity is identity:
                self._identity = None
        return bool(user.token_file or user.exec)

    def _obtain(self, last: Identity | None) -> Identity:
        user = self._config.user
        if user.exec is not None:
            return self._run(user.exec)
        tls = last.tls if last is not None else self._tls()
        if user.token_file:
            self._expires = self._clock.now() + _TOKEN_LIFETIME
            return Identity(f"Bearer {_token(user.token_file)}", tls)
        if user.token:
            return Identity(f"Bearer {user.token}", tls)
        if user.username:
            pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            return Identity(f"Basic {pair}", tls)
        return Identity("", tls)

    def _tls(self, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext | None:
        if not self._config.server.startswith("https:"):
            return None
        user, context = self._config.user, self._config.tls()
        if not certificate and user.client_certificate_data:
            certificate = decoded(user.client_certificate_data, "client-certificate-data")
        if not key and user.client_key_data:
            key = decoded(user.client_key_data, "client-key-data")
        if not certificate and not user.client_certificate:
            return context
        try:
            with (
                _as_file(certificate, user.client_certificate) as chain,
                _as_file(key, user.client_key) as own,
            ):
                context.load_cert_chain(chain, own or None, password=_no_password)
        except (OSError, ValueError) as error:
            raise ConnectionConfigError(
                f"{self._config.source}: the client certificate can't be used: {error}"
            ) from None
        return context

    def _run(self, plugin: ExecPlugin) -> Identity:
        status = self._credential(plugin)
        self._expires = None if status.expirationTimestamp is None else status.expirationTimestamp.timestamp()
        certificate = status.certificate.encode()
        tls = self._tls(certificate, status.key.encode())
        if certificate:
            self._metrics.plugin_certificate(certificate, former=self._plugin_certificate)
            self._plugin_certificate = certificate
        return Identity(f"Bearer {status.token}" if status.token else "", tls)

    def _credential(self, plugin: ExecPlugin) -> _Status:
        what = f"{self._config.source}: exec plugin {plugin.command}"
        if plugin.api_version not in _VERSIONS:
            raise ConnectionConfigError(
                f"{what}: apiVersion must be {' or '.join(_VERSIONS)}, not {plugin.api_version!r}"
            )
        environment = {**self._environment, **{each.name: each.value for each in plugin.env or ()}}
        environment["KUBERNETES_EXEC_INFO"] = self._exec_info(plugin)
        try:
            done = subprocess.run(
                [plugin.command, *(plugin.args or ())],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PLUGIN_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._metrics.plugin_called(PluginCall.INTERNAL_ERROR, 1)
            raise CredentialsError(f"{what}: gave no answer within {_PLUGIN_TIMEOUT:.0f} s") from None
        except OSError as error:
            self._metrics.plugin_called(PluginCall.NOT_FOUND, 1)
            hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
            raise CredentialsError(f"{what}: can't be run: {error.strerror or error}{hint}") from None
        result = PluginCall.EXECUTION_ERROR if done.returncode else PluginCall.NO_ERROR
        self._metrics.plugin_called(result, done.returncode)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-500:]
            raise CredentialsError(f"{what}: ended with {done.returncode}: {said}")
        try:
            credential = msgspec.json.decode(done.stdout[:_LARGEST_OUTPUT], type=_ExecCredential)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # Not what it printed: that is a secret.
            raise CredentialsError(f"{what}: printed no ExecCredential") from None
        status = credential.status
        if status is None or not (status.token or (status.certificate and status.key)):
            raise CredentialsError(
                f"{what}: its ExecCredential has neither a token nor a certificate with key"
            )
        return status

    def _exec_info(self, plugin: ExecPlugin) -> str:
        spec: dict[str, object] = {"interactive": False}
        if plugin.provide_cluster_info:
            cluster = self._config.cluster
            about = {
                "server": cluster.server,
                "tls-server-name": cluster.tls_server_name,
                "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
                "certificate-authority-data": self._authority(),
                "proxy-url": cluster.proxy_url,
            }
            spec["cluster"] = {key: value for key, value in about.items() if value}
        info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()

    def _authority(self) -> str:
        cluster = self._config.cluster
        if cluster.certificate_authority_data or not cluster.certificate_authority:
            return cluster.certificate_authority_data
        return base64.b64encode(Path(cluster.certificate_authority).read_bytes()).decode()


def _token(path: str) -> str:
    try:
        token = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"{path}: the token can't be read: {error}") from None
    if not token or not token.isascii() or not token.isprintable():
        raise CredentialsError(f"{path}: has no token")
    return token


def _no_password() -> bytes:
    raise ValueError("its key has a password")


@contextlib.contextmanager
def _as_file(content: bytes, path: str) -> Iterator[str]:
    """The path, or that of a file with the content for this long: OpenSSL reads keys from files alone."""
    if not content:
        yield path
        return
    with tempfile.NamedTemporaryFile() as file:  # nobody else may read it
        file.write(content)
        file.flush()
        yield file.name
