"""The configuration of extenders (kube-scheduler `config.Extender`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import attrs

from kschedfw.api.field_errors import FieldError
from kschedfw.api.names import qualified_name_problems
from kschedfw.api.records import frozen
from kschedfw.api.resource_names import is_extended
from kschedfw.api.scalars import Duration
from kschedfw.config.errors import ExtenderConfigError
from kschedfw.framework.clock import format_duration
from kschedfw.framework.profile import Profile

# kube-scheduler's DefaultExtenderTimeout.
DEFAULT_TIMEOUT = 5.0
"""Seconds that an extender has to answer."""


# The plugin whose arguments name the resources that only extenders manage.
_FIT = "NodeResourcesFit"


def without_password(url: str) -> str:
    """Return the URL without its password, for printed configurations and for errors, which end up in events."""
    # Not by `urlsplit`: errors show URLs that it refuses. The password becomes xxxxx, as in Go's URL.Redacted.
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    end = next((index for index, character in enumerate(rest) if character in "/?#"), len(rest))
    host, colon, port = rest[:end].rpartition(":")
    if colon and "@" not in host and not host.startswith("[") and not port.isdecimal():
        # The colon precedes an unescaped password instead of a port; `/`, `?` or `#` in it don't end the host.
        end = len(rest)
    user, at, host = rest[:end].rpartition("@")
    name, colon, _ = user.partition(":")
    return f"{scheme}{separator}{name}:xxxxx@{host}{rest[end:]}" if at and colon else url


@frozen
class ExtenderTLSConfig:
    """TLS settings of an `https` extender: how to verify it, and how to authenticate to it.

    Data (PEM) takes precedence over the file of the same purpose. `server_name` is the name in the certificate, if it
    isn't the host in the URL. `insecure` accepts any certificate.
    """

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = attrs.field(default=b"", repr=False)
    ca_data: bytes = b""

    @property
    def has_ca(self) -> bool:
        return bool(self.ca_file or self.ca_data)

    @property
    def has_certificate(self) -> bool:
        return bool(self.cert_file or self.cert_data)

    @property
    def has_key(self) -> bool:
        return bool(self.key_file or self.key_data)


@frozen
class ExtenderManagedResource:
    """An extended resource that the extender manages; with `ignored_by_scheduler` only the extender does."""

    name: str
    ignored_by_scheduler: bool = False


@frozen
class ExtenderConfig:
    """One entry of `extenders` in a KubeSchedulerConfiguration.

    A verb is appended to `url_prefix`; an empty verb means that the extender isn't called for it. The URL may have a
    user and a password; the password is never shown. `http_timeout` is in seconds and covers a whole call, 0 means
    5. With `enable_https` and no CA any certificate is accepted, as in kube-scheduler; whether TLS is used depends
    on the URL.
    """

    url_prefix: str = attrs.field(
        default="",
        repr=lambda url: repr(without_password(url)),
        metadata={"shown": without_password},
    )
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = attrs.field(default=False, metadata={"json": "enableHTTPS"})
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = DEFAULT_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def timeout(self) -> float:
        """Seconds for a whole call."""
        return self.http_timeout or DEFAULT_TIMEOUT

    def validate(self) -> Iterator[FieldError]:
        """Yield the errors of this extender alone."""
        yield from _url_errors(self.url_prefix)
        yield from self.validate_rules()
        if self.http_timeout < 0:
            yield FieldError.invalid(
                "httpTimeout", format_duration(self.http_timeout), "must not be negative"
            )
        if self.tls_config is not None:
            yield from _tls_errors(self.tls_config)

    def validate_rules(self) -> Iterator[FieldError]:
        """Yield the errors for which kube-scheduler refuses a document; it finds others when it calls the extender."""
        if self.prioritize_verb and self.weight <= 0:
            yield FieldError.invalid("weight", self.weight, "must have a positive weight applied to it")
        for index, resource in enumerate(self.managed_resources):
            yield from _resource_errors(f"managedResources[{index}].name", resource.name)


def extender_errors(configs: Sequence[ExtenderConfig]) -> Iterator[FieldError]:
    """Yield the errors of each extender, and of all together (kube-scheduler `validateExtenders`)."""
    for index, config in enumerate(configs):
        for error in config.validate():
            yield error.inside(f"extenders[{index}]")
    yield from conflict_errors(configs)


def conflict_errors(configs: Sequence[ExtenderConfig]) -> Iterator[FieldError]:
    """Yield errors of several extenders together, such as two that bind."""
    managed: set[str] = set()
    for index, config in enumerate(configs):
        for position, resource in enumerate(config.managed_resources):
            if resource.name in managed:
                path = f"extenders[{index}].managedResources[{position}].name"
                yield FieldError.invalid(path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(config.bind_verb) for config in configs)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield FieldError.invalid("extenders", found, "only one extender can implement bind")


def check_extenders(configs: Sequence[ExtenderConfig]) -> None:
    """Check every extender, and all of them together.

    Raises:
        ExtenderConfigError: there are errors; names all of them.
    """
    if errors := tuple(extender_errors(configs)):
        raise ExtenderConfigError(errors)


def ignored_resources(configs: Sequence[ExtenderConfig]) -> tuple[str, ...]:
    """Return the resources that only extenders manage, so that NodeResourcesFit ignores them."""
    return tuple(
        resource.name
        for config in configs
        for resource in config.managed_resources
        if resource.ignored_by_scheduler
    )


def with_ignored_resources(profile: Profile, configs: Sequence[ExtenderConfig]) -> Profile:
    """Return the profile with `ignored_resources` in NodeResourcesFit's arguments.

    As in kube-scheduler, they replace those of the profile; without any, the profile isn't changed.
    """
    names = ignored_resources(configs)
    if not names:
        return profile
    given = profile.args.get(_FIT)
    args: object
    if given is None or isinstance(given, Mapping):
        args = {**(given or {}), "ignoredResources": list(names)}
    else:
        # An instance of the plugin's attrs class, which can't be imported here: `plugins` is on the same floor.
        args = attrs.evolve(given, ignored_resources=names)  # type: ignore[misc]  # attrs, but unknown
    return attrs.evolve(profile, args={**profile.args, _FIT: args})


def _url_errors(url: str) -> Iterator[FieldError]:
    if not url:
        # kube-scheduler accepts this URL, and fails when it calls the extender.
        return
    try:
        parts = urlsplit(url)
        # `port` raises ValueError for what is no number of a port.
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
        if usable and parts.hostname is not None and parts.hostname.isascii():
            # Raises ValueError if a part of the name is empty or too long.
            parts.hostname.encode("idna")
    except ValueError:
        usable = False
    if not usable:
        why = "must be an http or https URL with a host"
        yield FieldError.invalid("urlPrefix", without_password(url), why)


def _tls_errors(tls: ExtenderTLSConfig) -> Iterator[FieldError]:
    if tls.insecure and tls.has_ca:
        why = "specifying a root certificates file with the insecure flag is not allowed"
        yield FieldError.invalid("tlsConfig.insecure", True, why)
    if tls.has_certificate != tls.has_key:
        yield FieldError.required(
            "tlsConfig.keyFile" if tls.has_certificate else "tlsConfig.certFile",
            "a client certificate and its key belong together",
        )


def _resource_errors(path: str, name: str) -> Iterator[FieldError]:
    problems = qualified_name_problems(name)
    for why in problems:
        yield FieldError.invalid(path, name, why)
    if not problems and not is_extended(name):
        yield FieldError.invalid(path, name, "is an invalid extended resource name")
