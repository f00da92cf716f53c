"""Coscheduling: all pods of a group get their places, or none does."""

from kschedfw_coscheduling.args import CoschedulingArgs
from kschedfw_coscheduling.controller import PodGroupController
from kschedfw_coscheduling.plugin import Coscheduling
from kschedfw_coscheduling.pod_group import (
    POD_GROUP_LABEL,
    PodGroup,
    PodGroupPhase,
    PodGroupSpec,
    PodGroupStatus,
)

__all__ = [
    "POD_GROUP_LABEL",
    "Coscheduling",
    "CoschedulingArgs",
    "PodGroup",
    "PodGroupController",
    "PodGroupPhase",
    "PodGroupSpec",
    "PodGroupStatus",
]
