"""Authentication by client certificates of users, and of proxies that name their user in headers.

Both work as in kube-scheduler's delegated authentication. The authorities come from the flags, or else from the
ConfigMap `extension-apiserver-authentication`, which the API server maintains in kube-system. OpenSSL checks chain,
dates and purpose during the handshake, against both bundles together. This module determines which bundle matched.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import attrs
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

from kschedfw.scheduler import Structured
from kschedfw_kubernetes.serve.access import User
from kschedfw_kubernetes.serve.certificates import CertificateError
from kschedfw_kubernetes.web.asgi import Header

_log = logging.getLogger(__name__)

CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"

_AUTHENTICATED: Final = "system:authenticated"
_UID: Final = ObjectIdentifier("1.3.6.1.4.1.57683.2")
"""The attribute of a certificate's subject in which Kubernetes keeps the user's uid."""
_CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"

Authority = tuple[x509.Certificate, ...]
"""The certificates of a bundle. Each of them is trusted by itself."""


@attrs.frozen
class FrontProxy:
    """The proxies whose requests name their user, and the headers with the name (kube-scheduler `--requestheader-…`).

    Without `allowed_names`, every certificate of the authority is a proxy's. Headers are in lower case.
    """

    authority: Authority
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@attrs.frozen
class Authorities:
    """The authorities that sign the certificates of users, and those of proxies."""

    clients: Authority = ()
    proxies: FrontProxy | None = None

    @property
    def all(self) -> Authority:
        return (*self.clients, *(() if self.proxies is None else self.proxies.authority))

    def in_der(self) -> bytes:
        """Return all certificates, as `SSLContext.load_verify_locations` takes them."""
        return b"".join(each.public_bytes(Encoding.DER) for each in self.all)


class ClientCertificates:
    """Finds the user of a certificate.

    `given` are the authorities of the flags. `look_up` reads the ConfigMap's data, for authorities that the flags leave
    out.
    """

    def __init__(
        self, given: Authorities = Authorities(), look_up: Callable[[], Mapping[str, str]] | None = None
    ) -> None:
        self._given = self.authorities = given
        self._look_up = look_up if not (given.clients and given.proxies) else None
        self._last_problem = ""

    def refresh(self) -> None:
        """Look the authorities up again.

        This waits for the API server. If it fails, the known authorities stay in use.
        """
        if self._look_up is None:
            return
        try:
            found = read_authorities(self._look_up())
        except Exception as error:  # The client may be of any kind, and the ConfigMap may have any content.
            if (problem := str(error)) != self._last_problem:
                self._last_problem = problem
                _log.warning(
                    Structured(
                        "Unable to look up who signs client certificates; those of the cluster aren't accepted",
                        err=problem,
                    )
                )
            return
        self._last_problem = ""
        # Replaced at once, since other threads read it during requests.
        self.authorities = Authorities(
            self._given.clients or found.clients, self._given.proxies or found.proxies
        )

    def user(self, certificate: bytes, headers: Sequence[Header]) -> User | None:
        """Return the user that a certificate (DER) or the headers of its request name; None if they name none."""
        shown, authorities = x509.load_der_x509_certificate(certificate), self.authorities
        name = _first(shown, NameOID.COMMON_NAME)
        # In the order of kube-scheduler's authenticators: proxies' headers, certificates, and then tokens (see
        # `Endpoints`).
        proxies = authorities.proxies
        if proxies is not None and _is_issued_by(shown, proxies.authority):
            may_speak = not proxies.allowed_names or name in proxies.allowed_names
            user = _user_of_headers(proxies, headers) if may_speak else None
            if user is not None:
                return user
        if not name or not _is_issued_by(shown, authorities.clients):
            return None
        return User(
            name,
            uid=_first(shown, _UID),
            groups=_with_authenticated(_all(shown, NameOID.ORGANIZATION_NAME)),
            extra=((_CREDENTIAL_ID, (f"X509SHA256={hashlib.sha256(certificate).hexdigest()}",)),),
        )


def read_bundle(flag: str, file: Path) -> Authority:
    """Return the certificates of a file (PEM).

    Raises:
        CertificateError: the file can't be read, or has no certificate. The text names the flag.
    """
    try:
        return tuple(x509.load_pem_x509_certificates(file.read_bytes()))
    except OSError as error:
        raise CertificateError(f"{flag} {file}: {error.strerror}") from error
    except ValueError as error:
        raise CertificateError(f"{flag} {file}: must have certificates (PEM), at least one") from error


def read_authorities(data: Mapping[str, str]) -> Authorities:
    """Return the authorities of the ConfigMap's data; its lists are JSON.

    Raises ValueError if a value can't be read.
    """

    def names(key: str) -> tuple[str, ...]:
        return tuple(map(str, json.loads(data.get(f"requestheader-{key}") or "[]")))

    def bundle(key: str) -> Authority:
        return tuple(x509.load_pem_x509_certificates(data[key].encode())) if data.get(key) else ()

    proxies = None
    if authority := bundle("requestheader-client-ca-file"):
        proxies = FrontProxy(
            authority,
            names("allowed-names"),
            *(
                tuple(map(str.lower, names(key)))
                for key in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix")
            ),
        )
    return Authorities(bundle("client-ca-file"), proxies)


def _is_issued_by(shown: x509.Certificate, authority: Authority) -> bool:
    return any(_has_issued(issuer, shown) for issuer in authority)


def _has_issued(issuer: x509.Certificate, shown: x509.Certificate) -> bool:
    try:
        shown.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        # The issuer has another name or another kind of key, or the signature is forged.
        return False
    return True


def _user_of_headers(proxies: FrontProxy, headers: Iterable[Header]) -> User | None:
    decoded = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]

    def values(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(value for wanted in names for name, value in decoded if name == wanted)

    name = next(filter(None, values(proxies.username_headers)), "")
    if not name:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in decoded:
        for prefix in proxies.extra_prefixes:
            if header.startswith(prefix):
                key = unquote(header.removeprefix(prefix))
                extra[key] = (*extra.get(key, ()), value)
    return User(
        name,
        uid=next(filter(None, values(proxies.uid_headers)), ""),
        groups=_with_authenticated(values(proxies.group_headers)),
        extra=tuple(sorted(extra.items())),
    )


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)


def _first(shown: x509.Certificate, attribute: ObjectIdentifier) -> str:
    return next(iter(_all(shown, attribute)), "")


def _all(shown: x509.Certificate, attribute: ObjectIdentifier) -> tuple[str, ...]:
    return tuple(str(each.value) for each in shown.subject.get_attributes_for_oid(attribute))
