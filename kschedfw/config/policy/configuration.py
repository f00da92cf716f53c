"""A Policy as a whole configuration: one profile, with everything else as it is by default."""

from __future__ import annotations

from kschedfw.config.catalog import PluginCatalog
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.document import ConfigurationDocument
from kschedfw.config.expansion import Origin
from kschedfw.config.feature_gates import DEFAULT_GATES, FeatureGates
from kschedfw.config.policy.profile import policy_profile
from kschedfw.config.policy.reading import policy_of
from kschedfw.config.traced_configuration import traced_configuration


def policy_configuration(
    document: ConfigurationDocument, catalog: PluginCatalog, gates: FeatureGates = DEFAULT_GATES
) -> SchedulerConfiguration:
    """What the Policy in the document stands for; plugins that aren't there are left out, with a warning.

    Raises:
        ConfigurationError: with everything that is wrong with it.
    """
    policy = policy_of(document)
    return traced_configuration(
        policy_profile(policy, gates, source=document.source),
        catalog,
        Origin.POLICY,
        source=document.source,
        api_version=document.api_version,
        extenders=policy.extenders,
        warnings=document.warnings,
    )
