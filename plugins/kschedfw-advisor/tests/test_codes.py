"""Whatever the commands say in JSON has a code of the tables, and its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kschedfw_advisor import codes
from strict import FILES, yardstick_of

from kschedfw.explain import CAUSES, FINDINGS, GROUP_CAUSES, SCHEMA_VERSION, ReasonCode, code_of_plugin
from kschedfw.simulator import Outcome
from kschedfw.testing import Command

OUTCOMES = (
    codes.outcomes(),
    codes.fit_outcomes(),
    codes.scale_up_outcomes(),
    codes.drain_outcomes(),
    {each.value: ReasonCode(each.meaning) for each in Outcome},
)
TABLES = {
    "outcome": codes.outcomes(),
    "causes": CAUSES,
    "groupCause": GROUP_CAUSES,
    "findings": {**FINDINGS, **codes.findings()},
    "actions": codes.changes(),
}


def coded(value: Any, key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object with a code in a document, with the name of the field that it is in."""
    if isinstance(value, dict):
        if "code" in value:
            yield key, value
        for name, each in value.items():
            yield from coded(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from coded(each, key)


def check(key: str, found: dict[str, Any]) -> None:
    table: dict[str, ReasonCode] = dict(TABLES[key])
    if key == "causes" and found["code"] == code_of_plugin(found["plugin"]) and found["code"] not in table:
        assert list(found["parameters"]) == ["reason"]
        return
    assert set(found["parameters"]) <= set(table[found["code"]].parameters)
    assert found["text"]


@pytest.mark.parametrize("file", FILES)
def test_what_is_said_of_planted_problems_is_coded(file: str) -> None:
    # Not a test for each workload: every worker would ask about all of them in order to know their names.
    for kind in (kind for group in yardstick_of(file).told["groups"] for kind in group["kinds"]):
        workload = kind["workload"]
        assert kind["outcome"] in TABLES["outcome"], workload
        assert kind["causes"] or kind["groupCause"] or kind["findings"], workload
        for key, found in coded(kind):
            check(key, found)
        for remedy in kind["helps"]:
            assert [each["text"] for each in remedy["actions"]] == remedy["changes"], workload


CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: a-1, labels: {kubernetes.io/hostname: a-1, disk: ssd}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: a-2, labels: {kubernetes.io/hostname: a-2}}
spec: {taints: [{key: spot, value: "yes", effect: NoSchedule}]}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: default}
spec: {hard: {pods: "3"}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      containers: [{name: c, image: i, resources: {requests: {cpu: 2500m}}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: here
  uid: here
  labels: {app: here}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: here, uid: r, controller: true}]
spec: {nodeName: a-1, nodeSelector: {disk: ssd}, containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
GROUP = """\
name: small
template: {metadata: {labels: {kubernetes.io/hostname: s}}, status: {allocatable: {cpu: "1", memory: 1Gi, pods: 5}}}
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("fit", "cluster.yaml", "--cpu", "3"), {"insufficient-resource", "untolerated-taint"}),
        (("fit", "cluster.yaml", "--cpu", "100m"), {"quota-exceeded"}),
        (
            ("scale-up", "cluster.yaml", "--node-group", "group.yaml"),
            {"insufficient-resource", "node-selector", "quota-exceeded"},
        ),
        (("drain", "cluster.yaml", "a-1"), {"pod-no-place", "node-selector"}),
        (("scale-down", "cluster.yaml"), {"pod-no-place"}),
        (("simulate", "cluster.yaml"), {"insufficient-resource", "node-selector"}),
    ],
)
def test_every_refusal_and_outcome_of_a_command_has_a_code_of_the_tables(
    kschedfw_command: Command, tmp_path: Path, arguments: tuple[str, ...], expected: set[str]
) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "group.yaml").write_text(GROUP)
    given = [tmp_path / each if each.endswith(".yaml") else each for each in arguments]
    document = kschedfw_command(*given, "--json").json
    assert document["schemaVersion"] == SCHEMA_VERSION
    found = set()
    for key, each in coded(document):
        found.add(each["code"])
        if "parameters" in each:
            check("findings" if key in {"finding", "kept"} else key, each)
        else:
            assert each["code"] in TABLES["findings"]
    assert expected <= found
    outcomes = {code for table in OUTCOMES for code in table}
    assert {each["outcome"] for each in _with_outcome(document)} <= outcomes | {
        "moves",
        "no place",
        "returns",
    }


def _with_outcome(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "outcome" in value:
            yield value
        for each in value.values():
            yield from _with_outcome(each)
    elif isinstance(value, list):
        for each in value:
            yield from _with_outcome(each)
