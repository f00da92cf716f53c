"""Command-line options over a configuration: leader election, and the connection to the API server."""

from __future__ import annotations

import attrs

from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.errors import ConfigurationError
from kschedfw.config.schema import ClientConnection, LeaderElection
from kschedfw.config.validation import client_connection_errors, leader_election_errors

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
