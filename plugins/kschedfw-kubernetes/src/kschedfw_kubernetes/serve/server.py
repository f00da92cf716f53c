"""A server of the endpoints over HTTPS, on a separate thread."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from typing import Any, Final

from kschedfw.scheduler import Structured
from kschedfw_kubernetes.serve.certificates import (
    DEFAULT_TLS,
    CertificateError,
    ServerCertificate,
    TlsSettings,
)
from kschedfw_kubernetes.serve.client_certificates import ClientCertificates
from kschedfw_kubernetes.serve.endpoints import PEER, Endpoints
from kschedfw_kubernetes.web.http_server import GRACE_SECONDS, LAST_SECONDS, Server, configured, listen

_log = logging.getLogger(__name__)

_LOOK_AT_CERTIFICATE: Final = 30
"""Seconds between two checks whether the certificate's files have changed."""


class EndpointServer:
    """A server of the endpoints, from `start` until `close`.

    Clients may show a certificate that the authorities of `clients` have signed. With another certificate the
    handshake fails, since Python's TLS verifies each certificate that it requests.

    Raises:
        CertificateError: OpenSSL doesn't support the settings of TLS.
        ListenError: the address is taken, or isn't one of this machine's.
    """

    def __init__(
        self,
        address: str,
        port: int,
        certificate: ServerCertificate,
        clients: ClientCertificates,
        settings: TlsSettings = DEFAULT_TLS,
    ) -> None:
        self._certificate, self._clients = certificate, clients
        settings.apply(certificate.context)
        self._trust(clients)
        self._listening: socket.socket = listen(address, port)
        self._ready = threading.Event()
        """Set when clients are answered, or when the start has failed."""
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def start(self, endpoints: Endpoints) -> None:
        """Begin to answer. Return when clients can connect."""
        settings = configured(endpoints)
        settings.lifespan = "off"
        settings.callback_notify = self._look_at_certificates
        settings.timeout_notify = _LOOK_AT_CERTIFICATE
        settings.ssl_context_factory = lambda _settings, _default: self._certificate.context
        # `load` chooses the protocol's class, which is extended after that.
        settings.load()
        settings.http_protocol_class = _telling_peer(settings.http_protocol_class)
        self._server = Server(settings, self._ready.set)
        self._thread = threading.Thread(
            target=self._serve, args=(self._server,), name="kschedfw-endpoints", daemon=True
        )
        self._thread.start()
        self._ready.wait()
        _log.info(Structured("Serving securely", address=self._listening.getsockname()[0], port=self.port))

    def close(self) -> None:
        """Stop serving within some seconds, even if clients keep connections open."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(GRACE_SECONDS + LAST_SECONDS)
        self._listening.close()

    def _serve(self, server: Server) -> None:
        try:
            asyncio.run(server.serve(sockets=[self._listening]))
        except Exception:
            _log.exception("the endpoints failed")
        finally:
            self._ready.set()

    def _trust(self, clients: ClientCertificates) -> None:
        """Request a certificate of these authorities from new connections, if there are any authorities.

        Former authorities stay trusted, since a context can't remove any. Their certificates are refused after the
        handshake.
        """
        context, authorities = self._certificate.context, clients.authorities
        if authorities.all:
            context.load_verify_locations(cadata=authorities.in_der())
            # As in Go, each certificate of a bundle is a root.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_mode = ssl.CERT_OPTIONAL

    async def _look_at_certificates(self) -> None:
        await asyncio.to_thread(self._clients.refresh)
        self._trust(self._clients)
        try:
            if self._certificate.refresh():
                _log.info("the certificate's files have changed; new connections get the new one")
        except CertificateError as error:
            _log.error("%s; the former certificate stays in use", error)


def _telling_peer(protocol: type[Any]) -> type[Any]:
    """Return uvicorn's protocol, extended such that requests have the client's certificate in their state."""

    class TellingPeer(protocol):  # type: ignore[misc]  # which one is known only now
        app_state: dict[str, Any]

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
            self.app_state = {**self.app_state, PEER: certificate}

    return TellingPeer
