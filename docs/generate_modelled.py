"""Writes docs/modelled.md from the tables of gates, plugins, kinds and fields: `python docs/generate_modelled.py`.

Only the controllers and the faults are written down here: which ones matter can't be read off any table.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import attrs

from kschedfw.api.convert import json_name
from kschedfw.api.kinds import KINDS
from kschedfw.api.known_fields import FILE
from kschedfw.framework.gate_table import FEATURE_GATES, FeatureGate
from kschedfw.framework.plugin import PROJECT
from kschedfw.framework.runtime.registry import FALLBACK

OUTPUT = Path(__file__).parent / "modelled.md"


class Mark(StrEnum):
    """The extent to which something is modelled."""

    ALL = "✓"
    PARTIAL = "partial"
    NONE = "no"


PARTIAL_GATES: Final = frozenset({"SchedulerAsyncPreemption"})
"""Gates that can't be on, and much of whose effect is here all the same; their effect in the table says how."""

CONTROLLERS: Final = (
    # The controller, how much of it is here, and where.
    (
        "persistentvolume-binder, external provisioners",
        Mark.ALL,
        "`VolumeController`: binds claims, provisions volumes on the node that the scheduler has selected",
    ),
    (
        "resourceclaim",
        Mark.ALL,
        "`ClaimController`: makes claims from templates, frees and deletes those of pods that are gone",
    ),
    (
        "deployment, replicaset, replicationcontroller, statefulset, daemonset, job",
        Mark.PARTIAL,
        "[reading manifests](manifests.md#workloads) makes the pods and claims that they would; nothing replaces them",
    ),
    ("cronjob", Mark.NONE, "a Job of one that has started is read like any other"),
    (
        "disruption",
        Mark.NONE,
        "`status.disruptionsAllowed` of a budget is what the input says; evictions by `drain` lower it",
    ),
    (
        "cluster autoscalers",
        Mark.PARTIAL,
        "[`scale-up`](scaling.md) and [`drain`](capacity.md#drain) say what one could do; none runs in simulations",
    ),
    ("horizontal-pod-autoscaler", Mark.NONE, ""),
    ("node-lifecycle", Mark.NONE, "taints and conditions of nodes are what the input says"),
    (
        "taint-eviction, device-taint-eviction",
        Mark.NONE,
        "a new NoExecute taint keeps pods away, and evicts none",
    ),
    (
        "persistentvolume-attach-detach",
        Mark.NONE,
        "a VolumeAttachment counts for the limits of its node, and comes from the input",
    ),
    ("garbage-collector, pod-garbage-collector, ttl-after-finished", Mark.NONE, ""),
    ("those that make PodGroups from workloads", Mark.NONE, "PodGroups come from the input"),
    ("kubelet", Mark.NONE, "a bound pod runs at once, and for the time that a simulation gives it"),
)

FAULTS: Final = (
    # A fault of kube-scheduler that is followed here, the versions that have it, and where it is discussed.
    (
        "an affinity term of the pod that is scheduled selects every namespace by `NotIn` and `DoesNotExist` alone",
        "v1.34 to v1.36, and not fixed yet",
        "[kubernetes#141526](https://github.com/kubernetes/kubernetes/issues/141526)",
    ),
)

PAGE = """\
# What is modelled

For everyone who asks what is covered: after this page you know of every gate, plugin and field of kube-scheduler v1.36
how much of it is here: ✓ all, *partial*, or *no*.

<!-- Written by docs/generate_modelled.py from the tables in the source. Change those. -->

How decisions are checked is in [Conformance](conformance.md).

## Feature gates

A gate is ✓ where what it does is here; its value in v1.36 holds unless you set it. *No*: kschedfw decides as if it
were off. [Feature gates](feature-gates.md) has their effects, and their stages by version.

{gates}

## In-tree plugins

All of v1.36 are ✓, [with their arguments](plugins.md): {plugins}.

[Removed plugins](removed-plugins.md) are those of older versions.

## Fields of objects

The fields are those of Kubernetes v1.15 to v1.37, without `metadata`, which all kinds share. Of *partial* fields a part
is read: see the row of its type. Fields under *no* are known, so they aren't taken for misspelt, but change nothing.

{fields}

All fields are read of these types: {whole}.

## Admission

What the API server does to new pods before the scheduler sees them is in [Manifests](manifests.md#admission):
LimitRanger, Priority, DefaultTolerationSeconds, RuntimeClass and ResourceQuota are ✓; webhooks, and plugins that
aren't enabled by default, are *no*.

## Faults that are followed

What v1.36 does though it isn't meant to. Pods are decided on as kube-scheduler decides on them, so these are here, too,
with every `--kube-version`:

{faults}

## Controllers

With a real cluster, Kubernetes' own controllers are at work. In a cluster in memory and in simulations, of those that
write what scheduling reads:

{controllers}
"""


def modelled_page() -> str:
    """The text of docs/modelled.md."""
    rows = list(field_rows())
    return PAGE.format(
        gates=table(("", "gates"), gate_rows()),
        plugins=", ".join(in_tree_plugins()),
        fields=table(("type", "✓", "partial", "no"), (row for row in rows if any(row[2:]))),
        whole=", ".join(sorted(row[0] for row in rows if not any(row[2:]))),
        faults=table(("fault", "versions", "report"), FAULTS),
        controllers=table(("controller", "", "how"), CONTROLLERS),
    )


def table(header: tuple[str, ...], rows: Any) -> str:
    """The rows as Markdown."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def gate_rows() -> Iterator[tuple[Mark, str]]:
    """Each mark with the names of its gates."""
    marks = {name: gate_mark(name, gate) for name, gate in sorted(FEATURE_GATES.items())}
    for mark in Mark:
        yield mark, ", ".join(name for name, its in marks.items() if its is mark)


def gate_mark(name: str, gate: FeatureGate) -> Mark:
    """Return the extent to which a gate's effect is modelled."""
    if gate.only is not False:
        return Mark.ALL
    return Mark.PARTIAL if name in PARTIAL_GATES else Mark.NONE


def in_tree_plugins() -> list[str]:
    """The names of the plugins that kschedfw itself offers or stands in for, sorted."""
    offered = distribution("kschedfw").entry_points
    return sorted(each.name for group in (PROJECT, FALLBACK) for each in offered.select(group=group))


Known = Mapping[str, Mapping[str, str]]
"""The fields of each of Kubernetes' types, with the type of each that has fields itself."""


def known_types() -> Known:
    """The types of kschedfw/api/known_fields.txt."""
    found = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, *fields = line.split()
            found[name] = {field.partition(":")[0]: field.partition(":")[2] for field in fields}
    return found


def field_rows() -> Iterator[tuple[str, str, str, str]]:
    """Each type that is read, with its fields by mark."""
    known = known_types()
    for name, cls in read_types(known).items():
        marks = field_marks(name, cls, known)
        whole, partly, none = (
            ", ".join(field for field, mark in marks.items() if mark is each) for each in Mark
        )
        yield f"`{name}`", whole, partly, none


def read_types(known: Known) -> dict[str, type]:
    """Kubernetes' types that kschedfw has classes for, each after the one that it is a part of."""
    found: dict[str, type] = {}

    def add(name: str, cls: type) -> None:
        if name in found:
            return
        found[name] = cls
        for field, part in parts(cls).items():
            if part is not None and known[name].get(field):
                add(known[name][field], part)

    for kind in sorted(KINDS):
        add(kind, KINDS[kind].cls)
    del found["ObjectMeta"]
    return found


def field_marks(name: str, cls: type, known: Known) -> dict[str, Mark]:
    """The fields of a type and how much of each is read; without those that all kinds share."""
    read = parts(cls)
    marks = {}
    for field, type_ in sorted(known[name].items()):
        if field in ("apiVersion", "kind", "metadata"):
            continue
        part = read.get(field)
        if field not in read:
            marks[field] = Mark.NONE
        elif part is None or not type_ or all(field in parts(part) for field in known[type_]):
            marks[field] = Mark.ALL
        else:
            marks[field] = Mark.PARTIAL
    return marks


def parts(cls: type) -> dict[str, type | None]:
    """The fields that a class reads, by their names in manifests; with the class of each that has fields itself."""
    hints = get_type_hints(cls, localns={"PodRequests": object})
    return {
        json_name(each): next(_classes_in(hints[each.name]), None)
        for each in attrs.fields(cls)
        if each.init and not each.name.startswith("_")
    }


def _classes_in(hint: object) -> Iterator[type]:
    """The classes with fields that a type hint names."""
    if inspect.isclass(hint) and attrs.has(hint) and hint.__module__.startswith("kschedfw.api"):
        yield hint
    for argument in get_args(hint):
        yield from _classes_in(argument)


if __name__ == "__main__":
    OUTPUT.write_text(modelled_page(), encoding="utf-8")
