"""The arguments of DynamicResources."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import FieldError, format_duration
from kschedfw.api.scalars import Duration


@attrs.frozen
class DynamicResourcesArgs:
    """The time limits of allocation on a node (0: none; see `budget`), and of binding altogether, in seconds."""

    filter_timeout: Duration = 10.0
    binding_timeout: Duration = 600.0

    def validate(self) -> Iterator[FieldError]:
        if self.filter_timeout < 0:
            given = format_duration(self.filter_timeout)
            yield FieldError.invalid("filterTimeout", given, "must be zero or positive")
        if self.binding_timeout < 1:
            given = format_duration(self.binding_timeout)
            yield FieldError.invalid("bindingTimeout", given, "must be at least 1 second")
