"""Groups of three kinds get what kube-scheduler gives them, on a real server: members bound, conditions and texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
from kschedfw_apiserver.control_plane import control_plane
from serve.beside import (
    PODGROUPS,
    PODS,
    SERVED,
    RunningScheduler,
    kschedfw,
    kube_scheduler,
    needs_kube_scheduler,
    node,
)

_GROUPS, _RACKS, _IN_A_RACK, _SINGLE = 50, 10, 4, 40

pytestmark = needs_kube_scheduler


def nodes() -> Iterator[dict[str, Any]]:
    """Racks for groups that want one, and single nodes for the others."""
    for rack in range(_RACKS):
        for number in range(_IN_A_RACK):
            yield node(f"rack{rack}-{number}", {"pool": "racks", "rack": f"r{rack}"})
    for number in range(_SINGLE):
        yield node(f"single{number}", {"pool": "single"})


def group(number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A group with its members, each of which fills a node.

    In turns: a gang in one rack, a gang anywhere, and pods that only belong together. Members of every fifth gang are
    too few, those of every seventh group have a node selector that nothing matches.
    """
    name, kind = f"group{number:02}", number % 3
    wanted = (_IN_A_RACK, 3, 2)[kind]
    spec: dict[str, Any] = {
        "schedulingPolicy": {"basic": {}} if kind == 2 else {"gang": {"minCount": wanted}}
    }
    if kind == 0:
        spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    pool = "none" if number % 7 == 6 else "racks" if kind == 0 else "single"
    members = [
        {
            "metadata": {"name": f"{name}-{index}"},
            "spec": {
                "schedulingGroup": {"podGroupName": name},
                "nodeSelector": {"pool": pool},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}],
            },
        }
        for index in range(wanted - (kind != 2 and number % 5 == 4))
    ]
    return {"metadata": {"name": name}, "spec": spec}, members


def outcome(client: httpx2.Client, made: dict[str, Any], members: list[dict[str, Any]]) -> dict[str, Any]:
    """What the group and its members became, without the nodes' names: ties are drawn."""
    found = client.get(f"{PODGROUPS}/{made['metadata']['name']}").raise_for_status().json()
    pods = [client.get(f"{PODS}/{each['metadata']['name']}").raise_for_status().json() for each in members]
    placed = [each["spec"]["nodeName"] for each in pods if "nodeName" in each["spec"]]
    return {
        "bound": len(placed),
        "racks": len({name.rpartition("-")[0] for name in placed}),
        "group": conditions(found),
        "pods": sorted(map(str, map(conditions, pods))),
    }


def conditions(manifest: Mapping[str, Any]) -> list[tuple[str, ...]]:
    found = manifest.get("status", {}).get("conditions", [])
    return [tuple(each.get(name, "") for name in ("type", "status", "reason", "message")) for each in found]


def outcomes(scheduler: RunningScheduler, folder: Path) -> dict[str, dict[str, Any]]:
    """The outcome of each group, which come one after the other."""
    folder.mkdir()
    groups = [group(number) for number in range(_GROUPS)]
    with control_plane(folder, flags=SERVED) as server, server.client() as client:
        for each in nodes():
            client.post("/api/v1/nodes", json=each).raise_for_status()
        with scheduler(server, folder):
            for made, members in groups:
                client.post(PODGROUPS, json=made).raise_for_status()
                for each in members:
                    client.post(PODS, json=each).raise_for_status()
                while is_complete(made, members) and not is_decided(outcome(client, made, members)):
                    time.sleep(0.05)
            return settled(
                lambda: {made["metadata"]["name"]: outcome(client, made, members) for made, members in groups}
            )


def is_complete(made: dict[str, Any], members: list[dict[str, Any]]) -> bool:
    """Whether the gang has its members: nobody says anything of one that hasn't."""
    wanted: int = made["spec"]["schedulingPolicy"].get("gang", {}).get("minCount", 0)
    return len(members) >= wanted


def is_decided(found: dict[str, Any]) -> bool:
    return bool(found["group"]) and "[]" not in found["pods"]


def settled(asked: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer when it is the same for the third time."""
    before, same = asked(), 0
    while same < 2:
        time.sleep(1)
        now = asked()
        before, same = now, same + 1 if now == before else 0
    return before


def test_fifty_groups_of_three_kinds(tmp_path: Path) -> None:
    theirs = outcomes(kube_scheduler, tmp_path / "theirs")
    ours = outcomes(kschedfw, tmp_path / "ours")
    assert ours == theirs
    assert {each["bound"] for each in theirs.values()} >= {0, 2, 3, 4}
