"""An API server for tests: the cluster in memory behind HTTP, as a kube-apiserver would serve it."""

from kschedfw_kubernetes.testing.access import User
from kschedfw_kubernetes.testing.audit import AuditEvent, AuditLog
from kschedfw_kubernetes.testing.faults import Faults
from kschedfw_kubernetes.testing.server import ApiServer, Certificate, ServerError

__all__ = ["ApiServer", "AuditEvent", "AuditLog", "Certificate", "Faults", "ServerError", "User"]
