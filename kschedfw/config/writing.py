"""Writes effective configurations: as a document that states every setting, or with some settings changed."""

from __future__ import annotations

from typing import Final

import attrs

from kschedfw.api.field_errors import FieldError
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.default_profile import REMOVED_IN_V1
from kschedfw.config.effective import plain, settings_of
from kschedfw.config.errors import ConfigurationError
from kschedfw.config.loading import KIND, VERSIONS
from kschedfw.config.schema import (
    ALL,
    MULTI_POINT,
    ClientConnection,
    LeaderElection,
    points_of_version,
)
from kschedfw.config.validation import client_connection_errors, leader_election_errors
from kschedfw.framework.profile import ExtensionPoint, Profile

_VERSION, _OLDER_VERSION = VERSIONS[0], VERSIONS[1]

_LOOKS_AT_ALL: Final = "only a Policy can ask for every filter's answer (alwaysCheckAllPredicates)"


def written(configuration: SchedulerConfiguration) -> dict[str, object]:
    """Return a KubeSchedulerConfiguration with the effect of this configuration, as JSON has it, secrets included.

    It is for the version of Kubernetes whose feature gates the configuration has, and must be read with that version.

    Every extension point names its plugins itself, so that another version's defaults change nothing. A Policy
    becomes a KubeSchedulerConfiguration, too; its version is v1beta3 if it has plugins that v1 doesn't know.

    Raises:
        ConfigurationError: a Policy asks for something that a KubeSchedulerConfiguration can't say.
    """
    errors = [
        FieldError.forbidden(f"profiles[{index}].runAllFilters", _LOOKS_AT_ALL)
        for index, profile in enumerate(configuration.profiles)
        if profile.run_all_filters
    ]
    if errors:
        raise ConfigurationError(configuration.source, errors)
    names = {plugin.name for profile in configuration.profiles for plugin in profile.listed}
    return {
        "apiVersion": _OLDER_VERSION if names & REMOVED_IN_V1 else _VERSION,
        "kind": KIND,
        **settings_of(configuration, conceal=False),
        "profiles": [_profile(profile, configuration.gates.version) for profile in configuration.profiles],
    }


def _profile(profile: Profile, version: str) -> dict[str, object]:
    points = points_of_version(version)
    percentage = profile.percentage_of_nodes_to_score
    return {
        "schedulerName": profile.scheduler_name,
        **({} if percentage is None else {"percentageOfNodesToScore": percentage}),
        "plugins": {
            # Plugins of the other points have no other place; what else they would get from here is disabled at every
            # point.
            MULTI_POINT: _plugin_set(profile, *(point for point in ExtensionPoint if point not in points)),
            **{str(point): _plugin_set(profile, point) for point in points},
        },
        "pluginConfig": [
            {"name": name, "args": plain(args, conceal=False)} for name, args in profile.args.items()
        ],
    }


def _plugin_set(profile: Profile, *points: ExtensionPoint) -> dict[str, object]:
    weights = {plugin.name: plugin.weight for point in points for plugin in profile.points.get(point, ())}
    enabled = [{"name": name, **({"weight": weight} if weight else {})} for name, weight in weights.items()]
    return {"enabled": enabled, "disabled": [{"name": ALL}]}


COMMAND_LINE = "command line"


def overridden(
    configuration: SchedulerConfiguration,
    *,
    leader_election: LeaderElection,
    client_connection: ClientConnection,
) -> SchedulerConfiguration:
    """Return the configuration with these in place of its own.

    Raises:
        ConfigurationError: the result isn't valid; its source is the command line.
    """
    errors = [
        *(error.inside("leaderElection") for error in leader_election_errors(leader_election)),
        *(error.inside("clientConnection") for error in client_connection_errors(client_connection)),
    ]
    if errors:
        raise ConfigurationError(COMMAND_LINE, errors)
    return attrs.evolve(configuration, leader_election=leader_election, client_connection=client_connection)
