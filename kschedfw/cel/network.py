"""IP addresses, networks in CIDR notation, and URLs in CEL."""

import ipaddress
import re
from typing import ClassVar, Final
from urllib.parse import quote, unquote_plus, unquote_to_bytes

import attrs

from kschedfw.cel.functions import overload
from kschedfw.cel.values import EvaluationError, Map

__all__ = ["CIDR", "IP", "URL", "is_url"]

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


@overload("isIP(string) -> bool")
def _is_ip(text: str) -> bool:
    try:
        _address(text)
    except EvaluationError:
        return False
    return True


@overload("ip.isCanonical(string) -> bool")
def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


@overload("string(ip) -> string")
def _ip_text(ip: IP) -> str:
    return str(ip.address)


@overload("<ip>.family() -> int")
def _family(ip: IP) -> int:
    return ip.address.version


@overload("<ip>.isUnspecified() -> bool")
def _is_unspecified(ip: IP) -> bool:
    return ip.address.is_unspecified


@overload("<ip>.isLoopback() -> bool")
def _is_loopback(ip: IP) -> bool:
    return ip.address.is_loopback


_LOCAL_MULTICAST: Final = (ipaddress.ip_network("224.0.0.0/24"), 0xFF02)


@overload("<ip>.isLinkLocalMulticast() -> bool")
def _is_link_local_multicast(ip: IP) -> bool:
    network, first = _LOCAL_MULTICAST
    if ip.address.version == 4:
        return ip.address in network
    return int(ip.address) >> 112 & 0xFF0F == first


@overload("<ip>.isLinkLocalUnicast() -> bool")
def _is_link_local_unicast(ip: IP) -> bool:
    return ip.address.is_link_local


@overload("<ip>.isGlobalUnicast() -> bool")
def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    broadcast = address.version == 4 and int(address) == 2**32 - 1
    return not (
        broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


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


@overload("isCIDR(string) -> bool")
def _is_cidr(text: str) -> bool:
    try:
        _cidr(text)
    except EvaluationError:
        return False
    return True


@overload("string(cidr) -> string")
def _cidr_text(cidr: CIDR) -> str:
    return f"{cidr.address}/{cidr.bits}"


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


@overload("<cidr>.ip() -> ip")
def _cidr_ip(cidr: CIDR) -> IP:
    return IP(cidr.address)


@overload("<cidr>.prefixLength() -> int")
def _prefix_length(cidr: CIDR) -> int:
    return cidr.bits


@overload("<cidr>.masked() -> cidr")
def _masked(cidr: CIDR) -> CIDR:
    return CIDR(cidr.network.network_address, cidr.bits)


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


@overload("isURL(string) -> bool")
def is_url(text: str) -> bool:
    """Return whether a text is an absolute URL or an absolute path."""
    try:
        _url(text)
    except EvaluationError:
        return False
    return True


@overload("<url>.getScheme() -> string")
def _scheme(url: URL) -> str:
    return url.scheme


@overload("<url>.getHost() -> string")
def _host(url: URL) -> str:
    return url.host


@overload("<url>.getHostname() -> string")
def _hostname(url: URL) -> str:
    name = url.host
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if ":" in name else name


@overload("<url>.getPort() -> string")
def _port(url: URL) -> str:
    _, colon, port = url.host.rpartition("]")[2].rpartition(":")
    return port if colon else ""


@overload("<url>.getEscapedPath() -> string")
def _escaped_path(url: URL) -> str:
    return quote(unquote_to_bytes(url.path), safe="/:@&=+$,;~!*'()-._") if "%" not in url.path else url.path


@overload("<url>.getQuery() -> map(string, list(string))")
def _query(url: URL) -> Map:
    values: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        if not part or ";" in part or _BAD_ESCAPE.search(part):
            continue
        key, _, value = part.partition("=")
        values.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return Map.of_strings(values)
