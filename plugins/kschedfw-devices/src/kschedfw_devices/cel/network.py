"""IP addresses, networks in CIDR notation, and URLs in CEL."""

import ipaddress
import re
from collections.abc import Callable
from typing import ClassVar, Final
from urllib.parse import quote, unquote_plus, unquote_to_bytes

import attrs

from kschedfw_devices.cel.functions import accepts, overload, overloads
from kschedfw_devices.cel.values import EvaluationError, Map, Value

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@attrs.frozen
class IP:
    """An address; IPv6 addresses have no zone and stand for no IPv4 address."""

    cel_name: ClassVar = "net.IP"

    address: _Address

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8


@attrs.frozen
class CIDR:
    """An address with the length of a prefix, as it was written: bits after the prefix may be set."""

    cel_name: ClassVar = "net.CIDR"

    address: _Address
    bits: int

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network(f"{self.address}/{self.bits}", strict=False)


def _address(text: str) -> _Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(
            f'IP Address "{text}" parse error during conversion from string: '
            f'ParseAddr("{text}"): unable to parse IP'
        ) from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


@overload("ip(string) -> ip")
def _ip(text: str) -> IP:
    return IP(_address(text))


@overload("ip.isCanonical(string) -> bool")
def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


_LOCAL_MULTICAST: Final = (ipaddress.ip_network("224.0.0.0/24"), 0xFF02)


def _is_link_local_multicast(ip: IP) -> bool:
    network, first = _LOCAL_MULTICAST
    if ip.address.version == 4:
        return ip.address in network
    return int(ip.address) >> 112 & 0xFF0F == first


def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    # As Go's `IsGlobalUnicast`, by which private addresses count.
    broadcast = address.version == 4 and int(address) == 2**32 - 1
    return not (
        broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


_OF_IP: Final[dict[str, Callable[[IP], Value]]] = {
    "string(ip) -> string": lambda ip: str(ip.address),
    "<ip>.family() -> int": lambda ip: ip.address.version,
    "<ip>.isUnspecified() -> bool": lambda ip: ip.address.is_unspecified,
    "<ip>.isLoopback() -> bool": lambda ip: ip.address.is_loopback,
    "<ip>.isLinkLocalMulticast() -> bool": _is_link_local_multicast,
    "<ip>.isLinkLocalUnicast() -> bool": lambda ip: ip.address.is_link_local,
    "<ip>.isGlobalUnicast() -> bool": _is_global_unicast,
}
overloads(_OF_IP)
overload("isIP(string) -> bool")(accepts(_address))


_BITS: Final = re.compile(r"0|[1-9][0-9]{0,2}")


@overload("cidr(string) -> cidr")
def _cidr(text: str) -> CIDR:
    where = f'netip.ParsePrefix("{text}")'
    head = "network address parse error during conversion from string: " * 2
    address_text, slash, bits = text.rpartition("/")
    if not slash:
        raise EvaluationError(f"{head}{where}: no '/'")
    try:
        address = ipaddress.ip_address(address_text)
    except ValueError:
        raise EvaluationError(f'{head}{where}: ParseAddr("{address_text}"): unable to parse IP') from None
    if "%" in address_text:
        raise EvaluationError(f"{head}{where}: IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(bits):
        raise EvaluationError(f'{head}{where}: bad bits after slash: "{bits}"')
    if int(bits) > address.max_prefixlen:
        raise EvaluationError(f"{head}{where}: prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(
            "network address parse error during conversion from string: "
            f'IPv4-mapped IPv6 address "{text}" is not allowed'
        )
    return CIDR(address, int(bits))


@overload("<cidr>.containsIP(string) -> bool", "<cidr>.containsIP(ip) -> bool")
def _contains_ip(cidr: CIDR, ip: str | IP) -> bool:
    address = ip.address if isinstance(ip, IP) else _address(ip)
    return address.version == cidr.address.version and address in cidr.network


@overload("<cidr>.containsCIDR(string) -> bool", "<cidr>.containsCIDR(cidr) -> bool")
def _contains_cidr(cidr: CIDR, other: str | CIDR) -> bool:
    inner = other if isinstance(other, CIDR) else _cidr(other)
    return (
        inner.address.version == cidr.address.version
        and cidr.bits <= inner.bits
        and inner.network.network_address in cidr.network
    )


_OF_CIDR: Final[dict[str, Callable[[CIDR], Value]]] = {
    "string(cidr) -> string": lambda cidr: f"{cidr.address}/{cidr.bits}",
    "<cidr>.ip() -> ip": lambda cidr: IP(cidr.address),
    "<cidr>.prefixLength() -> int": lambda cidr: cidr.bits,
    "<cidr>.masked() -> cidr": lambda cidr: CIDR(cidr.network.network_address, cidr.bits),
}
overloads(_OF_CIDR)
overload("isCIDR(string) -> bool")(accepts(_cidr))


# --- URLs


@attrs.frozen
class URL:
    """The parts of an absolute URL or an absolute path."""

    cel_name: ClassVar = "kubernetes.URL"

    scheme: str
    user: str
    host: str
    path: str
    query: str
    fragment: str


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:<>\"\[\]\x80-\U0010ffff]|%[0-9A-Fa-f]{2})*")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


@overload("url(string) -> url")
def _url(text: str) -> URL:
    if not text:
        raise _no_url(text, "empty url")
    if text == "*":
        return URL("", "", "", "*", "", "")
    if _CONTROL.search(text):
        raise _no_url(text, "net/url: invalid control character in URL")
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    if text.startswith(":"):
        raise _no_url(text, "missing protocol scheme")
    # The check takes no fragment for one; the reading does.
    if not rest.partition("?")[0].startswith("/"):
        raise _no_url(text, "invalid URI for request")
    rest, _, fragment = rest.partition("#")
    rest, _, query = rest.partition("?")
    user = host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
        user, _, host = authority.rpartition("@")
        if not _USER.fullmatch(user):
            raise _no_url(text, "net/url: invalid userinfo")
        _check_host(text, host)
    if bad := _BAD_ESCAPE.search(rest):
        raise _no_url(text, f'invalid URL escape "{bad[0]}"')
    return URL(scheme, user, host, rest, query, fragment)


def _no_url(text: str, why: str) -> EvaluationError:
    return EvaluationError(f'URL parse error during conversion from string: parse "{text}": {why}')


def _check_host(text: str, host: str) -> None:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _no_url(text, "missing ']' in host")
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if not _PORT.fullmatch(port):
        raise _no_url(text, f'invalid port "{port}" after host')
    if not _HOST.fullmatch(host):
        raise _no_url(text, "invalid character in host name")


is_url: Final = overload("isURL(string) -> bool")(accepts(_url))
"""Tell whether a text is an absolute URL or an absolute path."""


def _hostname(url: URL) -> str:
    name = url.host
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if ":" in name else name


def _port(url: URL) -> str:
    _, colon, port = url.host.rpartition("]")[2].rpartition(":")
    return port if colon else ""


def _escaped_path(url: URL) -> str:
    return quote(unquote_to_bytes(url.path), safe="/:@&=+$,;~!*'()-._") if "%" not in url.path else url.path


def _query(url: URL) -> Map:
    values: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        # Malformed pairs are left out, as by Go's `URL.Query`; a semicolon makes one.
        if not part or ";" in part or _BAD_ESCAPE.search(part):
            continue
        key, _, value = part.partition("=")
        values.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return Map.of_strings(values)


_OF_URL: Final[dict[str, Callable[[URL], Value]]] = {
    "<url>.getScheme() -> string": lambda url: url.scheme,
    "<url>.getHost() -> string": lambda url: url.host,
    "<url>.getHostname() -> string": _hostname,
    "<url>.getPort() -> string": _port,
    "<url>.getEscapedPath() -> string": _escaped_path,
    "<url>.getQuery() -> map(string, list(string))": _query,
}
overloads(_OF_URL)
