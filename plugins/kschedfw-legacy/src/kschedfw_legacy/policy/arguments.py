"""Converts the arguments of custom predicates and priorities to arguments of plugins."""

from __future__ import annotations

from typing import Self

import attrs

from kschedfw_legacy.policy.model import Policy, PriorityArgument, RequestedToCapacityRatioArguments
from kschedfw_legacy.policy.tables import PREDICATE_ALIASES, PREDICATES, PRIORITIES, PRIORITY_ALIASES

LABELS = "NodeLabel"
SERVICES = "ServiceAffinity"
RATIO = "RequestedToCapacityRatio"


@attrs.define
class CustomArguments:
    """The arguments of all custom predicates and priorities of a policy, in the fields of the plugins that use them."""

    present_labels: list[str] = attrs.field(factory=list)
    absent_labels: list[str] = attrs.field(factory=list)
    present_preferences: list[str] = attrs.field(factory=list)
    absent_preferences: list[str] = attrs.field(factory=list)
    affinity_labels: list[str] = attrs.field(factory=list)
    anti_affinity_labels: list[str] = attrs.field(factory=list)
    ratio: RequestedToCapacityRatioArguments | None = None

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """Collect a policy's arguments.

        An entry with the name of a known predicate or priority isn't custom; its argument is ignored.
        """
        custom = cls()
        for predicate in policy.predicates or ():
            if predicate.argument is None or predicate.name in (*PREDICATES, *PREDICATE_ALIASES):
                continue
            if (affinity := predicate.argument.service_affinity) is not None:
                custom.affinity_labels += affinity.labels
            if (presence := predicate.argument.labels_presence) is not None:
                # The list itself, so that `+=` extends it.
                labels = custom.present_labels if presence.presence else custom.absent_labels
                labels += presence.labels
        for priority in policy.priorities or ():
            if priority.argument is None or priority.name in (*PRIORITIES, *PRIORITY_ALIASES):
                continue
            custom._add(priority.argument)
        return custom

    @staticmethod
    def plugin_of(argument: PriorityArgument) -> str:
        """Return the plugin that uses the argument to score."""
        if argument.service_anti_affinity is not None:
            return SERVICES
        return LABELS if argument.label_preference is not None else RATIO

    def multiplicity(self, plugin: str) -> int:
        """Return how many priorities the plugin serves.

        It scores by their average, so its weight must be the sum of their weights.
        """
        match plugin:
            case "NodeLabel":
                return len(self.present_preferences) + len(self.absent_preferences)
            case "ServiceAffinity":
                return len(self.anti_affinity_labels)
        return 1

    def args(self) -> dict[str, object]:
        """Return the arguments by plugin, as in a KubeSchedulerConfiguration.

        Plugins without arguments are left out.
        """
        labels = {
            "presentLabels": self.present_labels,
            "absentLabels": self.absent_labels,
            "presentLabelsPreference": self.present_preferences,
            "absentLabelsPreference": self.absent_preferences,
        }
        services = {
            "affinityLabels": self.affinity_labels,
            "antiAffinityLabelsPreference": self.anti_affinity_labels,
        }
        args: dict[str, object] = {}
        for plugin, given in ((LABELS, labels), (SERVICES, services)):
            if any(given.values()):
                args[plugin] = {key: value for key, value in given.items() if value}
        if self.ratio is not None:
            args[RATIO] = _ratio_args(self.ratio)
        return args

    def _add(self, argument: PriorityArgument) -> None:
        if (spread := argument.service_anti_affinity) is not None:
            self.anti_affinity_labels.append(spread.label)
        if (preference := argument.label_preference) is not None:
            labels = self.present_preferences if preference.presence else self.absent_preferences
            labels.append(preference.label)
        if argument.requested_to_capacity_ratio_arguments is not None:
            self.ratio = argument.requested_to_capacity_ratio_arguments


def _ratio_args(ratio: RequestedToCapacityRatioArguments) -> dict[str, object]:
    args: dict[str, object] = {
        "shape": [{"utilization": point.utilization, "score": point.score} for point in ratio.shape]
    }
    if ratio.resources:
        args["resources"] = [{"name": each.name, "weight": each.weight} for each in ratio.resources]
    return args
