"""Arguments of the plugin Coscheduling."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import FieldError

_POSITIVE = "must be greater than 0"


@attrs.frozen
class CoschedulingArgs:
    """Arguments of Coscheduling, as configuration files give them.

    `permit_waiting_time_seconds` is how long a pod waits at permit for the other pods of its gang. A PodGroup's own
    `scheduleTimeoutSeconds` takes precedence.

    `pod_group_backoff_seconds` is how long the pods of a rejected gang are refused at once. An event that may help the
    gang ends the backoff early. A 0 in either of these two fields means the default.

    `pod_group_reject_percentage` (0 to 100): a gang goes on waiting if at most this percentage of its minMember is
    missing, even if too few pods are left to reach minMember.
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
