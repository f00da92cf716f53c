"""The root of kschedfw's exceptions: every error the library raises on purpose derives from `KschedfwError`."""


class KschedfwError(Exception):
    """Base class of all errors that kschedfw raises on purpose; its text is meant to be shown to a user."""


class InvalidObjectError(KschedfwError, ValueError):
    """An API object that breaks the API's rules was built; names the field and what it allows."""
