"""Claims for devices that are hard to decide on.

`python -m tests.hostile.devices COUNT [FIRST_SEED]` times the commands. Each seed stands for a cluster of a few nodes
with up to 40 devices each, and pods whose claims a search of all choices, or selectors, would take for ever. The exit
code is 1 where a command takes longer than `LONGEST`.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.hostile.trial import command, say

Json = dict[str, Any]

LONGEST: Final = 10.0
"""Seconds of processor time that a command may take."""
COMMANDS: Final = (
    ("simulate", "FILE", "--no-progress"),
    ("explain", "FILE", "default/p0"),
    ("pending", "FILE"),
)
DRIVER: Final = "gpu.example.com"
_OWN: Final = f'device.attributes["{DRIVER}"]'


def cluster(random: Random) -> str:
    """The manifests of a seed, as a List in JSON."""
    items = [
        *_nodes(random),
        *_pods(random),
        _made("DeviceClass", "gpu", {"selectors": _selectors(random, 0.1)}),
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _made(kind: str, name: str, spec: Json) -> Json:
    version = "v1" if kind in ("Pod", "Node") else "resource.k8s.io/v1"
    metadata: Json = {"name": name}
    if kind in ("Pod", "ResourceClaim"):
        metadata["namespace"] = "default"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _nodes(random: Random) -> Iterator[Json]:
    for number in range(random.choice((1, 1, 2, 5))):
        name = f"n{number}"
        allocatable = {"cpu": "8", "memory": "16Gi", "pods": "50"}
        yield {**_made("Node", name, {}), "status": {"allocatable": allocatable}}
        has_counters = random.random() < 0.3
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1 + has_counters}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool}
        kind = random.choice(("alike", "different", "few values", "shared"))
        devices = [
            _device(random, index, kind, has_counters) for index in range(random.choice((15, 31, 32, 40)))
        ]
        yield _made("ResourceSlice", f"{name}-devices", {**spec, "devices": devices})
        if has_counters:
            sets = [{"name": "card", "counters": {"slots": {"value": str(random.randint(4, 40))}}}]
            yield _made("ResourceSlice", f"{name}-counters", {**spec, "sharedCounters": sets})


def _device(random: Random, index: int, kind: str, has_counters: bool) -> Json:
    found: Json = {"name": f"d{index}"}
    if kind != "alike":
        values = {"index": {"int": index}, "text": {"string": "a" * 60 + str(index)}}
        values |= {name: {"int": random.randrange(3 if kind == "few values" else 50)} for name in "abcd"}
        found["attributes"] = values
    if kind == "shared":
        found |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10"}}}
    if has_counters and random.random() < 0.8:
        slots = {"slots": {"value": str(random.randint(1, 3))}}
        found["consumesCounters"] = [{"counterSet": "card", "counters": slots}]
    if random.random() < 0.05:
        found["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    return found


def _pods(random: Random) -> Iterator[Json]:
    for number in range(random.choice((1, 1, 3))):
        names = [f"c{number}-{each}" for each in range(random.choice((1, 1, 2, 4)))]
        for name in names:
            yield _made("ResourceClaim", name, {"devices": _claim(random)})
        references = [{"name": each, "resourceClaimName": each} for each in names]
        containers = [{"name": "c", "image": "x"}]
        yield _made("Pod", f"p{number}", {"containers": containers, "resourceClaims": references})


def _claim(random: Random) -> Json:
    count = random.choice((1, 4, 12, 32))
    requests: list[Json] = []
    for number in range(count):
        if random.random() < 0.8:
            requests.append({"name": f"r{number}", "exactly": _asked(random, count)})
        else:
            alternatives = [
                {"name": f"s{each}", **_asked(random, count)} for each in range(random.randint(1, 8))
            ]
            requests.append({"name": f"r{number}", "firstAvailable": alternatives})
    constraints = [
        {random.choice(("matchAttribute", "distinctAttribute")): f"{DRIVER}/{random.choice('abcd')}"}
        for _ in range(random.choice((0, 0, 1, 2)))
    ]
    return {"requests": requests, "constraints": constraints}


def _asked(random: Random, count: int) -> Json:
    found: Json = {"deviceClassName": "gpu", "selectors": _selectors(random, 0.05)}
    if random.random() < 0.03:
        found["allocationMode"] = "All"
    else:
        found["count"] = random.randint(1, max(1, 32 // count))
    if random.random() < 0.2:
        found["capacity"] = {"requests": {"memory": str(random.randint(1, 6))}}
    return found


def _selectors(random: Random, hostile: float) -> list[Json]:
    chosen: Sequence[str] = ()
    if random.random() < hostile:
        chosen = HARD
    elif random.random() < 0.3:
        chosen = EASY
    return [{"cel": {"expression": random.choice(chosen)}}] if chosen else []


def _bound(times: int, made: str, last: str) -> str:
    """`last` of x0, x1, …, each of which is made of the one before."""
    expression = last
    for number in reversed(range(times)):
        expression = f"cel.bind(x{number + 1}, {made.format(f'x{number}')}, {expression})"
    return f"cel.bind(x0, [1, 2, 3, 4], {expression})"


EASY: Final = (
    f'"index" in {_OWN} && {_OWN}.index >= 3',
    f'"{DRIVER}" in device.attributes',
    f"{_OWN}.?index.orValue(0) % 2 == 0",
    f"{_OWN}.?text.orValue('').matches('^a+[0-9]$')",
)
HARD: Final = (
    f"'{'a' * 4000}'.matches('{'(a?)' * 1000}')",
    f"'{'a' * 4000}'.matches('(a?){{1000}}b')",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, '" + "a" * 1000 + "'.findAll('a+b|(a?){900}').size() >= x)",
    "lists.range(300).all(i, lists.range(300).all(j, i + j >= 0))",
    _bound(17, "{0} + {0}", "lists.range(100).all(i, (x17 + x17).size() > i)"),
    _bound(12, "{0} + {0}", "x12.sort().distinct().size() == 4"),
    _bound(12, "{0} + {0}", "[x12, x12, x12] == [x12, x12, x12] && x12.all(x, [x12, x12] == [x12, x12])"),
    "cel.bind(s, lists.range(9000).map(i, 'aaaaaaaaaa').join(), lists.range(50).all(i, (s + s) != s))",
    _bound(40, "[{0}, {0}]", "x40 == x40"),
    _bound(40, "[{0}, {0}]", "'%s'.format([x40]) == ''"),
    f"{_OWN}.?text.orValue('').matches('((a{{0,30}}){{30}}b)')",
)


def measured(seed: int, directory: Path) -> Iterator[tuple[str, float]]:
    """Each command, with the processor time that it takes; the exit code is that of a decision or of one error."""
    file = directory / "devices.json"
    file.write_text(cluster(Random(seed)))
    for arguments in COMMANDS:
        began = time.process_time()
        command([each.replace("FILE", str(file)) for each in arguments])
        yield arguments[0], time.process_time() - began


def main(arguments: Sequence[str]) -> int:
    count = int(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else 0
    longest: dict[str, tuple[float, int]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(first, first + count):
            for name, seconds in measured(seed, Path(directory)):
                longest[name] = max(longest.get(name, (0.0, seed)), (seconds, seed))
                if seconds > LONGEST / 2:
                    say(f"seed {seed}: {name} took {seconds:.1f} s")
    for name, (seconds, seed) in longest.items():
        say(f"{name}: {seconds:.2f} s at most, for seed {seed}")
    say(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB at most")
    return int(any(seconds > LONGEST for seconds, _ in longest.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
