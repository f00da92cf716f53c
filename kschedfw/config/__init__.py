"""Configurations: documents of all versions of kube-scheduler, the default profile, feature gates."""

from kschedfw.config.configuration import ConfiguredPlugin, ProfileConfiguration, SchedulerConfiguration
from kschedfw.config.default_profile import default_profile
from kschedfw.config.errors import ConfigurationError
from kschedfw.config.expansion import Origin
from kschedfw.config.feature_gates import FEATURE_GATES, FeatureGate, FeatureGateError, FeatureGates
from kschedfw.config.in_tree import DEFAULT_PLUGINS
from kschedfw.config.loading import load_configuration, parse_configuration
from kschedfw.config.policy import Policy, load_policy, parse_policy, policy_profile
from kschedfw.config.providers import PROVIDERS, UnknownProviderError, provider_profile
from kschedfw.config.traced_configuration import provider_configuration
from kschedfw.config.traced_profile import TracedProfile, UnavailablePluginsError

__all__ = [
    "DEFAULT_PLUGINS",
    "FEATURE_GATES",
    "PROVIDERS",
    "ConfigurationError",
    "ConfiguredPlugin",
    "FeatureGate",
    "FeatureGateError",
    "FeatureGates",
    "Origin",
    "Policy",
    "ProfileConfiguration",
    "SchedulerConfiguration",
    "TracedProfile",
    "UnavailablePluginsError",
    "UnknownProviderError",
    "default_profile",
    "load_configuration",
    "load_policy",
    "parse_configuration",
    "parse_policy",
    "policy_profile",
    "provider_configuration",
    "provider_profile",
]
