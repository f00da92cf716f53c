"""An API server for tests: the cluster in memory behind HTTP, as a kube-apiserver would serve it."""

from kschedfw.testing.api_server.access import User
from kschedfw.testing.api_server.audit import AuditEvent, AuditLog
from kschedfw.testing.api_server.faults import Faults
from kschedfw.testing.api_server.server import ApiServer, Certificate, ServerError

__all__ = ["ApiServer", "AuditEvent", "AuditLog", "Certificate", "Faults", "ServerError", "User"]
