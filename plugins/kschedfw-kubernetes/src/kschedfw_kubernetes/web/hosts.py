"""A check of the Host of requests. It blocks web pages whose name resolves to this machine (DNS rebinding)."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from typing import Final

ANY: Final = "*"
_LOCAL: Final = "localhost"


class HostRule:
    """The accepted hosts: addresses, `localhost`, and these names, regardless of case and port; `*` accepts all.

    In DNS rebinding, the browser sends the page's name as the Host. Requests without a Host don't come from browsers.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._any = ANY in names
        self._names = frozenset({_LOCAL, *(name.lower() for name in names)})

    def allows(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether a request with these ASGI headers may be answered."""
        return self._any or all(self._allows(value) for name, value in headers if name == b"host")

    def _allows(self, value: bytes) -> bool:
        host = value.decode("latin-1").lower()
        if host.startswith("["):
            host = host[1:].partition("]")[0]
        # With several colons it is an IPv6 address without brackets, which has no port.
        elif host.count(":") == 1:
            host = host.partition(":")[0]
        return host.rstrip(".") in self._names or _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
