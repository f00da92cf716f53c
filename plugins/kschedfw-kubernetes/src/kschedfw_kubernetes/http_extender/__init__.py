"""The client of HTTP extenders: processes that filter, prioritise, preempt and bind."""

from typing import Final

from kschedfw.scheduler import ExtenderClient
from kschedfw_kubernetes.http_extender.client import HTTPExtender
from kschedfw_kubernetes.http_extender.errors import ExtenderError

HTTP_CLIENT: Final = ExtenderClient(lambda config, clock: HTTPExtender(config, clock=clock))

__all__ = ["HTTP_CLIENT", "ExtenderError", "HTTPExtender"]
