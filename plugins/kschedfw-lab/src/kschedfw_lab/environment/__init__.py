"""Simulations as environments for reinforcement learning, with the API of Gymnasium."""

from kschedfw.api import how_to_install
from kschedfw.scheduler import MissingExtraError

try:
    import gymnasium
except ImportError as error:
    raise MissingExtraError(
        f"environments need gymnasium; install it with: {how_to_install('kschedfw-lab', 'gym')}"
    ) from error

from kschedfw_lab.environment.actions import ActionError
from kschedfw_lab.environment.environment import Environment, Workload, WorkloadError
from kschedfw_lab.environment.recording import RecordedEpisodes
from kschedfw_lab.environment.reward import Reward, Transition, pods_bound

ID = "kschedfw/Scheduling-v0"
"""The environment's id: `gymnasium.make("kschedfw_lab.environment:kschedfw/Scheduling-v0", workload=...)`."""

gymnasium.register(ID, entry_point="kschedfw_lab.environment:Environment")

__all__ = [
    "ID",
    "ActionError",
    "Environment",
    "RecordedEpisodes",
    "Reward",
    "Transition",
    "Workload",
    "WorkloadError",
    "pods_bound",
]
