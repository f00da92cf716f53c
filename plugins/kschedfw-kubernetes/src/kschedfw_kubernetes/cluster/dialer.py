"""Connections to one API server: by which address, proxy and TLS."""

from __future__ import annotations

import ssl
from http.client import HTTPException
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from kschedfw import Clock
from kschedfw_kubernetes.cluster.credentials import Identity
from kschedfw_kubernetes.cluster.errors import ConnectionConfigError, UnavailableError
from kschedfw_kubernetes.cluster.kubeconfig import ConnectionConfig
from kschedfw_kubernetes.http.connections import Connection, Peer, Proxy, dial, why

_PORTS: Final = {"http": 80, "https": 443}


class Dialer:
    """A maker of connections to one API server."""

    def __init__(self, config: ConnectionConfig, clock: Clock) -> None:
        """Prepare connections.

        Raises:
            ConnectionConfigError: the proxy is none that can be used.
        """
        self._config, self._clock = config, clock
        self._url = urlsplit(config.server)
        self._proxy = _proxy(config, self._url)

    def dial(self, identity: Identity, timeout: float) -> Connection:
        """Return a new connection, made within `timeout` seconds. Raises UnavailableError."""
        url = self._url
        is_secure = url.scheme == "https"
        peer = Peer(
            url.hostname or "",
            url.port or _PORTS.get(url.scheme, 80),
            (identity.tls or self._config.tls()) if is_secure else None,
            self._config.cluster.tls_server_name,
            self._proxy,
        )
        try:
            connection = dial(peer, timeout, self._clock)
        except ssl.SSLCertVerificationError as error:
            raise UnavailableError(
                f"{self._config.address}: its certificate isn't accepted: {error.verify_message}"
            ) from None
        except (OSError, HTTPException, UnicodeError) as error:
            raise UnavailableError(f"{self._config.address}: can't connect: {why(error)}") from None
        # The context of the server alone is made anew each time: only a client's certificate tells connections apart.
        connection.tls = identity.tls
        return connection


def _proxy(config: ConnectionConfig, url: SplitResult) -> Proxy | None:
    """Return the proxy to use: the kubeconfig's, else the environment's; None if there is none."""
    address = config.cluster.proxy_url
    if not address and url.scheme == "https" and not proxy_bypass(url.netloc.rpartition("@")[2]):
        address = getproxies().get("https", "")
    if not address:
        return None
    try:
        return Proxy.parse(address)
    except ValueError as error:
        raise ConnectionConfigError(f"{config.source}: {error}") from None
