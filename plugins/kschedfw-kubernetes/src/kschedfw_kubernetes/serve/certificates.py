"""The certificate of the endpoints: a given one, or one that the process signs itself."""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs

from kschedfw import Clock, KschedfwError

PAIR_NAME: Final = "kube-scheduler"
"""The name of the files in `--cert-dir`, before `.crt` and `.key`."""
_VALID: Final = timedelta(days=365)
_LEEWAY: Final = timedelta(hours=1)
"""The time before now from which a certificate is valid, since clocks differ."""


class CertificateError(KschedfwError, ValueError):
    """A certificate or key can't be used. The message says which one and why."""


@attrs.frozen
class _KeyPair:
    certificate: bytes
    key: bytes


_VERSIONS: Final = {
    f"VersionTLS1{minor}": version
    for minor, version in enumerate(
        (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    )
}
_CIPHERS: Final = {
    f"TLS_{iana}": openssl
    for iana, openssl in (
        ("ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"),
        ("ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"),
        ("ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"),
        ("ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"),
        ("ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256"),
        ("RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
    )
}
"""OpenSSL's names of cipher suites by Go's names, which the flag of kube-scheduler has.

OpenSSL lacks Go's RC4 and 3DES.
"""
_CIPHERS_OF_1_3: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
"""The cipher suites that TLS 1.3 always has, in Go as well. The flag may name them."""


@attrs.frozen
class TlsSettings:
    """The lowest version of TLS, and OpenSSL's names of the cipher suites up to TLS 1.2.

    Empty means OpenSSL's defaults.
    """

    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: str = ""

    @classmethod
    def parse(cls, version: str, suites: str) -> TlsSettings:
        """Parse the values of `--tls-min-version` and `--tls-cipher-suites`. Empty ones mean the defaults.

        Raises:
            CertificateError: a name isn't known. The message has the flag and the known names.
        """
        if version and version not in _VERSIONS:
            raise CertificateError(f"--tls-min-version {version}: must be one of {', '.join(_VERSIONS)}")
        asked = [name.strip() for name in suites.split(",") if name.strip()]
        if unknown := [name for name in asked if name not in _CIPHERS and name not in _CIPHERS_OF_1_3]:
            known = ", ".join((*sorted(_CIPHERS_OF_1_3), *_CIPHERS))
            raise CertificateError(f"--tls-cipher-suites {unknown[0]}: must be of {known}")
        chosen = [_CIPHERS[name] for name in asked if name in _CIPHERS]
        return cls(_VERSIONS[version] if version else cls().minimum, ":".join(chosen))

    def apply(self, context: ssl.SSLContext) -> None:
        """Apply the settings to new connections of this context.

        Raises:
            CertificateError: the installed OpenSSL has none of the cipher suites.
        """
        context.minimum_version = self.minimum
        try:
            if self.ciphers:
                context.set_ciphers(self.ciphers)
        except ssl.SSLError as error:
            raise CertificateError(
                f"--tls-cipher-suites: {ssl.OPENSSL_VERSION} has none of them: {self.ciphers}"
            ) from error


DEFAULT_TLS: Final = TlsSettings()


class ServerCertificate:
    """A certificate and its key in files (PEM), and the TLS settings made of them.

    Raises:
        CertificateError: the files can't be read, or don't belong together.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._loaded = self._state()
        self._load(self.context)

    def refresh(self) -> bool:
        """Load the files again if they have changed, for new connections. Return whether they have changed.

        Missing files count as unchanged: they are being replaced, or were temporary files.

        Raises:
            CertificateError: the new files can't be used; the old certificate stays in use.
        """
        if not all(file.exists() for file in self._files) or (state := self._state()) == self._loaded:
            return False
        # Try the pair in another context first: a half-written pair must not break the one in use.
        self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        self._load(self.context)
        self._loaded = state
        return True

    def _load(self, context: ssl.SSLContext) -> None:
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"certificate {certificate} with key {key} can't be used: {error}"
            ) from error

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        try:
            return tuple(
                (found.st_mtime_ns, found.st_size, found.st_ino) for found in map(os.stat, self._files)
            )
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error


def self_signed(clock: Clock, names: Sequence[str], directory: Path | None = None) -> ServerCertificate:
    """Return a self-signed certificate for these names and addresses, valid for a year.

    With a directory it is written there as `kube-scheduler.crt` and `.key`; if these files exist, they are used
    unchanged.

    Raises:
        CertificateError: the directory's files can't be used.
        OSError: the directory can't be written to.
    """
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="kschedfw-") as folder:
            return _written(_signed(clock, names), Path(folder))
    certificate, key = _paths(directory)
    if certificate.exists() and key.exists():
        return ServerCertificate(certificate, key)
    directory.mkdir(parents=True, exist_ok=True)
    return _written(_signed(clock, names), directory)


def _paths(directory: Path) -> tuple[Path, Path]:
    return directory / f"{PAIR_NAME}.crt", directory / f"{PAIR_NAME}.key"


def _written(pair: _KeyPair, directory: Path) -> ServerCertificate:
    certificate, key = _paths(directory)
    certificate.write_bytes(pair.certificate)
    key.touch(mode=0o600)
    key.write_bytes(pair.key)
    return ServerCertificate(certificate, key)


def _signed(clock: Clock, names: Sequence[str]) -> _KeyPair:
    # Imported here, since processes without endpoints have the settings alone.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def general_name(name: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    key = ec.generate_private_key(ec.SECP256R1())
    moment = datetime.fromtimestamp(clock.now(), UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{names[0]}@{int(clock.now())}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - _LEEWAY)
        .not_valid_after(moment + _VALID)
        .add_extension(x509.SubjectAlternativeName([general_name(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _no_password() -> str:
    raise ValueError("the key is encrypted, and there is nobody to ask for its password")
