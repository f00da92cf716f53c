"""GpuShare: places pods on parts of GPUs and reduces fragmentation."""

from kschedfw_gpushare.args import DevicePick, GpuShareArgs, Policy
from kschedfw_gpushare.demand import GPU_COUNT, GPU_INDEX, GPU_MILLI, GPU_MODEL
from kschedfw_gpushare.devices import NodeDevices, Reservations, devices_of
from kschedfw_gpushare.fragmentation import TypicalPod, typical_pods
from kschedfw_gpushare.plugin import GpuShare

__all__ = [
    "GPU_COUNT",
    "GPU_INDEX",
    "GPU_MILLI",
    "GPU_MODEL",
    "DevicePick",
    "GpuShare",
    "GpuShareArgs",
    "NodeDevices",
    "Policy",
    "Reservations",
    "TypicalPod",
    "devices_of",
    "typical_pods",
]
