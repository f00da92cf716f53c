"""The arguments of Coscheduling."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import FieldError

_POSITIVE = "must be greater than 0"


@attrs.frozen
class CoschedulingArgs:
    """`permit_waiting_time_seconds` is how long a pod waits for its siblings if its PodGroup doesn't say.

    `pod_group_backoff_seconds` is how long a gang that was rejected is left alone while nothing that may help it
    happens. Zeros of both are unset.
    `pod_group_reject_percentage` (0-100) is how much of its minMember may be missing for a gang to go on waiting,
    although too few pods are left that could get a place.
    """

    permit_waiting_time_seconds: int = attrs.field(default=60, metadata={"zero_is_unset": True})
    pod_group_backoff_seconds: int = attrs.field(default=1, metadata={"zero_is_unset": True})
    pod_group_reject_percentage: int = 0

    def validate(self) -> Iterator[FieldError]:
        for path, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ):
            if value <= 0:
                yield FieldError.invalid(path, value, _POSITIVE)
        if not 0 <= self.pod_group_reject_percentage <= 100:
            yield FieldError.invalid(
                "podGroupRejectPercentage", self.pod_group_reject_percentage, "must be between 0 and 100"
            )
