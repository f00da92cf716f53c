"""The credentials of a client: tokens, passwords, client certificates, and commands that print them (client-go
`exec`)."""

from __future__ import annotations

import base64
import contextlib
import os
import selectors
import signal
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs
import msgspec

from kschedfw import Clock
from kschedfw.api.reading import printable
from kschedfw_kubernetes.cluster.errors import ConnectionConfigError, CredentialsError
from kschedfw_kubernetes.cluster.kubeconfig import (
    ConnectionConfig,
    ExecPlugin,
    decoded,
    is_header_text,
    small_file,
)
from kschedfw_kubernetes.cluster.request_metrics import NO_REQUEST_METRICS, PluginCall, RequestMetrics

_TOKEN_LIFETIME: Final = 60.0
"""Seconds after which a token file is read again: the kubelet replaces it."""
_PLUGIN_SECONDS: Final = 60.0
_LARGEST_OUTPUT: Final = 1 << 20
_LONGEST_TOLD: Final = 500
_NO_HEADER_TEXT: Final = "may have no line ends, control characters or others than ASCII"
_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@attrs.frozen(repr=False)
class Identity:
    """The credentials sent with a request. `tls` has the client's certificate, if there is one."""

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


# Make the decoder on import, for the reason given in `node_record`: any thread may renew credentials.
_decode: Final = msgspec.json.Decoder(_ExecCredential).decode


class Credentials:
    """The source of the identity that the next request is sent with. Thread-safe."""

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
        """Seconds since the epoch; None if the credentials don't expire."""
        self._plugin_certificate = b""
        """The last certificate of the exec plugin (PEM)."""

    def identity(self) -> Identity:
        """Return the present identity.

        Raises:
            CredentialsError: the token file is missing, or the plugin failed.
            ConnectionConfigError: a certificate or key can't be read.
        """
        # Held while a plugin runs, for up to a minute: no request can be sent without its answer, and one call serves
        # all.
        with self._lock:
            identity = self._identity
            if identity is None or (self._expires is not None and self._clock.now() >= self._expires):
                identity = self._identity = self._obtain(identity)
            return identity

    def refuse(self, identity: Identity) -> bool:
        """Discard an identity that the server refuses. Return whether a new one may be available."""
        user = self._config.user
        with self._lock:
            # Another thread may have got a new identity since this one was refused.
            if self._identity is identity:
                self._identity = None
        return bool(user.token_file or user.exec)

    def _obtain(self, last: Identity | None) -> Identity:
        user = self._config.user
        if user.exec is not None:
            return self._of_plugin(user.exec)
        # Keep the context: `Transport` drops idle connections that were made with another one.
        tls = last.tls if last is not None else self._tls()
        # As in client-go, the file takes precedence over `token`.
        if user.token_file:
            self._expires = self._clock.now() + _TOKEN_LIFETIME
            return Identity(f"Bearer {_token(user.token_file)}", tls)
        if user.token:
            if not is_header_text(user.token):
                raise ConnectionConfigError(f"{self._config.source}: token: {_NO_HEADER_TEXT}")
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

    def _of_plugin(self, plugin: ExecPlugin) -> Identity:
        status = self._credential(plugin)
        # As in client-go, credentials without an expiry are used until the server refuses them.
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
        # On Windows, a plugin that hangs and its child processes couldn't be ended.
        if not hasattr(os, "killpg"):
            raise ConnectionConfigError(
                f"{what}: commands that give credentials need Linux or macOS; here give a token or a client certificate"
            )
        environment = {**self._environment, **{each.name: each.value for each in plugin.env or ()}}
        environment["KUBERNETES_EXEC_INFO"] = self._exec_info(plugin)
        try:
            code, output, errors = _run(
                [plugin.command, *(plugin.args or ())], environment, self._clock, _PLUGIN_SECONDS
            )
        except TimeoutError:
            self._metrics.plugin_called(PluginCall.INTERNAL_ERROR, 1)
            raise CredentialsError(f"{what}: gave no answer within {_PLUGIN_SECONDS:.0f} s") from None
        except OSError as error:
            self._metrics.plugin_called(PluginCall.NOT_FOUND, 1)
            hint = f"; {printable(plugin.install_hint.strip(), _LONGEST_TOLD)}" if plugin.install_hint else ""
            raise CredentialsError(f"{what}: can't be run: {error.strerror or error}{hint}") from None
        except ValueError as error:
            self._metrics.plugin_called(PluginCall.INTERNAL_ERROR, 1)
            raise CredentialsError(f"{what}: {error}") from None
        self._metrics.plugin_called(PluginCall.EXECUTION_ERROR if code else PluginCall.NO_ERROR, code)
        if code:
            said = errors.decode(errors="replace").strip()[-_LONGEST_TOLD:]
            raise CredentialsError(f"{what}: ended with {code}: {printable(said, _LONGEST_TOLD)}")
        try:
            credential = _decode(output)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # Leave out the plugin's output, which is a secret.
            raise CredentialsError(f"{what}: printed no ExecCredential") from None
        status = credential.status
        if status is None or not (status.token or (status.certificate and status.key)):
            raise CredentialsError(
                f"{what}: its ExecCredential has neither a token nor a certificate with key"
            )
        if not is_header_text(status.token):
            raise CredentialsError(f"{what}: its token {_NO_HEADER_TEXT}")
        return status

    def _exec_info(self, plugin: ExecPlugin) -> str:
        # A scheduler has no terminal: the plugin's standard input is empty.
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
        return base64.b64encode(small_file(cluster.certificate_authority)).decode()


def _token(path: str) -> str:
    try:
        token = small_file(path).decode().strip()
    except (OSError, ValueError) as error:
        raise CredentialsError(f"{path}: the token can't be read: {error}") from None
    if not token or not is_header_text(token):
        raise CredentialsError(f"{path}: has no token")
    return token


def _run(
    command: Sequence[str], environment: Mapping[str, str], clock: Clock, seconds: float
) -> tuple[int, bytes, bytes]:
    """Run a command. Return its exit code, output and errors.

    Raises:
        TimeoutError: the command, or a process that has inherited its output, still runs after these seconds.
        OSError: the command can't be run.
        ValueError: the command prints more than 1 MiB.
    """
    deadline = clock.monotonic() + seconds
    printed: dict[int, bytearray] = {}
    with (
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # In a session of its own, so that its child processes can be ended with it.
        ) as process,
        selectors.DefaultSelector() as selector,
    ):
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            files = process.stdout.fileno(), process.stderr.fileno()
            for file in files:
                printed[file] = bytearray()
                selector.register(file, selectors.EVENT_READ)
            # Not `communicate`, which keeps any amount of output.
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - clock.monotonic()))
                if not ready and clock.monotonic() >= deadline:
                    raise TimeoutError
                for key, _ in ready:
                    piece = os.read(key.fd, 1 << 16)
                    printed[key.fd] += piece
                    if len(printed[key.fd]) > _LARGEST_OUTPUT:
                        raise ValueError(f"prints more than {_LARGEST_OUTPUT} bytes")
                    if not piece:
                        selector.unregister(key.fd)
            try:
                # A process may close its output and go on.
                code = process.wait(max(0.0, deadline - clock.monotonic()))
            except subprocess.TimeoutExpired:
                raise TimeoutError from None
        except BaseException:
            # End the process before `Popen` waits for it at the end of the block.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    output, errors = (bytes(printed[file]) for file in files)
    return code, output, errors


def _no_password() -> bytes:
    raise ValueError("its key has a password")


@contextlib.contextmanager
def _as_file(content: bytes, path: str) -> Iterator[str]:
    """Yield the path, or with `content` that of a temporary file with it: OpenSSL reads keys only from files."""
    if not content:
        if path:
            small_file(path)  # Checked before OpenSSL reads it: a pipe or a device might never end.
        yield path
        return
    with tempfile.NamedTemporaryFile() as file:  # Only the owner may read a temporary file.
        file.write(content)
        file.flush()
        yield file.name
