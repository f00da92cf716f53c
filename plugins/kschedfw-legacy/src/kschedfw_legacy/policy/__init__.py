"""Reads Policy documents, which configured kube-scheduler until v1.22, and converts them to profiles."""

from kschedfw_legacy.policy.model import Policy, PredicatePolicy, PriorityPolicy
from kschedfw_legacy.policy.profile import policy_profile
from kschedfw_legacy.policy.reading import load_policy, parse_policy

__all__ = ["Policy", "PredicatePolicy", "PriorityPolicy", "load_policy", "parse_policy", "policy_profile"]
