"""The arguments of GpuShare."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import attrs

from kschedfw import FieldError
from kschedfw_gpushare.demand import MILLI
from kschedfw_gpushare.fragmentation import TypicalPod


class Policy(StrEnum):
    """How nodes are rated."""

    FGD = "FGD"
    DOT_PRODUCT = "DotProd"
    BEST_FIT = "BestFit"
    GPU_PACKING = "GpuPacking"
    GPU_CLUSTERING = "GpuClustering"
    RANDOM = "Random"


class DevicePick(StrEnum):
    """Which of a node's GPUs a pod shares. Pods with GPUs of their own get the first free ones."""

    FGD = "FGD"
    BEST_FIT = "BestFit"
    WORST_FIT = "WorstFit"
    RANDOM = "Random"


_PICK_BY_DEFAULT = {Policy.FGD: DevicePick.FGD, Policy.RANDOM: DevicePick.RANDOM}


@attrs.frozen
class GpuShareArgs:
    """`device_pick` is by default the one that goes with the `policy`.

    With `fill_in_order`, of equally good nodes the first is rated best; without, the scheduler draws among them, which
    opens new nodes where others could be filled.

    Fragmentation is that which `typical_pods` see. Where none are given, they are taken from the pods that are in the
    cluster when the first one is scheduled: the most frequent requests that cover `popularity` percent of the pods.

    `largest_node_cpus` and `largest_node_gpus` are what DotProd, BestFit and GpuClustering measure by. `gpu_resource`
    is the resource of which nodes have, and pods may request, whole GPUs.
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
