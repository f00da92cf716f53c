"""What a command line says over a configuration is held to the same rules."""

from __future__ import annotations

import attrs
import pytest

from kschedfw.config import ConfigurationError
from kschedfw.config.writing import overridden
from tests.config.documents import document, loaded

DEFAULT = loaded(document())


def test_it_takes_the_place_of_the_configuration_s() -> None:
    election = attrs.evolve(DEFAULT.leader_election, resource_name="mine")
    connection = attrs.evolve(DEFAULT.client_connection, qps=5000.0)
    changed = overridden(DEFAULT, leader_election=election, client_connection=connection)
    assert changed == attrs.evolve(DEFAULT, leader_election=election, client_connection=connection)


def test_the_lease_has_a_name_and_a_namespace() -> None:
    election = attrs.evolve(DEFAULT.leader_election, resource_namespace="", resource_name="")
    with pytest.raises(ConfigurationError) as caught:
        overridden(DEFAULT, leader_election=election, client_connection=DEFAULT.client_connection)
    assert str(caught.value).splitlines() == [
        'command line: leaderElection.resourceNamespace: Invalid value: "": resourceNamespace is required',
        'command line: leaderElection.resourceName: Invalid value: "": resourceName is required',
    ]


def test_invalid_overrides_are_refused_with_their_paths() -> None:
    election = attrs.evolve(DEFAULT.leader_election, lease_duration=5.0, retry_period=-1.0)
    connection = attrs.evolve(DEFAULT.client_connection, burst=-1)
    with pytest.raises(ConfigurationError) as caught:
        overridden(DEFAULT, leader_election=election, client_connection=connection)
    assert str(caught.value).splitlines() == [
        'command line: leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
        'command line: leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        "command line: clientConnection.burst: Invalid value: -1: must be non-negative",
    ]
