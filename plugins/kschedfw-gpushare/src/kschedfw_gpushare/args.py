"""Arguments of the plugin GpuShare."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import attrs

from kschedfw import FieldError
from kschedfw_gpushare.demand import MILLI
from kschedfw_gpushare.fragmentation import TypicalPod


class Policy(StrEnum):
    """The policy that scores nodes."""

    FGD = "FGD"
    DOT_PRODUCT = "DotProd"
    BEST_FIT = "BestFit"
    GPU_PACKING = "GpuPacking"
    GPU_CLUSTERING = "GpuClustering"
    RANDOM = "Random"


class DevicePick(StrEnum):
    """The rule which GPU of a node a sharing pod gets. Pods that request whole GPUs get the first free ones."""

    FGD = "FGD"
    BEST_FIT = "BestFit"
    WORST_FIT = "WorstFit"
    RANDOM = "Random"


_PICK_BY_DEFAULT = {Policy.FGD: DevicePick.FGD, Policy.RANDOM: DevicePick.RANDOM}


@attrs.frozen
class GpuShareArgs:
    """Arguments of GpuShare, as configuration files give them.

    `device_pick` defaults to the rule that belongs to `policy`.

    With `fill_in_order`, the first of equally good nodes scores highest. Without it, the scheduler draws among them, so
    that pods also go to empty nodes although used ones have room.

    `typical_pods` define fragmentation. If none are given, they are derived from the pods in the cluster at the first
    scheduling attempt: the most frequent requests that together cover `popularity` percent (1 to 100) of the pods.

    DotProd, BestFit and GpuClustering measure amounts as shares of `largest_node_cpus` (CPUs) and `largest_node_gpus`
    (GPUs). `gpu_resource` is the name of the resource for whole GPUs, on nodes and in requests.
    """

    policy: Policy = Policy.FGD
    device_pick: DevicePick | None = None
    fill_in_order: bool = True
    typical_pods: tuple[TypicalPod, ...] = ()
    popularity: int = 95
    largest_node_cpus: int = 128
    largest_node_gpus: int = 8
    gpu_resource: str = "nvidia.com/gpu"

    @property
    def pick(self) -> DevicePick:
        return self.device_pick or _PICK_BY_DEFAULT.get(self.policy, DevicePick.BEST_FIT)

    def validate(self) -> Iterator[FieldError]:
        if self.policy not in tuple(Policy):
            yield FieldError.unsupported("policy", self.policy, tuple(Policy))
        if self.device_pick is not None and self.device_pick not in tuple(DevicePick):
            yield FieldError.unsupported("devicePick", self.device_pick, tuple(DevicePick))
        for index, pod in enumerate(self.typical_pods):
            yield from _typical_pod_errors(f"typicalPods[{index}]", pod)
        if not 1 <= self.popularity <= 100:
            yield FieldError.invalid("popularity", self.popularity, "must be from 1 to 100")
        for path, value in (
            ("largestNodeCpus", self.largest_node_cpus),
            ("largestNodeGpus", self.largest_node_gpus),
        ):
            if value < 1:
                yield FieldError.invalid(path, value, "must be at least 1")
        if not self.gpu_resource:
            yield FieldError.required("gpuResource")


def _typical_pod_errors(path: str, pod: TypicalPod) -> Iterator[FieldError]:
    if pod.pods < 1:
        yield FieldError.invalid(f"{path}.pods", pod.pods, "must be at least 1")
    if pod.milli_cpu < 0:
        yield FieldError.invalid(f"{path}.milliCpu", pod.milli_cpu, "must be at least 0")
    if not 0 <= pod.gpu_milli <= MILLI:
        yield FieldError.invalid(f"{path}.gpuMilli", pod.gpu_milli, f"must be from 0 to {MILLI}")
    least, most = (0, 0) if pod.gpu_milli == 0 else (1, 1) if pod.gpu_milli < MILLI else (1, 1000)
    if not least <= pod.gpu_count <= most:
        why = f"must be from {least} to {most} with a gpuMilli of {pod.gpu_milli}"
        yield FieldError.invalid(f"{path}.gpuCount", pod.gpu_count, why)
