from .access import User as User
from .audit import AuditEvent as AuditEvent
from .audit import AuditLog as AuditLog
from .faults import Faults as Faults
from .server import ApiServer as ApiServer
from .server import Certificate as Certificate
from .server import ServerError as ServerError
