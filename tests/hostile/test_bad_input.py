"""Input that once hung, took all memory, or was called a bug: one line says what is wrong, and the exit code is 2."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kschedfw import InMemoryCluster, make_pod
from kschedfw.api.limits import Limits
from kschedfw.api.manifests import Manifests, parse_manifests, read_manifests
from kschedfw.cli.app import run
from kschedfw.config import ConfigurationError, parse_configuration
from tests.hostile.mutations import nested
from tests.steps import assert_linear

NODE = "apiVersion: v1\nkind: Node\nmetadata:\n  name: one\n"
CONFIGURATION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def problems(loaded: Manifests) -> list[str]:
    return [str(problem) for problem in loaded.problems]


def refused(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(text)
    return str(caught.value)


def bomb(levels: int) -> str:
    """Aliases of lists of aliases: nine to the power of `levels`."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.slow
class TestTextsThatTookLong:
    @pytest.mark.parametrize(
        "text",
        [
            "{" * 100_000,
            "a: " + "{" * 100_000,
            '{"a": x' + "\n" * 300_000,
            '{"a": x\n' * 10_000,
            "{ x\n" * 50_000,
            "---\n" * 100_000,
            "a: '" + "\n" * 200_000,
            " " * 500_000 + "{",
            "[" * 200_000,
            "#{{" * 50_000,
            '{"a": "' + "\\" * 200_001,
        ],
        ids=lambda text: f"{text[:9]!r}… {len(text)}",
    )
    @pytest.mark.slow
    def test_are_refused_in_linear_time(self, text: str) -> None:
        assert_linear(lambda: parse_manifests(text[: len(text) // 2]), lambda: parse_manifests(text))

    def test_a_duration_of_many_digits(self) -> None:
        for digits in (400, 100_000):
            text = f"{CONFIGURATION}leaderElection:\n  leaseDuration: {'9' * digits}s\n"
            assert "leaderElection.leaseDuration: Invalid value: " in refused(text)
            refused(text.replace("s\n", "\n"))


class TestAliases:
    @pytest.mark.parametrize("text", [bomb(9), bomb(40)])
    def test_that_stand_for_too_much(self, text: str) -> None:
        (problem,) = problems(parse_manifests(f"{NODE}  annotations:\n    a: b\n{text}", "x"))
        assert re.fullmatch(
            r"x: document 1: is not valid YAML: line \d+: contains excessive aliasing: .*", problem
        )
        assert "excessive aliasing" in refused(CONFIGURATION + text)

    def test_that_are_merged(self) -> None:
        lines = ["a0: &a0 {k0: 1, l0: 1, m0: 1}"]
        lines += [
            f"a{n}: &a{n} {{k{n}: &b{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}, l{n}: *b{n}, m{n}: *b{n}}}"
            for n in range(1, 30)
        ]
        (problem,) = problems(parse_manifests("\n".join(lines)))
        assert "contains excessive aliasing" in problem

    def test_that_are_inside_of_what_they_stand_for(self) -> None:
        for text in ("metadata: &a [*a]\n", "metadata: &a {b: [*a]}\n"):
            (problem,) = problems(parse_manifests(f"apiVersion: v1\nkind: Pod\n{text}"))
            assert "line 3: the alias 'a' is inside of what it stands for" in problem
            assert "inside of what it stands for" in refused(CONFIGURATION + text)

    def test_a_reasonable_number_is_fine(self) -> None:
        pods = "".join(
            f"- {{apiVersion: v1, kind: Pod, metadata: {{name: p{n}, labels: *l}}, spec: *s}}\n"
            for n in range(3000)
        )
        labels = "l: &l {app: web, tier: front}\n"
        text = f"kind: List\n{labels}s: &s {{containers: [{{name: main, image: app}}]}}\nitems:\n{pods}"
        loaded = parse_manifests(text)
        assert (len(loaded.pods), loaded.problems) == (3000, ())


class TestLimits:
    def test_of_what_a_packed_file_unpacks_to(self, tmp_path: Path) -> None:
        path = tmp_path / "big.yaml.gz"
        path.write_bytes(gzip.compress(b"#\n" * 150_000 + NODE.encode()))
        (problem,) = problems(read_manifests(path, limits=Limits(unpacked=200_000)))
        assert problem == (
            f"{path}: unpacks to more than 200000 bytes: the limit `unpacked` is 200000; "
            "raise it with --limit unpacked=N, or in Python with Limits(unpacked=N)"
        )
        # What was read up to there counts as little as what wasn't.
        assert len(read_manifests(path).nodes) == 1

    def test_indexes_that_have_ended_are_counted_and_not_listed(self) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m"}]}}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "done"},
            "spec": {"completions": 2147483647, "completionMode": "Indexed", "template": template},
            "status": {"completedIndexes": "0-5,7-2147483646", "failedIndexes": "5-6"},
        }
        loaded = parse_manifests(f"{NODE}---\n{json.dumps(job)}", "x")
        assert (loaded.problems, dict(loaded.without_pods)) == (
            (),
            {"Job default/done": "nothing is left to do of it"},
        )

    @pytest.mark.parametrize(
        ("kind", "field"),
        [
            ("Deployment", "replicas"),
            ("ReplicaSet", "replicas"),
            ("StatefulSet", "replicas"),
            ("Job", "parallelism"),
            ("Job", "completions"),
        ],
    )
    def test_of_pods_that_workloads_stand_for(self, kind: str, field: str) -> None:
        workload: dict[str, Any] = {
            "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
            "kind": kind,
            "metadata": {"name": "many"},
            "spec": {
                field: 2147483647,
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m"}]}},
                "selector": {"matchLabels": {"a": "b"}},
            },
        }
        if field == "completions":
            workload["spec"]["completionMode"] = "Indexed"
            workload["status"] = {"completedIndexes": "0-2147483640"}
        loaded = parse_manifests(f"{NODE}---\n{json.dumps(workload)}", "x")
        (problem,) = problems(loaded)
        assert problem.startswith(f"x: document 2 ({kind} default/many): spec.{field}: stands for ")
        assert "raise it with --limit pods=N" in problem
        assert (len(loaded.nodes), len(loaded.pods)) == (1, 0)

    def test_of_pods_is_for_all_workloads_together_and_can_be_raised(self) -> None:
        job = """
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec: {parallelism: 3, template: {spec: {containers: [{name: m}], restartPolicy: Never}}}
---
"""
        text = "".join(job % name for name in ("a", "b", "c"))
        loaded = parse_manifests(text, limits=Limits(pods=7))
        assert [pod.name for pod in loaded.pods] == ["a-0", "a-1", "a-2", "b-0", "b-1", "b-2"]
        assert "3 more pods, but only 1 may still be made" in problems(loaded)[0]
        assert len(parse_manifests(text, limits=Limits(pods=9)).pods) == 9

    def test_of_a_document_and_an_object(self) -> None:
        text = f"{NODE}  annotations:\n    a: {'x' * 5000}\n    b: [c]\n"
        (problem,) = problems(parse_manifests(text, limits=Limits(object=2000)))
        assert "line 7: an object of more than 2000 characters: the limit `object`" in problem
        (problem,) = problems(parse_manifests(text, limits=Limits(document=2000)))
        assert "has a document of more than 2000 characters: the limit `document`" in problem
        (problem,) = problems(parse_manifests(json.dumps({"a": "x" * 5000}), limits=Limits(object=2000)))
        assert "an object of more than 2000 characters" in problem

    def test_of_a_configuration(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Whether it comes from a file or not: 15 MB of nested lists took 15 s, and more had no limit."""
        text = f"{CONFIGURATION}profiles: [{{schedulerName: {'x' * (4 << 20)}}}]\n"
        assert refused(text).endswith(
            "expected a configuration of at most 4,194,304 characters, found 4,194,410"
        )
        path = tmp_path / "c.yaml"
        path.write_text(text)
        assert run(["config", "show", str(path)]) == 2
        assert "expected a configuration of at most 4,194,304 bytes, found more" in capsys.readouterr().err

    def test_are_options(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "n.yaml.gz"
        path.write_bytes(gzip.compress(NODE.encode()))
        assert run(["simulate", str(path), "--limit", "unpacked=10"]) == 2
        assert "unpacks to more than 10 bytes" in capsys.readouterr().err
        for wrong in ("unpacked", "unpacked=x", "unpacked=0", "unpacked=-1", "size=1", "pods=" + "9" * 400):
            assert run(["simulate", str(path), "--limit", wrong]) == 2
            assert f"--limit {wrong[:100]}" in capsys.readouterr().err
        assert run(["simulate", str(path), "--limit", "unpacked=1Ki", "--limit", "pods=5"]) == 1  # no pods

    @pytest.mark.slow
    def test_hold_for_memory(self, tmp_path: Path) -> None:
        """A packed GiB of nothing: 2 GB were taken once."""
        path = tmp_path / "bomb.yaml.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            for _ in range(150):
                file.write(b" \n" * (1 << 19))
        code = (
            "from kschedfw import read_manifests; from kschedfw.api.limits import Limits;"
            "from kschedfw_lab.bench.memory import peak_resident_bytes;"
            f"loaded = read_manifests({str(path)!r}, limits=Limits(unpacked=100 << 20));"
            "print(len(loaded.problems), peak_resident_bytes())"
        )
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        found, memory = map(int, done.stdout.split())
        assert found == 1
        assert memory < 200 << 20


class TestWhatWasCalledABug:
    @pytest.mark.parametrize(
        "value",
        [
            '"\ud800"'.encode("ascii", "backslashreplace").decode(),
            "&a [*a]",
            "!!float ''",
            "!!bool maybe",
            "!!timestamp hello",
            "1" * 5000,
            "0x" + "1" * 5000,
            "-0b" + "1" * 20_000,
            json.dumps(nested(480)),
            json.dumps(nested(900)),
            "!!python/object:os.system {}",
            "{? [a]: b}",
        ],
        ids=lambda value: f"{value[:20]} {len(value)}",
    )
    def test_is_bad_input(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str) -> None:
        custom = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\n"
        for text in (f"{NODE}value: {value}\n", f"{custom}spec: {value}\n", f"{NODE}  labels: {value}\n"):
            path = tmp_path / "input.yaml"
            path.write_text(text)
            assert run(["simulate", str(path)]) in (1, 2)
            error = capsys.readouterr().err
            assert error.isascii() or "…" in error
        path.write_text(f"{CONFIGURATION}parallelism: {value}\n")
        for command in ("check", "show"):
            assert run(["config", command, str(path)]) in (1, 2)
            capsys.readouterr()

    def test_half_a_character_in_json_is_read_as_kubernetes_reads_it(self) -> None:
        annotations = r'{"a": "x\ud800y \ud83d\ude00"}'
        text = f'{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "n", "annotations": {annotations}}}}}'
        assert parse_manifests(text).nodes[0].annotations == {"a": "x\ufffdy 😀"}

    def test_half_a_character_in_a_text_from_python(self) -> None:
        for text in ("a: \ud800", '{"a": "\ud800"}'):
            (problem,) = problems(parse_manifests(text))
            assert "is no text" in problem
            assert "is no text" in refused(text)

    def test_a_lease_of_400_digits(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "c.yaml"
        path.write_text(f"{CONFIGURATION}leaderElection: {{leaseDuration: {'9' * 400}s}}\n")
        assert run(["config", "check", str(path)]) == 1
        assert run(["config", "show", str(path)]) == 2
        assert "less than 293 years" in capsys.readouterr().out


class TestOutput:
    ESCAPE = "\x1b]0;owned\x07\x1b[2J\r\n\u202e"

    def test_has_nothing_that_a_terminal_obeys(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "x.json"
        objects = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": self.ESCAPE, "labels": {self.ESCAPE: "x"}},
            },
            {"apiVersion": "v1", "kind": self.ESCAPE, "metadata": {"name": "x"}},
            {"apiVersion": f"v1{self.ESCAPE}", "kind": "Pod"},
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {self.ESCAPE: 1, "containers": 1},
            },
        ]
        path.write_text("\n".join(map(json.dumps, objects)))
        assert run(["simulate", str(path)]) == 2
        error = capsys.readouterr().err
        assert all(line.isprintable() for line in error.splitlines()), ascii(error)
        assert r"\x1b]0;owned" in error

    def test_of_notes_neither(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A kind that nobody knows is counted in the report, on stdout."""
        path = tmp_path / "x.json"
        unknown = {"apiVersion": "v1", "kind": self.ESCAPE, "metadata": {"name": "x"}}
        custom = {"apiVersion": f"example.com/{self.ESCAPE}", "kind": "Thing", "metadata": {"name": "x"}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "m"}]},
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
        path.write_text("\n".join(map(json.dumps, (node, pod, unknown, custom))))
        run(["simulate", str(path), "--skip-invalid"])
        told = capsys.readouterr()
        for text in told:
            assert all(line.isprintable() for line in text.split("\n")), ascii(text)
        assert r"1 \x1b]0;owned" in " ".join(told.out.split())

    def test_of_events_neither(self) -> None:
        cluster = InMemoryCluster()
        pod = cluster.add(make_pod("p").build())
        cluster.record_event(pod, "Warning", "FailedScheduling", f'claim "{self.ESCAPE}" not found')
        (event,) = cluster.events
        assert event.message.isprintable()
        assert r"\x1b]0;owned" in event.message

    @pytest.mark.parametrize(
        "manifest",
        [
            {"metadata": {"name": "x" * 10_000_000}},
            {"metadata": {"name": "n", "labels": {f"-{n}": "" for n in range(20_000)}}},
            {"metadata": {"name": "n", "labels": {"-" * 1_000_000: "-" * 1_000_000}}},
        ],
        ids=["a long name", "many labels", "long labels"],
    )
    def test_ends(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], manifest: dict[str, Any]) -> None:
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", **manifest}))
        assert run(["simulate", str(path)]) == 2
        assert len(capsys.readouterr().err) < 100_000

    def test_counts_what_it_leaves_out(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "c.json"
        unknown = {f"key{n}": 1 for n in range(20_000)}
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    **unknown,
                }
            )
        )
        assert run(["config", "check", str(path)]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 51
        assert lines[-1] == "… and 19,950 more problems"

    def test_a_million_ways_to_say_the_same_is_one_line_each(self) -> None:
        text = "".join(f"a{n}: 1\n" * 2 for n in range(1000))
        (problem,) = problems(parse_manifests(text))
        assert problem.endswith("… and 950 more keys")


class TestKeysGivenTwice:
    def test_in_yaml(self) -> None:
        loaded = parse_manifests(
            f"{NODE}  labels:\n    a: b\n    a: c\n---\n{NODE.replace('one', 'two')}", "n.yaml"
        )
        assert problems(loaded) == [
            'n.yaml: document 1 (Node one): strict decoding error: line 7: key "a" already set in map'
        ]
        assert [node.name for node in loaded.nodes] == ["two"]

    def test_in_json(self) -> None:
        text = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "name": "b"}}'
        assert problems(parse_manifests(text)) == [
            'document 1 (Node b): strict decoding error: duplicate field "name"'
        ]

    def test_in_an_item_of_a_list(self) -> None:
        good = "- {apiVersion: v1, kind: Node, metadata: {name: good}}\n"
        bad = "- {apiVersion: v1, kind: Node, metadata: {name: bad, name: worse}}\n"
        loaded = parse_manifests(f"apiVersion: v1\nkind: List\nitems:\n{bad}{good}")
        assert [node.name for node in loaded.nodes] == ["good"]
        assert "(Node worse): strict decoding error: line 4: key" in problems(loaded)[0]

    def test_merging_and_then_saying_something_else_is_fine(self) -> None:
        text = f"{NODE}  labels: &l {{a: b, c: d}}\n  annotations: {{<<: *l, a: x}}\n"
        loaded = parse_manifests(text)
        assert loaded.problems == ()
        assert loaded.nodes[0].annotations == {"a": "x", "c": "d"}


def test_an_endless_file_is_no_configuration() -> None:
    if not Path("/dev/zero").exists() or os.name != "posix":
        pytest.skip("NOT TESTED: there is no endless file on this machine")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run(["config", "check", "/dev/zero"]) == 2  # devices are refused before they are read
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10
