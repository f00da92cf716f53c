"""The errors of questions that can't be answered."""

from kschedfw.api.errors import KschedfwError


class WhatIfError(KschedfwError):
    """The error of a transaction that was asked for something impossible; says what, and what would be possible."""


class ConcurrentUseError(WhatIfError, RuntimeError):
    """The error of using a WhatIf on a thread while another one uses it, or has a transaction open."""

    def __str__(self) -> str:
        return (
            "this WhatIf is in use on another thread, or a transaction is open there: use one WhatIf per thread, or "
            "hand it over once its transaction has ended"
        )
