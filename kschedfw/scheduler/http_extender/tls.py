"""TLS settings of an extender to an SSL context (kube-scheduler `makeTransport`, client-go `TLSConfigFor`)."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kschedfw.api.field_errors import FieldError
from kschedfw.config.errors import ExtenderConfigError
from kschedfw.config.extenders import ExtenderConfig, ExtenderTLSConfig


def ssl_context(config: ExtenderConfig) -> ssl.SSLContext:
    """What is needed to talk to the extender over TLS.

    Raises:
        ExtenderConfigError: a certificate or key can't be read.
    """
    tls = config.tls_config or ExtenderTLSConfig()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.insecure or (config.enable_https and not tls.has_ca):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.has_ca:
        _load_ca(context, tls)
    else:
        context.load_default_certs()
    if tls.has_certificate:
        _load_certificate(context, tls)
    return context


def _load_ca(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    try:
        if tls.ca_data:
            context.load_verify_locations(cadata=tls.ca_data.decode("ascii"))
        else:
            context.load_verify_locations(cafile=tls.ca_file)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise _unusable("caData" if tls.ca_data else "caFile", tls.ca_file, error) from error


def _load_certificate(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    with _as_file(tls.cert_file, tls.cert_data) as cert, _as_file(tls.key_file, tls.key_data) as key:
        try:
            # Without the callback a key that is encrypted would ask on the terminal.
            context.load_cert_chain(cert, key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise _unusable("certData" if tls.cert_data else "certFile", tls.cert_file, error) from error


def _unusable(field: str, file: str, error: Exception) -> ExtenderConfigError:
    return ExtenderConfigError([FieldError.invalid(f"tlsConfig.{field}", file, f"can't be used: {error}")])


@contextmanager
def _as_file(file: str, data: bytes) -> Iterator[str]:
    """The path of the file or, since OpenSSL reads keys from files alone, of one with the data, only for us to read."""
    if not data:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="kschedfw-") as directory:
        path = Path(directory) / "pem"
        path.touch(mode=0o600)
        path.write_bytes(data)
        yield str(path)
