"""The endpoints over HTTPS, on a thread of their own."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Final

from kschedfw.scheduler.structured import Structured
from kschedfw.serve.certificates import CertificateError, ServerCertificate
from kschedfw.serve.endpoints import Endpoints
from kschedfw.serve.http_server import GRACE_SECONDS, LAST_SECONDS, Server, configured, listen

_log = logging.getLogger(__name__)

_LOOK_AT_CERTIFICATE: Final = 30
"""Seconds after which is looked whether the certificate's files have changed."""


class EndpointServer:
    """Serves the endpoints from `start` until `close`.

    Raises:
        ListenError: the address is taken, or isn't one of this machine's.
    """

    def __init__(self, address: str, port: int, certificate: ServerCertificate) -> None:
        self._certificate = certificate
        self._listening: socket.socket = listen(address, port)
        self._ready = threading.Event()
        """Clients are answered, or won't be."""
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def start(self, endpoints: Endpoints) -> None:
        """Begin to answer; returns when that is so."""
        settings = configured(endpoints)
        settings.lifespan = "off"
        settings.callback_notify = self._look_at_certificate
        settings.timeout_notify = _LOOK_AT_CERTIFICATE
        settings.ssl_context_factory = lambda _settings, _default: self._certificate.context
        self._server = Server(settings, self._ready.set)
        self._thread = threading.Thread(
            target=self._serve, args=(self._server,), name="kschedfw-endpoints", daemon=True
        )
        self._thread.start()
        self._ready.wait()
        _log.info(Structured("Serving securely", address=self._listening.getsockname()[0], port=self.port))

    def close(self) -> None:
        """End, within some seconds, whatever clients do."""
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

    async def _look_at_certificate(self) -> None:
        try:
            if self._certificate.refresh():
                _log.info("the certificate's files have changed; new connections get the new one")
        except CertificateError as error:
            _log.error("%s; the former certificate stays in use", error)
