"""The arguments of VolumeBinding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from kschedfw import FieldError
from kschedfw.plugins.node_resources_fit.args import MAX_SHAPE_SCORE, UtilizationShapePoint, shape_errors

DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, MAX_SHAPE_SCORE), UtilizationShapePoint(100, 0))
"""The emptier the better."""


@attrs.frozen
class VolumeBindingArgs:
    """Arguments of VolumeBinding.

    `bind_timeout_seconds` is the time that a pod waits for its volumes before its binding fails.

    `storage_capacity_scoring` stands for kube-scheduler's feature gate of that name, which is off in v1.36.
    With it nodes are scored by `shape`: by the utilization of a volume by its claim and, where a volume has to
    be provisioned, of the available storage. The points are by rising utilization; the function is linear
    between them and constant outside.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None
    storage_capacity_scoring: bool = attrs.field(
        default=False, metadata={"beyond_kube_scheduler": "the gate StorageCapacityScoring"}
    )

    @property
    def scoring_shape(self) -> tuple[UtilizationShapePoint, ...] | None:
        """The utilization function to score nodes by; None if nodes aren't scored."""
        return (self.shape or DEFAULT_SHAPE) if self.storage_capacity_scoring else None

    def validate(self) -> Iterator[FieldError]:
        if self.bind_timeout_seconds < 0:
            why = "invalid BindTimeoutSeconds, should not be a negative value"
            yield FieldError.invalid("bindTimeoutSeconds", self.bind_timeout_seconds, why)
        if self.shape is None:
            return
        if self.storage_capacity_scoring:
            yield from shape_errors(self.shape, "shape")
        else:
            why = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            # kube-scheduler shows its own type, whose fields have no other names than these.
            points = [{"Utilization": point.utilization, "Score": point.score} for point in self.shape]
            yield FieldError.invalid("shape", points, why)
