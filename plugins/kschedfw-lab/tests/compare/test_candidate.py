"""A candidate is a configuration, or one profile of it for every pod."""

from __future__ import annotations

import pytest
from compare.scenes import CONFIGURATION, packing, pod, two_nodes
from kschedfw_lab.compare import Setup, UnknownProfileError

from kschedfw import Pod, make_pod
from kschedfw.config import parse_configuration
from kschedfw.scheduler.setup import objects_of


def test_a_whole_configuration_keeps_its_settings_and_its_scheduler_names() -> None:
    candidate = Setup.of("both", parse_configuration(CONFIGURATION))
    assert [profile.scheduler_name for profile in candidate.profiles] == ["default-scheduler", "packing"]
    assert (candidate.configuration.pod_max_backoff_seconds, candidate.takes_every_pod) == (30, False)


def test_one_profile_takes_every_pending_pod_whichever_scheduler_it_names() -> None:
    cluster = two_nodes(pod("web"), make_pod("own").scheduler_name("somebody").build())
    own = packing().cluster_of(objects_of(cluster))
    names = {each.name: each.spec.scheduler_name for each in own.list(Pod)}
    assert names == {"seated": "default-scheduler", "web": "packing", "own": "packing"}
    assert {each.spec.scheduler_name for each in cluster.list(Pod)} == {"default-scheduler", "somebody"}


def test_a_profile_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UnknownProfileError) as refused:
        Setup.of("x", parse_configuration(CONFIGURATION, "file.yaml"), "spread")
    assert str(refused.value) == "file.yaml: no profile 'spread'; there are default-scheduler, packing"
