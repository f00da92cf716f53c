"""The address of the API server and the credentials, from kubeconfig files or the service account of a pod.

No library is used: lightkube refuses credential plugins of the current API version, and ignores `tls-server-name`,
`proxy-url` and all but one file of KUBECONFIG. The official client needs 126 MB.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

import attrs
import msgspec
from msgspec import Meta, field

from kschedfw.api import DEFAULT_NAMESPACE
from kschedfw.api.reading import DocumentError, build, open_file
from kschedfw_kubernetes.cluster.errors import ConnectionConfigError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LARGEST_KUBECONFIG: Final = 4 << 20
_LARGEST_FILE: Final = 1 << 20
"""The most bytes of a token, certificate or key."""
_READ: Final[int] = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""The flags with which `small_file` opens a file, so that it doesn't wait for a pipe's writer.

Windows lacks O_NONBLOCK; only Windows has O_BINARY.
"""
T = TypeVar("T")


class _Section(msgspec.Struct, rename="kebab", frozen=True, kw_only=True):
    pass


class ClusterSection(_Section, frozen=True):
    """`clusters[].cluster` of a kubeconfig."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class EnvironmentVariable(msgspec.Struct, frozen=True):
    name: str
    value: str


class ExecPlugin(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A command that prints credentials (client.authentication.k8s.io)."""

    api_version: str
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[EnvironmentVariable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False


class UserSection(_Section, frozen=True):
    """`users[].user` of a kubeconfig."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: ExecPlugin | None = None
    auth_provider: dict[str, Any] | None = None


class _ContextSection(_Section, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: ClusterSection = ClusterSection()


class _NamedUser(msgspec.Struct):
    name: str
    user: UserSection = UserSection()


class _NamedContext(msgspec.Struct):
    name: str
    context: _ContextSection = _ContextSection()


class _File(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""
    kind: Annotated[str, Meta(pattern="^(Config)?$")] = "Config"


@attrs.frozen
class ConnectionConfig:
    """The address, certificates and credentials of one API server. Paths of files are absolute."""

    cluster: ClusterSection = attrs.field(repr=False)
    user: UserSection = attrs.field(factory=UserSection, repr=False)
    namespace: str = DEFAULT_NAMESPACE
    source: str = ""
    """The file and context that the configuration comes from, or another source, for messages."""

    @property
    def server(self) -> str:
        return self.cluster.server.rstrip("/")

    @property
    def address(self) -> str:
        """The server's URL without user and password, for messages."""
        return without_user(self.server)

    def tls(self) -> ssl.SSLContext:
        """Return the SSL context that verifies a connection, without the client's own certificate.

        Raises:
            ConnectionConfigError: a certificate can't be read.
        """
        cluster = self.cluster
        if cluster.insecure_skip_tls_verify:
            context = ssl.create_default_context()
            # In this order: Python refuses CERT_NONE while host names are checked.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        try:
            if cluster.certificate_authority_data:
                text = decoded(cluster.certificate_authority_data, "certificate-authority-data")
            elif cluster.certificate_authority:
                text = small_file(cluster.certificate_authority)
            else:
                return ssl.create_default_context()
            # Comments between certificates may have any encoding.
            return ssl.create_default_context(cadata=text.decode("ascii", "ignore"))
        except (OSError, ValueError) as error:
            where = cluster.certificate_authority or "certificate-authority-data"
            raise ConnectionConfigError(
                f"{self.source}: {where}: no certificate authority can be read: {error}"
            ) from None


def load_connection(
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    master: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ConnectionConfig:
    """Return how to reach the API server.

    As with kubectl, the first of these sources is used: `kubeconfig`, the files that KUBECONFIG names (the first value
    counts), `~/.kube/config`, the service account of the pod that this process runs in. `master` replaces the server's
    address.

    Raises:
        ConnectionConfigError: there is no configuration, or it is invalid.
    """
    paths = _paths(kubeconfig, environment)
    if paths:
        config = _selected(paths, context)
    elif context is None and environment.get("KUBERNETES_SERVICE_HOST"):
        config = _in_cluster(environment, service_account)
    elif context is None and master:
        config = ConnectionConfig(ClusterSection(), source=f"--master {without_user(master)}")
    else:
        raise ConnectionConfigError(
            "no API server is known: there is no ~/.kube/config, KUBECONFIG names no file, and this is not a pod; "
            "give a kubeconfig (--kubeconfig FILE)"
        )
    if master:
        config = attrs.evolve(config, cluster=msgspec.structs.replace(config.cluster, server=master))
    # Checked after `master` has replaced the address; neither message shows a user or password of the URL.
    if not _is_address(config.server):
        raise ConnectionConfigError(
            f"{config.source}: server: must be an address such as https://10.0.0.1:6443, not {config.address!r}"
        )
    if config.user.auth_provider is not None:
        raise ConnectionConfigError(
            f"{config.source}: auth-provider was removed from Kubernetes in v1.26; use an exec plugin"
        )
    return config


def decoded(data: str, name: str) -> bytes:
    """Return the decoded bytes of a kubeconfig's base64 value. Raises ConnectionConfigError."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConnectionConfigError(f"{name}: is not base64: {error}") from None


def without_user(url: str) -> str:
    """Return the URL without user and password, for messages. A user name may be a token."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _is_address(server: str) -> bool:
    if not server.startswith(("https://", "http://")) or not is_header_text(server) or " " in server:
        return False
    try:
        parts = urlsplit(server)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # The port is invalid, or an IPv6 address lacks a bracket.
        return False


def is_header_text(text: str) -> bool:
    """Return whether the text can be the value of an HTTP header. A line end would start another header."""
    return text.isascii() and text.isprintable()


def small_file(path: str) -> bytes:
    """Return the content of a file that a kubeconfig names.

    Raises:
        OSError, ValueError: it can't be read, or is no regular file of at most 1 MiB. A pipe or device might never end.
    """
    with os.fdopen(os.open(path, _READ), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("is no regular file")
        content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise ValueError(f"is larger than {_LARGEST_FILE} bytes")
    return content


def _paths(kubeconfig: Path | str | None, environment: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        return [Path(kubeconfig).expanduser()]
    named = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    if named:
        # As in kubectl, missing files of the list are skipped.
        # If all are missing, reading the first one gives the error.
        return [path for path in named if path.exists()] or named[:1]
    default = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [default] if default.is_file() else []


def current_context(environment: Mapping[str, str]) -> str:
    """Return kubectl's context, from the files of KUBECONFIG or from ~/.kube/config; empty if they name none.

    Raises:
        ConnectionConfigError: a file can't be read.
    """
    return _current(_read(path) for path in _paths(None, environment))


def _current(files: Iterable[_File]) -> str:
    return next((file.current_context for file in files if file.current_context), "")


def _selected(paths: list[Path], context: str | None) -> ConnectionConfig:
    files = [(path, _read(path)) for path in paths]
    name = context or _current(file for _, file in files)
    source = f"{paths[0]}" if len(paths) == 1 else os.pathsep.join(map(str, paths))
    # From the last file to the first, so that the first value of a name stays.
    contexts = {each.name: each.context for _, file in reversed(files) for each in file.contexts or ()}
    if not name:
        raise ConnectionConfigError(
            f"{source}: has no current-context; say which with --context: {_listed(contexts)}"
        )
    if name not in contexts:
        raise ConnectionConfigError(f"{source}: no context is named {name!r}; there is {_listed(contexts)}")
    chosen = contexts[name]
    clusters = {
        each.name: _with_paths(each.cluster, path, "certificate_authority")
        for path, file in reversed(files)
        for each in file.clusters or ()
    }
    users = {
        each.name: _user_with_paths(each.user, path)
        for path, file in reversed(files)
        for each in file.users or ()
    }
    if chosen.cluster not in clusters:
        raise ConnectionConfigError(
            f"{source}: context {name!r} names the cluster {chosen.cluster!r}; there is {_listed(clusters)}"
        )
    if chosen.user and chosen.user not in users:
        raise ConnectionConfigError(
            f"{source}: context {name!r} names the user {chosen.user!r}; there is {_listed(users)}"
        )
    return ConnectionConfig(
        clusters[chosen.cluster],
        users.get(chosen.user, UserSection()),
        chosen.namespace or DEFAULT_NAMESPACE,
        f"{source}, context {name}",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _read(path: Path) -> _File:
    try:
        with open_file(path) as file:
            text = file.read(_LARGEST_KUBECONFIG + 1)
    except OSError as error:
        raise ConnectionConfigError(f"{path}: can't be read: {error.strerror or error}") from None
    if len(text) > _LARGEST_KUBECONFIG:
        raise ConnectionConfigError(
            f"{path}: is larger than {_LARGEST_KUBECONFIG} bytes, and so no kubeconfig"
        )
    try:
        *_, built = build(text.decode(), largest=_LARGEST_KUBECONFIG, whole=True)
        return msgspec.convert({} if built.content is None else built.content, _File)
    except (DocumentError, UnicodeDecodeError) as error:
        raise ConnectionConfigError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None
    except (msgspec.ValidationError, RecursionError) as error:
        raise ConnectionConfigError(f"{path}: is no kubeconfig: {error}") from None


def _with_paths(section: T, file: Path, *names: str) -> T:
    """Return the section with absolute paths. In the file, paths are relative to the file's directory."""
    assert isinstance(section, _Section)
    given = {name: getattr(section, name) for name in names}
    absolute = {name: str(file.absolute().parent / path) for name, path in given.items() if path}
    return msgspec.structs.replace(section, **absolute)


def _user_with_paths(user: UserSection, file: Path) -> UserSection:
    found = _with_paths(user, file, "client_certificate", "client_key", "token_file")
    plugin = found.exec
    if plugin is None or "/" not in plugin.command:  # A command without a slash is looked up in PATH.
        return found
    command = str(file.absolute().parent / plugin.command)
    return msgspec.structs.replace(found, exec=msgspec.structs.replace(plugin, command=command))


def _in_cluster(environment: Mapping[str, str], service_account: Path) -> ConnectionConfig:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    token = service_account / "token"
    if not token.is_file():
        raise ConnectionConfigError(
            f"{token}: there is no token, though KUBERNETES_SERVICE_HOST says that this is a pod; "
            "has its service account automountServiceAccountToken: false?"
        )
    namespace = service_account / "namespace"
    return ConnectionConfig(
        ClusterSection(
            server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
            certificate_authority=str(service_account / "ca.crt"),
        ),
        UserSection(token_file=str(token)),
        namespace.read_text().strip() if namespace.is_file() else DEFAULT_NAMESPACE,
        "the pod's service account",
    )
