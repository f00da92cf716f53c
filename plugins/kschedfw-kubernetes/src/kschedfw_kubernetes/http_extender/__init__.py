"""The client of HTTP extenders: processes that filter, prioritise, preempt and bind (extra `extender`)."""

from kschedfw.config.errors import ExtenderConfigError
from kschedfw.config.extenders import (
    DEFAULT_TIMEOUT,
    ExtenderConfig,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    check_extenders,
    ignored_resources,
    with_ignored_resources,
)
from kschedfw.scheduler.errors import MissingExtraError
from kschedfw.scheduler.extenders import (
    bind_with_extenders,
    close_extenders,
    make_extenders,
    order_extenders,
)
from kschedfw_kubernetes.http_extender.client import HTTPExtender
from kschedfw_kubernetes.http_extender.errors import ExtenderError

__all__ = [
    "DEFAULT_TIMEOUT",
    "ExtenderConfig",
    "ExtenderConfigError",
    "ExtenderError",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "HTTPExtender",
    "MissingExtraError",
    "bind_with_extenders",
    "check_extenders",
    "close_extenders",
    "ignored_resources",
    "make_extenders",
    "order_extenders",
    "with_ignored_resources",
]
