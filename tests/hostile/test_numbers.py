"""Numbers that no one means: huge, tiny, none at all, of thousands of digits. They are bad input, not bugs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kschedfw.cli.commands import COMMANDS
from kschedfw.testing.properties import examples
from tests.hostile.trial import command

IMPOSSIBLE = (
    *("nan", "-nan", "inf", "-inf", "Infinity", "1e400", "-1e400", "0x1p9999", "", " ", "-", "+", ".", "e9"),
    *(
        "9" * 5000,
        "-" + "9" * 5000,
        "1" + "0" * 400,
        "1e" + "9" * 400,
        "0." + "0" * 5000 + "1",
        "1" * 5000 + ".5",
    ),
    *("1_000", "1,000", "\uff10", "1e-400x", "--1"),
)
"""No option has such a value."""
EXTREME = (
    *("0", "-0", "-1", "1e-308", "1e308", "-1e308", "4.9e-324", "1e-9", "1e10", "0.1", "1e3"),
    *(
        "2147483647",
        "2147483648",
        "-2147483649",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
    ),
    *("18446744073709551616", "-9223372036854775809", "1" + "0" * 30),
)
numbers = st.sampled_from((*IMPOSSIBLE, *EXTREME)) | st.floats().map(repr) | st.integers().map(str)

COMPLETE: dict[str, tuple[str, ...]] = {
    "simulate": ("CLUSTER", "--no-progress"),
    "compare": ("CLUSTER", "--profile", "default", "--profile", "ClusterAutoscalerProvider", "--no-progress"),
    "explain": ("CLUSTER", "web"),
    "pending": ("CLUSTER", "--no-progress"),
    "fit": ("CLUSTER", "--no-progress"),
    "drain": ("CLUSTER", "one", "--no-progress"),
    "scale-down": ("CLUSTER", "--no-progress"),
    "scale-up": ("CLUSTER", "--no-progress"),
}
"""Commands whose work on a small cluster is short whatever numbers they are given. The others get impossible ones."""

CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: one}, status: {capacity: {cpu: 4, memory: 4Gi, pods: 9}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
"""


NUMBERS = (click.types.IntParamType, click.types.FloatParamType)
# A function reads a duration, a size or a time.
READ = click.types.FuncParamType


def options() -> Iterator[tuple[str, str]]:
    """Each option of each command that takes a number, a duration, a time or a limit."""
    for name in COMMANDS.names():
        for parameter in COMMANDS.load(name).load().params:
            if isinstance(parameter.type, (*NUMBERS, READ)) or parameter.name == "limit":
                yield name, parameter.opts[0]


OPTIONS = sorted(options())


def test_the_options_with_numbers_are_found() -> None:
    assert {("simulate", "--arrival-rate"), ("simulate", "--attempt-time"), ("simulate", "--limit")} <= set(
        OPTIONS
    )
    assert len({name for name, _ in OPTIONS}) >= 8


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("numbers") / "cluster.yaml"
    file.write_text(CLUSTER)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), OPTIONS)
@given(data=st.data())
@settings(
    max_examples=examples(5),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_an_option_takes_any_number_or_refuses_it(
    name: str, option: str, cluster: Path, data: st.DataObject
) -> None:
    give(name, option, data.draw(numbers if name in COMPLETE else st.sampled_from(IMPOSSIBLE)), cluster)


# `explain --top` ended with a ValueError: iterators can't be cut there.
@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), [each for each in OPTIONS if each[0] in COMPLETE])
def test_an_option_takes_a_number_of_more_than_64_bits_or_refuses_it(
    name: str, option: str, cluster: Path
) -> None:
    give(name, option, "9223372036854775808", cluster)


def give(name: str, option: str, value: str, cluster: Path) -> None:
    """Run the command with the value of the option; fail if that ends as a bug."""
    others = COMPLETE.get(name, ("missing.yaml",))
    arguments = [argument.replace("CLUSTER", str(cluster)) for argument in others]
    command([name, *arguments, f"{option}={'pods=' if option == '--limit' else ''}{value}"])


FIELDS = {
    "arrival": ("simulate", "--arrivals"),
    "resources": ("simulate",),
    "controller": ("simulate",),
    "quota": ("simulate",),
    "limits": ("simulate",),
    "priority": ("simulate",),
    "selector": ("simulate",),
}


def manifest(field: str, number: object) -> list[dict[str, Any]]:
    """A cluster with the number in the fields that `field` stands for."""
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one"},
        "status": {"capacity": {"cpu": "4", "memory": "4Gi", "pods": "9"}},
    }
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    more: list[dict[str, Any]] = []
    match field:
        case "arrival":
            names = ("kschedfw/duration-seconds", "openb.trace/creation-time", "openb.trace/deletion-time")
            pod["metadata"]["annotations"] = dict.fromkeys(names, str(number))
        case "resources":
            node["status"]["capacity"] = dict.fromkeys(("cpu", "memory", "pods", "nvidia.com/gpu"), number)
            spec["containers"][0]["resources"] = {"requests": {"cpu": number}, "limits": {"memory": number}}
        case "controller":
            template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
            more = [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {"name": "j"},
                    "spec": {"parallelism": number, "completions": number, "template": template},
                }
            ]
        case "quota":
            hard = dict.fromkeys(("pods", "requests.cpu", "limits.memory"), number)
            more = [
                {
                    "apiVersion": "v1",
                    "kind": "ResourceQuota",
                    "metadata": {"name": "q"},
                    "spec": {"hard": hard},
                }
            ]
        case "limits":
            bounds = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
            item = {"type": "Container", **{name: {"cpu": number} for name in bounds}}
            more = [
                {
                    "apiVersion": "v1",
                    "kind": "LimitRange",
                    "metadata": {"name": "l"},
                    "spec": {"limits": [item]},
                }
            ]
        case "priority":
            spec |= {"priority": number, "activeDeadlineSeconds": number}
            spec["tolerations"] = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": number}]
        case "selector":
            devices = {
                "requests": [
                    {
                        "name": "r",
                        "exactly": {
                            "deviceClassName": "d",
                            "count": 1,
                            "selectors": [{"cel": {"expression": f"1 < {number}"}}],
                        },
                    }
                ]
            }
            more = [
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim",
                    "metadata": {"name": "c"},
                    "spec": {"devices": devices},
                }
            ]
    return [node, *more, pod]


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
@given(number=numbers, as_text=st.booleans())
@settings(
    max_examples=examples(10),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_a_manifest_has_any_number_or_is_refused(
    field: str, number: str, as_text: bool, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.json"
    mark = "THE-NUMBER"
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest(field, mark)})
    file.write_text(text.replace(mark, number) if as_text else text.replace(f'"{mark}"', number or "0"))
    command([FIELDS[field][0], str(file), "--no-progress", "--limit", "pods=50", *FIELDS[field][1:]])


FACTORS = (
    *("attemptTime: {}", "arrivalRate: {}", "meanDuration: {}", "seed: {}", "pods: {}", "nodes: {}"),
    "seed: {{from: 0, to: {}}}",
    "arrivalRate: {{from: 1, to: {}, points: 3}}",
    "arrivalRate: {{from: {}, to: 9, step: 1}}",
    "arrivalRate: {{from: 1, to: 9, step: {}}}",
    "arrivalRate: {{from: {}, to: 1.0e+9, points: 3, scale: log}}",
    "seed: {{from: 0, to: 9, points: {}}}",
    "plugins.NodeResourcesFit: {}",
)


@pytest.mark.slow
@pytest.mark.parametrize("factor", FACTORS)
@given(number=st.sampled_from((*IMPOSSIBLE, *EXTREME, ".inf", ".nan", "1.0e+400", "1.0e+308", "-1.7e+308")))
@settings(
    max_examples=examples(10),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_a_sweep_has_any_number_or_is_refused(
    factor: str, number: str, cluster: Path, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(f"factors:\n  cluster: {cluster}\n  {factor.format(number)}\n")
    command(["sweep", str(file), "--dry-run", "--no-progress", "--workers", "1"])


@pytest.mark.parametrize(
    "server",
    [
        *(
            "https://a:99999",
            "https://a:-1",
            "https://a:0",
            "https://a:" + "9" * 5000,
            "http://[::1",
            "https://",
        ),
        *("https://a:1e9", "https://a:nan", "http://]", "https://[::1]:x"),
    ],
    ids=lambda server: str(server)[:20],
)
@pytest.mark.parametrize("field", ["server", "proxy-url"])
def test_an_address_that_is_none_is_told(
    field: str, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = {"server": "https://127.0.0.1:1", field: server}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "x",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(content))
    assert command(["simulate", "--kubeconfig", str(file)]) == 2


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/random"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "FILE"),
        ("simulate", "CLUSTER", "--config", "FILE"),
        ("simulate", "--format", "openb", "FILE", "--pods", "FILE"),
        ("explain", "--from", "FILE", "web"),
        ("config", "check", "FILE"),
        ("sweep", "FILE"),
        ("tune", "FILE"),
        ("report", "FILE"),
        ("dump", "-", "--kubeconfig", "FILE"),
    ],
    ids=" ".join,
)
def test_a_device_is_no_file(path: str, arguments: tuple[str, ...], cluster: Path) -> None:
    given = [each.replace("FILE", path).replace("CLUSTER", str(cluster)) for each in arguments]
    assert command(given) in (1, 2)


def test_a_device_is_no_cluster_of_a_sweep(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("factors: {cluster: /dev/zero}\n")
    assert command(["sweep", str(file), "--dry-run"]) == 2
