"""`kschedfw compare`: what it takes, prints and writes, and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from compare.scenes import CONFIGURATION, bare, node, packing, pod, spreading, two_nodes
from kschedfw_apiserver.browser import chromium, violations, watched
from kschedfw_lab import read_results
from kschedfw_lab.cli.compare_output import MOST_OPEN, page_writer, print_comparison
from kschedfw_lab.cli.compare_rows import FEW_NODES
from kschedfw_lab.compare import Comparison, Setup, compare
from kschedfw_lab.pages.axes import BOTTOM, HEIGHT, TOP
from rich.cells import cell_len

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.cli import app, candidates_of
from kschedfw.cli.exits import ExitCode
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import Command
from kschedfw.testing.waiting import PATIENCE


@pytest.fixture
def run_compare(kschedfw_command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `kschedfw compare` in this process."""
    monkeypatch.setenv("COLUMNS", "80")
    return partial(kschedfw_command, "compare")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "conf.yaml"
    path.write_text(CONFIGURATION)
    return path


def profiles(*values: object) -> list[str]:
    return [part for value in values for part in ("--profile", str(value))]


class TestCommand:
    def test_shows_how_they_differ(self, run_compare: Command, cluster_dir: Path, conf: Path) -> None:
        result = run_compare(cluster_dir, *profiles("default", f"{conf}#packing"))
        assert (result.code, result.err) == (0, "")
        assert "2 pods on 2 nodes under 2 configurations; seed 0" in result.out
        assert re.search(r"n1, cpu +25\.0% +75\.0%\n", result.out)
        assert "default: n2\n    n2 rather than n1, with" in result.out
        assert "packing: n1\n    n1 rather than n2, with" in result.out

    def test_as_json(self, run_compare: Command, cluster_dir: Path, conf: Path) -> None:
        result = run_compare(cluster_dir, *profiles("default", f"{conf}#packing"), "--json", "--seed", 4)
        document: dict[str, Any] = json.loads(result.out)
        assert (result.code, result.err) == (0, "")
        assert (document["seed"], document["baseline"]) == (4, "default")
        assert [run["label"] for run in document["runs"]] == ["default", "packing"]
        assert [move["pod"] for move in document["moves"][0]["moves"]] == ["default/fits"]

    def test_pods_that_admission_refuses_are_told(self, run_compare: Command, cluster_dir: Path) -> None:
        (cluster_dir / "quota.yaml").write_text(
            "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: 0}}}"
        )
        result = run_compare(cluster_dir, *profiles("default", "ClusterAutoscalerProvider"), "--json")
        document: dict[str, Any] = json.loads(result.out)
        assert {each["pod"] for each in document["refused"]} == {
            "default/fits",
            "default/too-big",
            "default/bound",
        }
        assert "3 refused by admission" in result.err
        assert any(note.startswith("not created: pods ") for note in document["notes"])

    def test_show_limits_the_list(self, run_compare: Command, cluster_dir: Path, conf: Path) -> None:
        result = run_compare(cluster_dir, *profiles("default", f"{conf}#packing"), "--show", 0)
        assert (result.code, "rather than" in result.out) == (0, False)

    def test_where_there_is_room_no_name_is_broken(
        self, run_compare: Command, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        result = run_compare(cluster_dir, *profiles("default", "ClusterAutoscalerProvider"))
        assert re.search(r"\nfewer points: NodeResourcesMostAllocated +1\n", result.out)

    def test_config_is_another_name_of_profile_as_in_simulate_and_replay(
        self, run_compare: Command, cluster_dir: Path
    ) -> None:
        result = run_compare(cluster_dir, "--config", "default", "--config", "default")
        assert "--profile default is given twice" in result.err

    def test_nothing_to_compare(self, run_compare: Command, cluster_dir: Path) -> None:
        given = profiles("default", "ClusterAutoscalerProvider")
        result = run_compare(cluster_dir / "nodes.yaml", *given)
        assert (result.code, result.err) == (
            1,
            "kschedfw: nothing to compare: the input has no pods to schedule\n",
        )
        result = run_compare(cluster_dir / "pods.yaml", *given)
        assert result.code == 1
        assert result.err.startswith(
            "kschedfw: nothing to compare: the input has no nodes; this exports what scheduling reads: kubectl get"
        )

    def test_interrupted(
        self, run_compare: Command, cluster_dir: Path, conf: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def begin_attempt(self: Scheduler) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Scheduler, "begin_attempt", begin_attempt)
        result = run_compare(cluster_dir, *profiles("default", f"{conf}#packing"))
        assert (result.code, result.err) == (130, "")
        assert "Interrupted." in result.out

    def test_exit_codes_are_documented(self, run_compare: Command) -> None:
        shown = run_compare("--help").out
        assert all(f"\n    {code.value} " in shown for code in ExitCode)


class TestProfiles:
    """Every wrong one is told before anything runs."""

    @pytest.fixture(autouse=True)
    def _nothing_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*args: object, **options: object) -> None:
            raise AssertionError

        monkeypatch.setattr("kschedfw_lab.cli.compare.compare_candidates", broken)

    def test_one_is_not_enough(self, run_compare: Command, cluster_dir: Path) -> None:
        for given in ([], ["default"]):
            result = run_compare(cluster_dir, *profiles(*given))
            assert (result.code, result.out) == (2, "")
            assert "give --profile at least twice" in result.err

    def test_the_same_twice(self, run_compare: Command, cluster_dir: Path) -> None:
        result = run_compare(cluster_dir, *profiles("default", "default"))
        assert result.code == 2
        assert "--profile default is given twice" in result.err

    @pytest.mark.parametrize("value", ["none.yaml", "none.yaml#x", "DefaultProfile", "#", ""])
    def test_what_there_is_not(self, run_compare: Command, cluster_dir: Path, value: str) -> None:
        result = run_compare(cluster_dir, *profiles("default", value))
        assert (result.code, result.out) == (2, "")
        assert f"--profile {value}".rstrip() in result.err
        assert "a configuration file, FILE#PROFILE, default, ClusterAutoscalerProvider or" in result.err

    def test_a_profile_that_the_file_does_not_have(
        self, run_compare: Command, cluster_dir: Path, conf: Path
    ) -> None:
        result = run_compare(cluster_dir, *profiles("default", f"{conf}#pack"))
        assert result.code == 2
        assert f"{conf}: no profile 'pack'; there are default-scheduler, packing" in result.err

    def test_a_configuration_that_is_refused(
        self, run_compare: Command, cluster_dir: Path, conf: Path
    ) -> None:
        conf.write_text(CONFIGURATION.replace("MostAllocated", "Most"))
        result = run_compare(cluster_dir, *profiles("default", conf))
        assert result.code == 2
        assert "scoringStrategy" in result.err

    def test_one_whose_scheduler_no_pod_names(
        self, run_compare: Command, cluster_dir: Path, conf: Path
    ) -> None:
        conf.write_text(CONFIGURATION.replace("- schedulerName: default-scheduler\n", ""))
        result = run_compare(cluster_dir, *profiles("default", conf))
        assert result.code == 2
        assert "no pending pod names a scheduler of it (packing); they name default-scheduler" in result.err


class TestLabels:
    def labels(self, *values: object) -> list[str]:
        return [candidate.label for candidate in candidates_of(list(map(str, values)))]

    def test_are_short_where_they_differ(self, conf: Path) -> None:
        assert self.labels("default", conf, f"{conf}#packing") == ["default", "conf", "packing"]

    def test_are_as_long_as_it_takes_to_differ(self, conf: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.yaml"
        other.write_text(CONFIGURATION)
        assert self.labels(f"{conf}#packing", f"{other}#packing", "default") == [
            "conf.yaml#packing",
            "other.yaml#packing",
            "default",
        ]
        (tmp_path / "deeper").mkdir()
        same = tmp_path / "deeper" / "conf.yaml"
        same.write_text(CONFIGURATION)
        assert self.labels(conf, same) == [str(conf), str(same)]

    def test_a_name_of_a_file_may_have_a_hash(self, tmp_path: Path) -> None:
        path = tmp_path / "a#packing"
        path.write_text(CONFIGURATION)
        assert self.labels("default", path) == ["default", "a#packing"]
        assert self.labels("default", f"{path}#packing") == ["default", "packing"]


UPGRADE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: rooted}
spec: {hostNetwork: true, hostUsers: false, containers: [{name: main, image: main}]}
"""
"""Since v1.35 such a pod needs a node that declares the feature UserNamespacesHostNetworkSupport."""


class TestVersions:
    def test_what_an_upgrade_changes_is_seen(self, run_compare: Command, tmp_path: Path) -> None:
        cluster = tmp_path / "cluster.yaml"
        cluster.write_text(UPGRADE)
        result = run_compare(cluster, *profiles("default@1.34", "default"), "--json")
        document: dict[str, Any] = json.loads(result.out)
        assert [run["label"] for run in document["runs"]] == ["default@1.34", "default"]
        (move,) = document["moves"][0]["moves"]
        assert (move["pod"], move["change"]) == ("default/rooted", "no longer placed")

    def test_files_and_their_profiles_have_versions_too(self, conf: Path) -> None:
        candidates = candidates_of(["default", f"{conf}#packing", f"{conf}#packing@1.35", f"{conf}@1.35"])
        assert [each.label for each in candidates] == ["default", "packing", "packing@1.35", "conf@1.35"]
        assert [each.configuration.gates.version for each in candidates] == ["1.36", "1.36", "1.35", "1.35"]

    def test_a_name_of_a_file_may_look_like_one(self, tmp_path: Path) -> None:
        path = tmp_path / "a@1.35"
        path.write_text(CONFIGURATION)
        _, candidate = candidates_of(["default", str(path)])
        assert candidate.configuration.gates.version == "1.36"

    def test_a_version_that_is_not_known(self, run_compare: Command, cluster_dir: Path) -> None:
        result = run_compare(cluster_dir, *profiles("default@1.20", "default"))
        assert result.code == 2
        assert "--profile default@1.20: there are no defaults of version 1.20; known: 1.34, " in result.err


LONG = "a-configuration-whose-name-nobody-could-call-short"


def compared(*more: Setup, pods: int = 6) -> Comparison:
    return compare(
        two_nodes(*(pod(f"web-{index}") for index in range(pods))), [spreading(), packing(), *more]
    )


class TestTable:
    @pytest.mark.parametrize("width", [60, 80, 120])
    def test_nothing_is_wider_than_the_terminal_or_cut_off(
        self, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        print_comparison(compared(packing(LONG), bare(label="no-filter")), show=3)
        text = capsys.readouterr().out
        assert all(cell_len(line) <= width for line in text.splitlines())
        assert "…" not in text
        assert f"{LONG}:" in "".join(text.split())

    def test_many_nodes_are_counted_by_how_full_they_are(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw_lab.cli.compare_rows.FEW_NODES", 1)
        print_comparison(compared(pods=1), show=0)
        text = capsys.readouterr().out
        assert re.search(r"no pod +0 +1\n", text)
        assert re.search(r"25% to 50% +2 +0\n", text)
        assert re.search(r"50% to 75% +0 +1\n", text)

    def test_those_that_found_no_place_come_first(self, capsys: pytest.CaptureFixture[str]) -> None:
        cluster = two_nodes(pod("a"), pod("b", cpu=4, memory="8Gi"))
        print_comparison(compare(cluster, [packing(), spreading()]), show=1)
        listed = capsys.readouterr().out.partition("\nPods\ndefault/")[2]
        assert listed.startswith("b\n")
        assert "unschedulable: 0/2 nodes are available" in listed
        assert "and 1 more pod" in listed

    def test_nothing_differs(self, capsys: pytest.CaptureFixture[str]) -> None:
        print_comparison(compare(two_nodes(pod("a")), [packing(), packing("b")]), show=3)
        text = capsys.readouterr().out
        assert "Every pod fares the same everywhere." in text
        assert "What spoke against" not in text


class Page(HTMLParser):
    """What a page is made of."""

    VOID = ("meta", "line", "rect", "polyline", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []
        self.elements: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.elements.append((tag, given))
        self.attributes += given
        if tag not in self.VOID or (tag in ("rect", "polyline")):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += given

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data.split()


class TestPage:
    @pytest.fixture
    def page(self, run_compare: Command, cluster_dir: Path, conf: Path, tmp_path: Path) -> str:
        path = tmp_path / "page.html"
        given = profiles("default", f"{conf}#packing", "ClusterAutoscalerProvider")
        result = run_compare(cluster_dir, *given, "--html", path)
        assert (result.code, result.err) == (0, "")
        assert "under 3 configurations" in result.out
        return path.read_text()

    def test_is_well_formed_and_every_plot_has_a_title(self, page: str) -> None:
        found = Page(page)
        assert found.open == []
        pictures = [dict(given) for tag, given in found.elements if ("role", "img") in given]
        assert len(pictures) >= 4
        assert all(each.get("aria-label") for each in pictures)
        assert ("lang", "en") in found.attributes

    def test_needs_nothing_from_elsewhere(self, page: str) -> None:
        found = Page(page)
        assert not {"script", "link", "img", "iframe", "image", "use"} & set(found.tags)
        assert not {"src", "href", "xlink:href", "srcset"} & {name for name, _ in found.attributes}
        assert not re.search(r"https?://|@import|url\(", page)
        assert "default-src 'none'" in page

    def test_follows_light_and_dark(self, page: str) -> None:
        assert "@media (prefers-color-scheme: dark)" in page

    def test_has_the_figures_of_the_table(self, page: str) -> None:
        words = Page(page).words
        assert {"packing", "default/fits", "37.5%", "default/too-big"} - set(words) == {"default/too-big"}
        assert "rather than n2, with" in page

    def test_of_many_pods_that_fared_differently_the_first_are_shown_and_the_others_folded(
        self, tmp_path: Path
    ) -> None:
        # Spread, each of the pods takes a quarter of a node of its own; packed, all are on the first nodes.
        nodes = [
            make_node(f"n{number:02}").capacity(cpu=4, pods=10).build() for number in range(MOST_OPEN * 2)
        ]
        pods = [make_pod(f"p{number:02}").requests(cpu=1).build() for number in range(MOST_OPEN * 2)]
        comparison = compare(InMemoryCluster([*nodes, *pods]), [spreading(), packing()])
        moved = len(comparison.moves[0].moves)
        path = tmp_path / "page.html"
        page_writer(path)(comparison)
        text = path.read_text()
        assert Page(text).open == []
        assert moved > MOST_OPEN
        assert f"<summary>{moved - MOST_OPEN} more</summary>" in text
        folded = text.index(f"<summary>{moved - MOST_OPEN} more</summary>")
        assert text[:folded].count('<th scope="row">default/p') == MOST_OPEN

    def test_names_are_text_and_not_markup(self, tmp_path: Path) -> None:
        comparison = compare(two_nodes(pod("web")), [spreading("<b>&"), packing()])
        path = tmp_path / "page.html"
        page_writer(path)(comparison)
        text = path.read_text()
        assert "<b>" not in text
        assert "&lt;b&gt;&amp;" in text

    def test_more_nodes_than_there_is_room_for_are_put_together(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from kschedfw_lab.cli import compare_plots

        full = make_pod("full").requests(cpu=4).node("n3").build()
        cluster = InMemoryCluster([node("n1"), node("n2"), node("n3"), full, pod("web", cpu=2)])
        monkeypatch.setattr(compare_plots, "MOST_POINTS", 2)
        monkeypatch.setattr(compare_plots, "FEW_NODES", 2)
        plots = compare_plots.plots_of(compare(cluster, [packing(), spreading()]))
        titles = [cell.title for cell in plots.strips[0].cells]
        assert titles == ["n1 to n2, mean: 25.0%", "n3: 100.0%"]
        assert plots.nodes == ()
        points = plots.curves[0].series[0].line[1:].split("L")
        assert [float(point.split()[1]) for point in points] == [TOP, HEIGHT - BOTTOM]

    def test_few_nodes_are_bars_under_their_names_and_nothing_is_drawn_between_them(self, page: str) -> None:
        from kschedfw_lab.cli import compare_plots

        cluster = InMemoryCluster([node("n2"), node("n1"), pod("web", cpu=2)])
        plots = compare_plots.plots_of(compare(cluster, [packing(), spreading()]))
        assert plots.curves == ()
        cpu = plots.nodes[0]
        assert cpu.caption == "cpu: requested share per node."
        assert [row.heading for row in cpu.rows] == ["n2", "", "n1", ""]
        assert sorted(row.text for row in cpu.rows if row.number == 0) == ["0.0%", "50.0%"]
        assert "sorted" not in Page(page).words
        assert {"n1", "n2"} <= set(Page(page).words)

    @pytest.mark.nightly  # CI's job of browsers runs it for each change
    @pytest.mark.slow
    @pytest.mark.parametrize("nodes", [3, FEW_NODES + 1], ids=["bars", "curves"])
    def test_in_a_browser_it_fits_wide_and_narrow_in_light_and_dark(self, tmp_path: Path, nodes: int) -> None:
        path = tmp_path / "page.html"
        cluster = InMemoryCluster([*(node(f"n{number}") for number in range(nodes)), pod("web", cpu=2)])
        page_writer(path)(compare(cluster, [packing(), spreading()]))
        with chromium() as browser:
            for width, dark in product((1280, 390), (False, True)):
                with watched(browser, width=width, dark=dark) as seen:
                    seen.page.goto(path.as_uri())
                    assert (seen.problems, violations(seen)) == ([], [])
                    assert len(seen.asked) == 1
                    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width

    def test_where_it_cannot_be_written_nothing_runs(
        self, run_compare: Command, cluster_dir: Path, tmp_path: Path
    ) -> None:
        given = profiles("default", "ClusterAutoscalerProvider")
        for path, why in ((tmp_path, "is a directory"), (tmp_path / "x" / "y", "its directory isn't there")):
            result = run_compare(cluster_dir, *given, "--html", path)
            assert (result.code, result.out) == (2, "")
            assert f"--html {path}: {why}" in result.err


class TestFailOn:
    GIVEN = ("default", "ClusterAutoscalerProvider")

    def test_a_condition_that_holds_is_exit_code_3(self, run_compare: Command, cluster_dir: Path) -> None:
        result = run_compare(cluster_dir, *profiles(*self.GIVEN), "--fail-on", "moved", "--fail-on", "lost")
        assert result.code == 3
        assert "2 pods on 2 nodes under 2 configurations" in result.out
        assert result.err == ("kschedfw: --fail-on moved: ClusterAutoscalerProvider: moved is 1 of 2 pods\n")

    @pytest.mark.slow
    def test_in_a_pipe_the_verdict_comes_after_the_table(self, cluster_dir: Path) -> None:
        command = [sys.executable, "-m", "kschedfw", "compare", str(cluster_dir), *profiles(*self.GIVEN)]
        done = subprocess.run(
            [*command, "--fail-on", "moved"],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        lines = done.stdout.splitlines()
        assert lines[0].startswith("2 pods on 2 nodes under 2 configurations")
        assert lines[-1].startswith("kschedfw: --fail-on moved: ")

    def test_one_that_does_not_hold_is_exit_code_0(self, run_compare: Command, cluster_dir: Path) -> None:
        given = [*profiles(*self.GIVEN), "--fail-on", "placed < baseline.placed", "--fail-on", "moved > 50%"]
        result = run_compare(cluster_dir, *given)
        assert (result.code, result.err) == (0, "")

    def test_it_is_in_the_json(self, run_compare: Command, cluster_dir: Path) -> None:
        condition = "unplaced and utilisation.cpu < baseline.utilisation.cpu + 1%"
        result = run_compare(cluster_dir, *profiles(*self.GIVEN), "--fail-on", condition, "--json")
        assert result.code == 3
        assert json.loads(result.out)["failed"] == [
            {
                "label": "ClusterAutoscalerProvider",
                "condition": condition,
                "values": {"unplaced": 1, "utilisation.cpu": 0.375, "baseline.utilisation.cpu": 0.375},
            }
        ]

    @pytest.mark.parametrize(
        ("condition", "problem"),
        [
            (
                "mooved",
                "--fail-on: 'mooved' is no condition: there is no metric 'mooved'; did you mean moved?",
            ),
            ("utilisation.cpus > 1", "no node has the resource cpus; did you mean cpu?"),
        ],
    )
    def test_a_wrong_one_is_told_before_anything_runs(
        self, condition: str, problem: str, run_compare: Command, cluster_dir: Path
    ) -> None:
        result = run_compare(cluster_dir, *profiles(*self.GIVEN), "--fail-on", condition)
        assert (result.code, result.out) == (2, "")
        assert problem in result.err

    def test_equal_nodes_by_name_leave_nothing_to_the_seed(
        self, run_compare: Command, cluster_dir: Path
    ) -> None:
        (cluster_dir / "pods.yaml").write_text(
            "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: m, image: i}]}}"
        )
        for seed in range(4):
            given = [*profiles(*self.GIVEN), "--select-host", "first-by-name", "--seed", seed]
            result = run_compare(cluster_dir, *given, "--fail-on", "changed", "--json")
            assert result.code == 0
            first, second = json.loads(result.out)["runs"]
            used = [[each["requested"]["pods"] for each in run["nodeAllocations"]] for run in (first, second)]
            assert used == [[1, 0], [1, 0]]


def test_results_are_the_tidy_table_that_report_reads(
    run_compare: Command, cluster_dir: Path, conf: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    for seed in (1, 2):
        options = ["--seed", seed, "--results", results]
        done = run_compare(cluster_dir, *profiles("default", f"{conf}#packing"), *options)
        assert done.code == 0, done.err
    found = read_results(results)
    assert found.factors == ("policy", "seed")
    runs = found.runs()
    assert [tuple(run.factors.values()) for run in runs] == [
        ("default", 1),
        ("packing", 1),
        ("default", 2),
        ("packing", 2),
    ]
    for run in runs:
        assert (run.metrics["placed"], run.metrics["pods"]) == (1, 2)
        assert run.metrics["moved"] == (run.factors["policy"] == "packing")
        assert {"moved", "nodes_in_use", "utilisation.cpu", "wait_seconds.p95"} <= run.metrics.keys()
    assert app.run(["report", str(results), "--baseline", "policy=default"]) == 0


class TestUpgrade:
    """`--kube-version` compares versions of Kubernetes, and finds the changes that pods move by."""

    def test_a_configuration_is_compared_in_each_version(
        self, run_compare: Command, cluster_dir: Path, conf: Path
    ) -> None:
        result = run_compare(
            cluster_dir, "--profile", f"{conf}#packing", "--kube-version", "1.35", "--kube-version", "1.36"
        )
        assert result.code == 0, result.err
        assert "packing@1.35" in result.out
        assert "Every pod fares the same everywhere." in result.out

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            (["--kube-version", "1.36"], "give --kube-version at least twice"),
            (
                ["--kube-version", "1.36", "--kube-version", "1.99"],
                "--kube-version 1.99: there are no defaults of it; known: 1.34",
            ),
            (
                ["--kube-version", "1.36", "--kube-version", "1.37", *profiles("default", "other")],
                "--kube-version compares versions of one --profile",
            ),
        ],
    )
    def test_versions_that_cannot_be_compared_are_refused(
        self, run_compare: Command, cluster_dir: Path, given: list[str], problem: str
    ) -> None:
        result = run_compare(cluster_dir, *given)
        assert result.code == ExitCode.BAD_INPUT
        assert problem in result.err
