"""Policy documents, with which kube-scheduler was configured until v1.22: reading them, and what they stand for."""

from kschedfw.config.policy.model import Policy, PredicatePolicy, PriorityPolicy
from kschedfw.config.policy.profile import policy_profile
from kschedfw.config.policy.reading import load_policy, parse_policy

__all__ = ["Policy", "PredicatePolicy", "PriorityPolicy", "load_policy", "parse_policy", "policy_profile"]
