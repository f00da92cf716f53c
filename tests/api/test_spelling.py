"""A name that is there is meant by another only if it is the one that is close."""

from __future__ import annotations

import pytest

from kschedfw.api import close_to, did_you_mean


@pytest.mark.parametrize(
    ("name", "names", "meant"),
    [
        ("sdd", ["ssd", "hdd"], "ssd"),
        ("ssd", ["ssd", "sdd"], None),
        ("red", ["blue"], None),
        ("a", [], None),
        ("node-12", ["node-13", "node-2"], None),
        ("us-east-2a", ["us-east-1a"], None),
        ("us-east-1d", ["us-east-1a", "us-east-1b", "us-east-1c"], None),
        ("gp33", ["gp2", "gp3"], "gp3"),
        ("L4", ["l4", "t4"], "l4"),
        ("L4", ["l4", "L40"], "l4"),
        ("amd46", ["amd64", "arm64"], "amd64"),
        ("h100", ["a100"], None),
        ("topology.kubernetes.io/rack", ["topology.kubernetes.io/zone"], None),
        ("nvidia.com/mig-1g.5gb", ["nvidia.com/gpu", "cpu"], None),
        ("nvidia.com/gpus", ["nvidia.com/gpu", "amd.com/gpu"], "nvidia.com/gpu"),
        ("topolgy.kubernetes.io/zone", ["topology.kubernetes.io/zone"], "topology.kubernetes.io/zone"),
    ],
)
def test_what_is_close(name: str, names: list[str], meant: str | None) -> None:
    assert close_to(name, names) == meant


def test_a_question_is_asked_only_about_a_name_that_is_close() -> None:
    assert did_you_mean("gp33", ["gp2", "gp3"]) == " (did you mean gp3?)"
    assert did_you_mean("gp3", ["gp2", "gp3"]) == ""
