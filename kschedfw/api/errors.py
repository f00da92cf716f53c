"""The root of kschedfw's exceptions: every error the library raises on purpose derives from `KschedfwError`."""


class KschedfwError(Exception):
    """Base class of all errors that kschedfw raises on purpose; its text is meant to be shown to a user."""


class InvalidObjectError(KschedfwError, ValueError):
    """A built API object is invalid; the text names the field and the allowed values."""
