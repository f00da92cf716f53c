"""A plugin that lets pods wait for clean power, but not beyond their deadlines: `python carbon.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import attrs

from kschedfw import (
    ActionType,
    ClusterEvent,
    EnabledPlugin,
    EventResource,
    FieldError,
    InMemoryCluster,
    NodeInfo,
    Plugin,
    Pod,
    Profile,
    Registry,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.simulator import Simulation

ZONE = "topology.kubernetes.io/zone"
START_BY = "example.com/start-by"
"""The annotation with the time by which a pod has to start, as 2026-06-01T20:00:00Z. Pods without it don't wait."""
HOUR = 3600


@attrs.frozen
class CarbonAwareArgs:
    """The forecast by zone, in grams of CO2 per kWh for each hour of a day (UTC), and the limit for pods that wait."""

    forecast: Mapping[str, tuple[int, ...]]
    limit: int = 200

    def validate(self) -> Sequence[FieldError]:
        return [
            FieldError.invalid(f"forecast.{zone}", list(hours), "must have 24 numbers of at least 0")
            for zone, hours in self.forecast.items()
            if len(hours) != 24 or min(hours) < 0
        ]


class CarbonAware(Plugin[CarbonAwareArgs]):
    """Starts pods that can wait where and when power is clean, and prefers the cleanest zone for all."""

    name = "CarbonAware"
    args_type = CarbonAwareArgs

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        latest, hours = start_by(pod), self._hours_of(node_info)
        now = self.handle.clock.now()
        if latest is None or hours is None or now >= latest or hours[_hour(now)] <= self.args.limit:
            return None
        # No event makes power clean, so the refusal says when it ends by itself.
        return Status.unresolvable(
            "node(s) waited for clean power", retry_at=min(latest, self._next(hours, now))
        )

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        hours = self._hours_of(node_info)
        worst = max((max(each) for each in self.args.forecast.values()), default=0)
        if hours is None or not worst:
            return 0
        return 100 - 100 * hours[_hour(self.handle.clock.now())] // worst

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE_OTHER),
        ]

    def _hours_of(self, node_info: NodeInfo) -> tuple[int, ...] | None:
        return self.args.forecast.get(node_info.node.labels.get(ZONE, ""))

    def _next(self, hours: tuple[int, ...], now: float) -> float:
        """Return the beginning of the next hour with clean power; of the next hour if there is none in a day."""
        begin = now - now % HOUR
        for ahead in range(1, 25):
            if hours[_hour(begin + ahead * HOUR)] <= self.args.limit:
                return begin + ahead * HOUR
        return begin + HOUR


def _hour(time: float) -> int:
    return int(time // HOUR) % 24


def start_by(pod: Pod) -> float | None:
    """Return the time by which the pod has to start, in seconds since the epoch; None if it doesn't wait."""
    try:
        time = datetime.fromisoformat(pod.annotations[START_BY])
        # A time without a zone would depend on where the scheduler runs.
        return None if time.tzinfo is None else time.timestamp()
    except (KeyError, ValueError, OverflowError):
        return None


SUN = (*(400,) * 9, *(120,) * 7, *(400,) * 8)
"""Clean from 9 to 16 o'clock."""
WIND = (*(150,) * 4, *(350,) * 16, *(150,) * 4)
"""Clean from 20 to 4 o'clock."""


def main() -> None:
    registry = Registry()
    registry.register(CarbonAware)
    profile = Profile(
        [*default_profile().multi_point, EnabledPlugin("CarbonAware", weight=5)],
        args={"CarbonAware": CarbonAwareArgs({"south": SUN, "north": WIND})},
    )
    day = datetime(2026, 6, 1, 6, tzinfo=UTC)
    nodes = [make_node(zone).capacity(cpu=4, memory="16Gi").zone(zone).build() for zone in ("south", "north")]
    report_by_8 = day.replace(hour=8).isoformat()
    pods = [
        make_pod("web").requests(cpu=1).build(),
        make_pod("training")
        .requests(cpu=3)
        .annotations({START_BY: day.replace(hour=23).isoformat()})
        .build(),
        make_pod("backup").requests(cpu=2).annotations({START_BY: day.replace(hour=23).isoformat()}).build(),
        make_pod("report").requests(cpu=1).annotations({START_BY: report_by_8}).build(),
    ]
    simulation = Simulation(
        InMemoryCluster([*nodes, *pods]), profiles=[profile], registry=registry, start_time=day
    )
    print(f"it is {day:%H:%M}")
    for decision in sorted(simulation.run().decisions, key=lambda each: each.bound or 0.0):
        assert decision.bound is not None
        time = datetime.fromtimestamp(day.timestamp() + decision.bound, UTC)
        forecast = SUN if decision.node == "south" else WIND
        print(f"{time:%H:%M}  {decision.pod} starts in the {decision.node}, {forecast[time.hour]} g/kWh")


if __name__ == "__main__":
    main()
