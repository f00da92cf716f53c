"""Simulations as environments for reinforcement learning, with the API of Gymnasium."""

from kschedfw.scheduler.errors import MissingExtraError

try:
    import gymnasium
except ImportError as error:
    raise MissingExtraError(
        "environments need gymnasium; install it with: pip install 'kschedfw[gym]'"
    ) from error

from kschedfw.experiments.environment.actions import ActionError
from kschedfw.experiments.environment.environment import Environment, Workload, WorkloadError
from kschedfw.experiments.environment.reward import Reward, Transition, pods_bound

ID = "kschedfw/Scheduling-v0"
"""For `gymnasium.make("kschedfw.experiments.environment:kschedfw/Scheduling-v0", workload=...)`."""

gymnasium.register(ID, entry_point="kschedfw.experiments.environment:Environment")

__all__ = [
    "ID",
    "ActionError",
    "Environment",
    "Reward",
    "Transition",
    "Workload",
    "WorkloadError",
    "pods_bound",
]
