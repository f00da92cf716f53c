"""A pod's GPU request and its devices, read from the annotations of Alibaba's GPU sharing."""

from __future__ import annotations

from functools import lru_cache

import attrs

from kschedfw import Pod

MILLI = 1000
"""Thousandths in a whole GPU."""

GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_COUNT = "alibabacloud.com/gpu-count"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
GPU_INDEX = "alibabacloud.com/gpu-index"


class DemandError(ValueError):
    """An invalid annotation. The message names the annotation, its value and the valid values."""


@attrs.frozen(cache_hash=True)
class GpuDemand:
    """A GPU request: `count` devices, and `milli` thousandths of each. With `models`, only these are accepted."""

    count: int = 0
    milli: int = 0
    models: frozenset[str] = frozenset()

    @property
    def is_none(self) -> bool:
        return self.count == 0

    @property
    def is_share(self) -> bool:
        """Return whether the pod requests a part of a GPU instead of whole ones."""
        return 0 < self.milli < MILLI

    @property
    def total(self) -> int:
        """The requested thousandths, summed over all devices."""
        return self.count * self.milli

    def accepts(self, model: str) -> bool:
        return not self.models or model in self.models


NOTHING = GpuDemand()


def demand_of(pod: Pod, resource: str) -> GpuDemand:
    """Return the pod's GPU request. `resource` is the resource name for whole GPUs.

    Raises:
        DemandError: an annotation is invalid.
    """
    annotations = pod.annotations
    return _demand(
        annotations.get(GPU_MILLI),
        annotations.get(GPU_COUNT),
        annotations.get(GPU_MODEL, ""),
        pod.requests.amounts.scalar_resources.get(resource, 0),
    )


# When a node changes, all its pods are asked again, and a workload has few different requests.
@lru_cache(maxsize=10_000)
def _demand(milli_text: str | None, count_text: str | None, models: str, requested: int) -> GpuDemand:
    if milli_text is None and count_text is None:
        if not requested:
            return NOTHING
        return GpuDemand(requested, MILLI, _models(models))
    milli = MILLI if milli_text is None else _number(GPU_MILLI, milli_text, MILLI)
    count = _number(GPU_COUNT, count_text, None) if count_text is not None else max(requested, 1)
    if milli == 0 or count == 0:
        return NOTHING
    if milli < MILLI and count > 1:
        raise DemandError(f"annotation {GPU_COUNT}: must be 1 with a {GPU_MILLI} below {MILLI}, not {count}")
    return GpuDemand(count, milli, _models(models))


def _models(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split("|")))


def _number(annotation: str, text: str, most: int | None) -> int:
    # `isdigit` accepts digits of other scripts, too. The length is limited because `int` refuses thousands of digits
    # with an error of its own.
    if text.isascii() and text.isdigit() and len(text) < 10 and (most is None or int(text) <= most):
        return int(text)
    expected = "a whole number" if most is None else f"a whole number from 0 to {most}"
    raise DemandError(f"annotation {annotation}: must be {expected}, not {text!r}")


def index_text(devices: tuple[int, ...]) -> str:
    """Format device numbers for the annotation `gpu-index`, for example `2` or `0-1-3`."""
    return "-".join(map(str, devices))


def devices_told(pod: Pod) -> tuple[int, ...] | None:
    """Return the devices in the pod's annotation `gpu-index`; None if it is missing or invalid."""
    text = pod.annotations.get(GPU_INDEX)
    return None if text is None else _devices(text)


@lru_cache(maxsize=10_000)
def _devices(text: str) -> tuple[int, ...] | None:
    parts = text.split("-")
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        return None
    devices = tuple(map(int, parts))
    return devices if len(set(devices)) == len(devices) else None
