"""The choice of GPUs for a pod on the chosen node."""

from __future__ import annotations

from random import Random

from kschedfw_gpushare.args import DevicePick
from kschedfw_gpushare.demand import MILLI
from kschedfw_gpushare.devices import Room
from kschedfw_gpushare.policies import GpuRequest, Rater


def pick_devices(
    how: DevicePick, room: Room, request: GpuRequest, rater: Rater, random: Random
) -> tuple[int, ...]:
    """Return the devices for a pod. `room` has only the chosen node, and the pod fits on it."""
    left, demand = room.gpus[0].tolist(), request.gpus
    if not demand.is_share:
        return tuple([device for device, idle in enumerate(left) if idle == MILLI][: demand.count])
    fitting = [device for device, idle in enumerate(left) if idle >= demand.milli]
    match how:
        case DevicePick.BEST_FIT:
            # `min` and `max` return the first of equal devices.
            return (min(fitting, key=left.__getitem__),)
        case DevicePick.WORST_FIT:
            return (max(fitting, key=left.__getitem__),)
        case DevicePick.RANDOM:
            return (random.choice(fitting),)
        case DevicePick.FGD:
            gains = rater.fragmentation.gains_by_device(room, request.milli_cpu, demand.milli)
            scores = rater.fragmentation.scores(gains)[0]
            return (max(fitting, key=scores.__getitem__),)
