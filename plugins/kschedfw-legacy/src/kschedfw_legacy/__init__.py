"""Features that kube-scheduler dropped after v1.22: Policies, algorithm providers, their feature gates and plugins."""

from kschedfw_legacy.policy import (
    Policy,
    PredicatePolicy,
    PriorityPolicy,
    load_policy,
    parse_policy,
    policy_profile,
)
from kschedfw_legacy.providers import PROVIDERS, UnknownProviderError, provider_profile
from kschedfw_legacy.traced_profile import TracedProfile, UnavailablePluginsError

__all__ = [
    "PROVIDERS",
    "Policy",
    "PredicatePolicy",
    "PriorityPolicy",
    "TracedProfile",
    "UnavailablePluginsError",
    "UnknownProviderError",
    "load_policy",
    "parse_policy",
    "policy_profile",
    "provider_profile",
]
