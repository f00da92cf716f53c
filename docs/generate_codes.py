"""Writes docs/codes.md and docs/codes.schema.json from the tables of codes: `python docs/generate_codes.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kschedfw_advisor import codes
from kschedfw_lab.compare.comparison import FateChange
from kschedfw_lab.compare.why import Ground

from kschedfw.explain import CAUSES, FINDINGS, GROUP_CAUSES, SCHEMA_VERSION, ReasonCode
from kschedfw.simulator import Outcome

PAGE: Final = Path(__file__).parent / "codes.md"
SCHEMA: Final = Path(__file__).parent / "codes.schema.json"

_PLAIN: Final = (
    "Outcomes of pending",
    "Outcomes of fit",
    "Outcomes of scale-up",
    "Outcomes of drain",
    "Outcomes of pods in a simulation",
    "Moves",
    "Deviations",
    "Grounds of compare",
)
"""Tables of codes that stand by themselves, without parameters and text."""

INTRODUCTION = """\
# Codes in JSON

For authors of programs that read JSON: after this page you know the codes of refusals, remedies and outcomes.

<!-- Written by docs/generate_codes.py from the tables of codes. Change these. -->

With `--json`, every cause, finding and change has a `code`, its `parameters`, and the `text` that is made from them.
Programs read the codes; texts may become better at any time. `schemaVersion` is {version}. It rises when a code or a
parameter is taken away or changes its meaning. New ones may come at any time, so a program passes over those that it
doesn't know. [The JSON schema](codes.schema.json) has the same tables.

| command | where | what |
| --- | --- | --- |
| `pending` | `groups[].kinds[].outcome` | what came out for the pods |
| `pending` | `groups[].kinds[].causes[]` | the requirements that keep the pods off nodes |
| `pending` | `groups[].kinds[].groupCause` | why their PodGroup has no place |
| `pending` | `groups[].kinds[].findings[]` | what else keeps the pods: claims, gates, missing objects |
| `pending` | `groups[].kinds[].helps[].actions[]` | the changes of one remedy |
| `pending` | `disagreements[].finding` | why a pod is pending in the cluster and has a place here |
| `pending` | `notCreated[].finding` | why pods aren't created |
| `pending` | `stuck[].finding` | why pods that have a node don't start there |
| `pending` | `idle[].finding` | why workloads have no pods |
| `pending --lint` | `oddAmounts[].finding` | amounts that are hardly meant as they are written |
| `explain` | `causes[]`, `findings[]`, `nodes[].evidence[]` | the same of one pod, and of each node |
| `explain podgroup/…` | `cause` | why the group has no place, with the `causes` of its first member without a node |
| `fit` | `pods[].outcome`, `podGroups[].outcome` | what came out for a pod or a group |
| `fit` | `pods[].causes[]`, `podGroups[].next.groupCause` | what keeps the next replica or copy off nodes |
| `fit` | `pods[].quota.finding` | why a quota allows no more |
| `scale-up` | `outcome`, `best.refused[].causes[]` | what new nodes do; why a pod has no place with them either |
| `scale-up` | `notCreated[].finding` | why pods aren't created |
| `drain` | `outcome` | what came out for the nodes |
| `drain` | `blocked[].finding`, `steps[].code` | why a pod can't be evicted; where it ends |
| `drain` | `steps[].causes[]` | what keeps an evicted pod off other nodes |
| `simulate` | `decisions[].outcome`, `decisions[].causes[]` | what came out for a pod; why it has no place at the end |
| `compare` | `moves[].moves[].code` | how a pod fares differently |
| `compare` | `moves[].moves[].before`, `after` | the decisions on it, as in `simulate` |
| `compare` | `moves[].moves[].against.ground`, `evidence[]` | why a node wasn't chosen; the numbers of a refusal |
| `what-if` | `moves[].code` | what becomes of each pod that fares differently |
| `what-if --plan` | `deviations[].code` | what kube-scheduler does otherwise than an autoscaler's plan |
| `scale-down` | `kept` | why each node stays |

A cause has further fields: the `plugin`, how many `nodes` it keeps the pod off, of how many (`ofNodes`), and
`closestNode`, whose numbers the parameters are. `decisive` are the causes on the node that the first
remedy opens to the pod; without a remedy, on the node that is closest to taking it. It has no place there unless these
go. Decisive ones come first. Amounts are integers: millicores of CPU, bytes, pieces.

```console
$ kschedfw pending cluster.yaml --json | jq '.groups[].kinds[] | {{workload, outcome, cause: .causes[0].code}}'
```
"""


def tables() -> Mapping[str, Mapping[str, ReasonCode]]:
    """Return the codes by the heading of their table."""
    return {
        "Outcomes of pending": codes.outcomes(),
        "Outcomes of fit": codes.fit_outcomes(),
        "Outcomes of scale-up": codes.scale_up_outcomes(),
        "Outcomes of drain": codes.drain_outcomes(),
        "Outcomes of pods in a simulation": {each.value: ReasonCode(each.meaning) for each in Outcome},
        # What both commands tell has one meaning.
        "Moves": {**{each.code: ReasonCode(each.meaning) for each in FateChange}, **codes.moves()},
        "Deviations": codes.deviations(),
        "Grounds of compare": {each.value: ReasonCode(each.meaning) for each in Ground},
        "Causes": CAUSES,
        "Causes of groups": GROUP_CAUSES,
        "Findings": {**FINDINGS, **codes.findings()},
        "Changes": codes.changes(),
    }


def codes_page() -> str:
    """The text of docs/codes.md."""
    parts = [INTRODUCTION.format(version=SCHEMA_VERSION)]
    for title, table in tables().items():
        parts += [f"## {title}\n", "| code | meaning | parameters |\n| --- | --- | --- |"]
        for code, each in table.items():
            parameters = ", ".join(f"`{name}`" for name in each.parameters)
            parts.append(f"| `{code}` | {each.meaning} | {parameters} |")
        if title == "Causes":
            parts.append(
                "\nA plugin that gives no evidence has its name in kebab-case as its code, such as\n"
                "`node-unschedulable`, and an extender has `extender`; the parameter is `reason`."
            )
        parts.append("")
    return "\n".join(parts)


def codes_schema() -> dict[str, object]:
    """The JSON schema of a coded object, with one definition for each kind of code."""
    kinds = {_name(title): table for title, table in tables().items() if title not in _PLAIN}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Coded objects in the JSON of kschedfw",
        "version": SCHEMA_VERSION,
        "$defs": {
            **{_name(title): {"enum": list(tables()[title])} for title in _PLAIN},
            **{
                name: {"oneOf": [_coded(code, each) for code, each in table.items()]}
                for name, table in kinds.items()
            },
        },
    }


def _name(title: str) -> str:
    return title.lower().replace(" ", "-")


def _coded(code: str, each: ReasonCode) -> dict[str, object]:
    return {
        "type": "object",
        "description": each.meaning,
        "required": ["code", "parameters", "text"],
        "properties": {
            "code": {"const": code},
            "parameters": {
                "type": "object",
                "properties": {name: {} for name in each.parameters},
                "additionalProperties": False,
            },
            "text": {"type": "string"},
        },
    }


if __name__ == "__main__":
    PAGE.write_text(codes_page(), encoding="utf-8")
    SCHEMA.write_text(json.dumps(codes_schema(), indent=1) + "\n", encoding="utf-8")
