"""Hostile input: clusters and configurations with a few things changed that nobody would write by accident.

What is changed knows the structure: types are swapped, numbers become huge, texts hold half a character or a terminal's
commands, lists and objects are nested or repeated, keys are given twice. The same random numbers give the same input.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any, Final

import yaml

Value = Any
Place = tuple[Any, Any]
"""A container, and the key or index in it."""


def nested(depth: int) -> Value:
    value: Value = []
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


_LOOKED_AT: Final = 40
"""How deep changes go; what is nested beyond was nested by one."""

_PLACES: Final = 100_000
"""How many places are thought of, in a value that has become large."""

_LONGEST: Final = 2_000_000
"""Characters of what was repeated, and of a whole text: it is about strange input here, not about long one."""

_SCALARS: Final[tuple[Value, ...]] = (
    None,
    True,
    "",
    "x",
    0,
    -1,
    0.1,
    1e300,
    (1 << 31) - 1,
    1 << 31,
    (1 << 63) - 1,
    -(1 << 63),
    1 << 64,
    10**400,
    float("inf"),
    float("nan"),
    "\ud800",
    "a\udfffb",
    "\x1b[31mred\x1b[0m\nnext: line\r",
    "\u202e\u0000",
    "é" * 1000,
    "a" * 100_000,
    "{" * 3000,
    "9" * 400 + "s",
    "9" * 100_000,
    "1" * 50 + "Ei",
    "1e1000000000",
    "-1e-999999999",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "1-2147483647",
    "100%",
    "a/b/c",
    "aws://[",
    "a." * 20_000,
    "*",
    "{{ .Values.x }}",
)
_TAGGED: Final = (
    "!!float ''",
    "!!bool maybe",
    "!!timestamp hello",
    "!!int x",
    "!!binary $",
    "!!set {a: 1}",
    "!!python/object:os.system {}",
    "0x" + "f" * 5000,
    "&a [*a]",
    "*missing",
    "&b [&c [x, x, x, x, x, x, x, x, x], *c, *c, *c, *c, *c, *c, *c]",
    "{<<: 1}",
    "{? [a]: b}",
    "|\n  text",
    "2001-01-01",
    ".5e",
)


def mutated(base: Value, random: Random) -> Value:
    """A copy of JSON data with one to four things changed."""
    value = copy.deepcopy(base)
    for _ in range(random.randint(1, 4)):
        places = list(islice(_places(value), _PLACES))
        if not places:
            break
        with suppress(RecursionError):  # what is nested very deeply stays as it is
            random.choice(_CHANGES)(random.choice(places), places, random)
    return value


def text_of(value: Value, random: Random) -> str:
    """The data as JSON or YAML; sometimes a little of the text is changed, too."""
    text = json_of(value)
    if len(text) < 50_000 and random.random() < 0.1:
        text = json.dumps(value, indent=2)
    if random.random() < 0.5:
        with suppress(yaml.YAMLError, UnicodeError, RecursionError):  # JSON then
            text = yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
    while random.random() < 0.3:
        text = random.choice(_TEXT_CHANGES)(text, random)
    return text[:_LONGEST]


def json_of(value: Value) -> str:
    """The data as JSON; of data that can't be written, or are very large, only the beginning of something similar."""
    if _size(value) > 2 * _LONGEST:  # what was repeated was there many times
        return "[" * _LONGEST
    try:
        return json.dumps(value)
    except RecursionError:  # nested in what is nested
        return '{"a": [' * 1000


def _places(value: Value, depth: int = 0) -> Iterator[Place]:
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)) and depth < _LOOKED_AT:
            yield from _places(value[key], depth + 1)


# --- Changes of the data ---


def _replace(place: Place, places: list[Place], random: Random) -> None:
    container, key = place
    container[key] = random.choice(_SCALARS)


def _nest(place: Place, places: list[Place], random: Random) -> None:
    container, key = place
    container[key] = random.choice(
        (nested(random.choice((5, 99, 101, 480, 900))), [container[key]], {"a": 1})
    )


def _swap(place: Place, places: list[Place], random: Random) -> None:
    container, key = place
    other, other_key = random.choice(places)
    container[key] = copy.deepcopy(other.get(other_key) if isinstance(other, dict) else None)


def _remove(place: Place, places: list[Place], random: Random) -> None:
    container, key = place
    if isinstance(container, dict):
        container.pop(key, None)


def _repeat(place: Place, places: list[Place], random: Random) -> None:
    container, key = place
    times = random.choice((2, 50, 2000))
    is_there = key in container if isinstance(container, dict) else key < len(container)
    if not is_there:
        return
    times = min(times, max(1, _LONGEST // _size(container[key])))
    if isinstance(container, list):
        container += [container[key]] * times
    elif isinstance(container[key], str):
        container[key] = container[key] * times
    else:
        container.update({f"{key}{number}": container[key] for number in range(min(times, 200))})


def _size(value: Value) -> int:
    """About how many characters there are, in a value that may be nested deeply; not counted to the end of many."""
    found, todo = 0, [value]
    while todo and found <= 2 * _LONGEST:
        each = todo.pop()
        found += len(each) + 2 if isinstance(each, str) else 6
        if isinstance(each, (dict, list)):
            todo += each.values() if isinstance(each, dict) else each
    return found


def _rename(place: Place, places: list[Place], random: Random) -> None:
    container, key = place
    if isinstance(container, dict) and key in container:
        new = random.choice(("\ud800", "x" * 10_000, "kind", "\x1b[2J", key.upper(), "", "<<", "items"))
        container[new] = container.pop(key)


_CHANGES: Final[tuple[Callable[[Place, list[Place], Random], None], ...]] = (
    _replace,
    _replace,
    _replace,
    _nest,
    _swap,
    _remove,
    _repeat,
    _rename,
)

# --- Changes of the text ---


def _cut(text: str, random: Random) -> str:
    return text[: random.randint(0, len(text))]


def _twice(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    start = random.randrange(len(lines) + 1)
    end = min(len(lines), start + random.randint(1, 3))
    return "".join((*lines[:end], *lines[start:end], *lines[end:]))


def _insert(text: str, random: Random) -> str:
    at = random.randint(0, len(text))
    added = random.choice(
        (
            "{" * 10_000,
            "[" * 10_000,
            "- " * 5000,
            "\n" * 10_000,
            "\x00",
            "\ufeff",
            "\n---\n",
            "\n...\n",
            "{{",
            "\t",
            '"',
            "\\",
        )
    )
    return text[:at] + added + text[at:]


def _tag(text: str, random: Random) -> str:
    at = text.find(": ", random.randint(0, len(text)))
    end = text.find("\n", at)
    return text if at < 0 or end < 0 else f"{text[: at + 2]}{random.choice(_TAGGED)}{text[end:]}"


_TEXT_CHANGES: Final[tuple[Callable[[str, Random], str], ...]] = (_cut, _twice, _insert, _tag, _tag)

# --- What is changed ---

_TEMPLATE: Final = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]},
}
_SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
    "matchLabelKeys": ["version"],
}
_TERM: Final = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
CLUSTER: Final[Value] = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "one", "labels": {"zone": "a", "kubernetes.io/hostname": "one"}},
            "spec": {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": 2},
                "images": [{"names": ["app:1"], "sizeBytes": 1000000}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "labels": {"app": "web", "version": "1"},
                "annotations": {"kschedfw/duration-seconds": "60"},
                "creationTimestamp": "2024-01-01T00:00:00Z",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}],
            },
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "app:1",
                        "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}},
                        "ports": [{"containerPort": 80, "hostPort": 80}],
                    }
                ],
                "nodeSelector": {"zone": "a"},
                "tolerations": [
                    {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
                ],
                "topologySpreadConstraints": [_SPREAD],
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["1"]}]}
                            ]
                        }
                    },
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 10, "podAffinityTerm": _TERM}
                        ]
                    },
                },
                "priority": 5,
                "overhead": {"cpu": "10m"},
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "ebs", "awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}},
                ],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "deployed"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": _TEMPLATE},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"generateName": "job-"},
            "spec": {"parallelism": 2, "completions": 3, "completionMode": "Indexed", "template": _TEMPLATE},
            "status": {"completedIndexes": "0,2"},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {
                "replicas": 2,
                "ordinals": {"start": 1},
                "selector": {"matchLabels": {"app": "web"}},
                "template": _TEMPLATE,
            },
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        },
        {
            "apiVersion": "example.com/v1",
            "kind": "Gang",
            "metadata": {"name": "gang"},
            "spec": {"minMember": 2, "racks": ["a", {"b": 1}]},
        },
    ],
}
CONFIGURATION: Final[Value] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 4,
    "podInitialBackoffSeconds": 2,
    "leaderElection": {"leaderElect": False, "leaseDuration": "15s"},
    "clientConnection": {"qps": 5.5},
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "percentageOfNodesToScore": 50,
            "plugins": {
                "multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 3}]},
                "score": {"disabled": [{"name": "ImageLocality"}]},
            },
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "ignoredResources": ["example.com/gpu"],
                        "scoringStrategy": {
                            "type": "RequestedToCapacityRatio",
                            "resources": [{"name": "cpu", "weight": 1}],
                            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}]},
                        },
                    },
                },
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                        ],
                    },
                },
                {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 600}},
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 10}},
            ],
        }
    ],
    "extenders": [
        {
            "urlPrefix": "http://localhost:1/",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            "httpTimeout": "1s",
            "nodeCacheCapable": True,
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        }
    ],
}
POLICY: Final[Value] = {
    "apiVersion": "v1",
    "kind": "Policy",
    "predicates": [
        {"name": "PodFitsResources"},
        {"name": "Zone", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
    ],
    "priorities": [
        {"name": "LeastRequestedPriority", "weight": 2},
        {
            "name": "Ratio",
            "weight": 1,
            "argument": {
                "requestedToCapacityRatioArguments": {
                    "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
                    "resources": [{"name": "cpu", "weight": 1}],
                }
            },
        },
    ],
    "hardPodAffinitySymmetricWeight": 5,
    "extenders": [{"urlPrefix": "http://localhost:1/", "filterVerb": "filter", "enableHttps": False}],
}


SUITE: Final[Value] = {
    "seed": 1,
    "nodes": [
        {
            "metadata": {"name": "one", "labels": {"zone": "a"}},
            "status": {"allocatable": {"cpu": "4", "pods": "9"}},
        }
    ],
    "cases": [
        {
            "name": "fits",
            "pods": [
                {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
            ],
            "objects": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}],
            "expected": {
                "pods": {"web": {"oneOf": ["one", "two"]}},
                "evicted": [],
                "spread": [{"topologyKey": "zone", "pods": "!gpu", "maxSkew": 1}],
                "placedShare": 0.5,
                "noOvercommit": True,
                "moved": {"pods": []},
            },
        }
    ],
}
"""Cases for `kschedfw test`."""


def cluster(random: Random) -> str:
    """A text that a cluster was changed to."""
    return text_of(mutated(CLUSTER, random), random)


def configuration(random: Random) -> str:
    """A text that a configuration was changed to."""
    return text_of(mutated(random.choice((CONFIGURATION, POLICY)), random), random)


def suite(random: Random) -> str:
    """A text that a suite of cases was changed to."""
    return text_of(mutated(SUITE, random), random)
