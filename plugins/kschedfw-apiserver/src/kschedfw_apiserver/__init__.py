"""An API server for tests: the cluster in memory behind HTTP, as a kube-apiserver would serve it."""

from kschedfw_apiserver.access import User
from kschedfw_apiserver.audit import AuditEvent, AuditLog
from kschedfw_apiserver.faults import Faults
from kschedfw_apiserver.server import ApiServer, Certificate, ServerError

__all__ = ["ApiServer", "AuditEvent", "AuditLog", "Certificate", "Faults", "ServerError", "User"]
