"""The page about simulating: what it tells people to dump is what scheduling reads."""

from __future__ import annotations

import re
from pathlib import Path

from kschedfw.api.kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "simulate.md"

STANDS_FOR_PODS = {"Deployment", "DaemonSet", "Job", "CronJob"}
"""Of these kinds a dump has the pods already."""


def test_the_dump_command_names_every_kind_that_is_read() -> None:
    (command,) = re.findall(
        r"^\$ kubectl get -A -o json (\S+) > \S+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    resources = command.split(",")
    assert len(resources) == len(set(resources))
    # kubectl fails as a whole where the server doesn't have a kind, and few servers have groups, or rules
    # that taint devices.
    kinds = {kind.lower() for kind in KINDS.keys() - STANDS_FOR_PODS - {"PodGroup", "DeviceTaintRule"}}
    assert {_singular(resource) for resource in resources} == kinds


def _singular(resource: str) -> str:
    """As kubectl forms its plurals."""
    if resource.endswith("ies"):
        return f"{resource[:-3]}y"
    return resource.removesuffix("es") if resource.endswith("sses") else resource.removesuffix("s")
