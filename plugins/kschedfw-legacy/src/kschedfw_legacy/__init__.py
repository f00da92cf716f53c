"""Features that kube-scheduler dropped after v1.22: Policies, algorithm providers, their feature gates and plugins."""

from kschedfw_legacy.policy import (
    Policy,
    PredicatePolicy,
    PriorityPolicy,
    load_policy,
    parse_policy,
    policy_profile,
)
from kschedfw_legacy.provenance import (
    UnavailablePluginsError,
    check_available,
    only_available,
    provenance,
    unavailable,
)
from kschedfw_legacy.providers import PROVIDERS, UnknownProviderError, provider_profile

__all__ = [
    "PROVIDERS",
    "Policy",
    "PredicatePolicy",
    "PriorityPolicy",
    "UnavailablePluginsError",
    "UnknownProviderError",
    "check_available",
    "load_policy",
    "only_available",
    "parse_policy",
    "policy_profile",
    "provenance",
    "provider_profile",
    "unavailable",
]
