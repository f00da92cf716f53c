"""Distributions that are damaged, or that end the process when they are imported: named, and nobody else is harmed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kschedfw.api import distributions
from kschedfw.api.distributions import ImportFailedError, entry_points_of, home_of, imported
from kschedfw.testing.waiting import PATIENCE
from tests.distributions.site import Site

APP = "from kschedfw.cli import Command\nAPP = Command('Nothing.', 'ends:app')\n"
POINTS = b"[kschedfw]\nFound = found:Found\n"
METADATA = b"Metadata-Version: 2.1\nName: damaged\nVersion: 1.0\n"
UNREADABLE: Mapping[str, bytes] = {
    "not UTF-8": b"[kschedfw]\n\xff = a:A\n",
    "no pair": b"[kschedfw]\nthis is no entry point\n",
    "huge": b"[kschedfw]\n" + b"x = x:X\n" * 200_000,
}
"""Files of entry points that leave their distribution out."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def put(site: Site, directory: str, **files: bytes) -> None:
    (site.path / directory).mkdir()
    for name, content in files.items():
        (site.path / directory / name.replace("__", ".")).write_bytes(content)


RUN = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from kschedfw.cli.app import run

done = []
for arguments in json.load(sys.stdin):
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors:
        code = run(arguments)
    done.append([code, out.getvalue(), errors.getvalue()])
print(json.dumps(done))
"""


def kschedfw(site: Site, *commands: Sequence[str]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each command. They run in turn in one process, which saves its start."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        check=False,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        env=site.environment | {"COLUMNS": "200"},
        timeout=PATIENCE,
    )
    # A command that ends the process leaves no answer.
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(done.stdout)]


class TestDamagedMetadata:
    @pytest.fixture(autouse=True)
    def _path(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(site.path))
        monkeypatch.setattr(distributions, "_told", set())

    def found(self) -> list[str | None]:
        return [home_of(each) for each in entry_points_of(["kschedfw"]) if each.name == "Found"]

    @pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
    def test_entry_points_that_cannot_be_read_leave_out_one_distribution_with_one_warning(
        self, site: Site, content: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        put(site, "damaged\x1b-1.0.dist-info", METADATA=METADATA, entry_points__txt=content)
        site.install("healthy", "2.0", "healthy", "", "Found = healthy:Found")
        assert [self.found(), self.found()] == [["healthy 2.0"]] * 2
        (warning,) = caplog.messages
        assert warning.isprintable()
        assert r"damaged\x1b-1.0.dist-info is left out, since its metadata can't be read (" in warning

    @pytest.mark.parametrize("metadata", [None, b"", b"\xff\xfe", b"Name: a\n", b"Version: 1.0\n"])
    def test_a_distribution_without_name_or_version_is_named_by_its_directory(
        self, site: Site, metadata: bytes | None
    ) -> None:
        files = {} if metadata is None else {"METADATA": metadata}
        put(site, "damaged-1.0.dist-info", **files, entry_points__txt=POINTS)
        assert self.found() == ["damaged-1.0.dist-info, whose metadata can't be read"]

    def test_what_is_no_directory_or_has_nothing_in_it_is_no_matter(self, site: Site) -> None:
        (site.path / "file-1.0.dist-info").write_bytes(b"\xff\x00")
        put(site, "empty-1.0.dist-info")
        put(site, "odd-1.0.dist-info", METADATA=METADATA)
        (site.path / "odd-1.0.dist-info" / "entry_points.txt").mkdir()
        put(site, ".dist-info", METADATA=b"")
        site.install("healthy", "2.0", "healthy", "", "Found = healthy:Found")
        assert self.found() == ["healthy 2.0"]

    def test_of_two_of_one_name_the_first_on_the_path_counts(self, site: Site, tmp_path: Path) -> None:
        first = Site(tmp_path / "first")
        first.path.mkdir()
        for place, version in ((site, "1.0"), (first, "2.0")):
            place.install("Some-Thing", version, "thing", "", "Found = thing:Found")
        sys.path.insert(0, str(first.path))
        assert self.found() == ["Some-Thing 2.0"]


CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {pods: 9}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
"""
VERSION = "apiVersion: kubescheduler.config.k8s.io/v1"
PROFILE = f"""{VERSION}
kind: KubeSchedulerConfiguration
profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: Ends}}]}}}}}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> Mapping[str, str]:
    """The paths of a cluster, of a configuration that enables the plugin Ends, and of one of the kind Ends."""
    found = {}
    for name, text in {"cluster": CLUSTER, "profile": PROFILE, "kind": f"{VERSION}\nkind: Ends\n"}.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        found[name] = str(path)
    return found


@pytest.mark.slow
def test_every_command_works_where_other_distributions_are_damaged(
    site: Site, files: Mapping[str, str]
) -> None:
    for number, content in enumerate(UNREADABLE.values()):
        put(site, f"damaged{number}-1.0.dist-info", METADATA=b"\xff", entry_points__txt=content)
    cluster = files["cluster"]
    done = kschedfw(site, ["--help"], ["plugins", "list"], ["simulate", cluster], ["explain", cluster, "p"])
    assert [code for code, _, _ in done] == [0] * 4
    told = "".join(errors for _, _, errors in done)
    for number in range(len(UNREADABLE)):
        assert told.count(f"damaged{number}-1.0.dist-info is left out") == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(0), "SystemExit: 0"),
        (GeneratorExit(), "GeneratorExit"),
        (BaseException("no luck"), "BaseException: no luck"),
        (ImportError("no luck"), "ImportError: no luck"),
    ],
    ids=repr,
)
def test_whatever_an_import_raises_is_an_error_with_its_place(
    site: Site, monkeypatch: pytest.MonkeyPatch, error: BaseException, told: str
) -> None:
    monkeypatch.syspath_prepend(str(site.path))
    (site.path / "ends_here.py").write_text(f"raise {error!r}")
    with pytest.raises(ImportFailedError) as raised:
        imported(EntryPoint("Ends", "ends_here:Ends", "kschedfw"))
    assert str(raised.value) == f"loading ends_here:Ends failed: {told} (ends_here.py, line 1)"


def test_ctrl_c_during_an_import_interrupts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(site.path))
    (site.path / "interrupted_here.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        imported(EntryPoint("Ends", "interrupted_here:Ends", "kschedfw"))


@pytest.mark.slow
def test_a_module_that_exits_when_it_is_imported_is_an_error_that_names_it(
    site: Site, files: Mapping[str, str]
) -> None:
    (site.path / "commands.py").write_text(APP)
    site.install("ends", "1.0", "ends", "raise SystemExit(0)", "Ends = ends:Ends")
    site.install("app", "1.0", "unused", "", "app = commands:APP", group="kschedfw.commands")
    for group, point in (
        ("commands", "ends = ends:COMMAND"),
        ("sources", "ends = ends:SOURCE"),
        ("configurations", "Ends = ends:KIND"),
        ("presets", "Ends = ends:PRESET"),
        ("feature_gates", "Ends = ends:GATE"),
    ):
        site.install(f"ends-{group.replace('_', '-')}", "1.0", "unused", "", point, group=f"kschedfw.{group}")
    simulate, why = ("simulate", files["cluster"]), "loading ends:{} failed: SystemExit: 0 (ends.py, line 1)"
    refused = {
        (*simulate, "--config", files["profile"]): ("plugin 'Ends' (from distribution ends 1.0)", "Ends"),
        (*simulate, "--config", files["kind"]): (
            "configuration kind 'Ends' of ends-configurations 1.0",
            "KIND",
        ),
        (*simulate, "--algorithm-provider", "Ends"): (
            "algorithm provider 'Ends' of ends-presets 1.0",
            "PRESET",
        ),
        (*simulate, "--feature-gates", "Ends=true"): (
            "feature gate 'Ends' of ends-feature-gates 1.0",
            "GATE",
        ),
        ("ends",): ("command 'ends' of ends-commands 1.0", "COMMAND"),
        ("app",): ("command 'app' of app 1.0", "app"),
    }
    done = kschedfw(site, *refused, simulate, ["plugins", "list"], ["--help"])
    for (arguments, (whose, what)), (code, out, errors) in zip(refused.items(), done, strict=False):
        assert (code, out) == (2, ""), arguments
        assert f"{whose}: {why.format(what)}" in errors, arguments
    # What nobody asks for harms nobody, and is named where it is listed.
    simulated, listed, helped = done[len(refused) :]
    assert [code for code, _, _ in (simulated, listed, helped)] == [0, 0, 0]
    assert f"warning: source of clusters 'ends' of ends-sources 1.0: {why.format('SOURCE')}" in done[0][2]
    assert f"can't be used: {why.format('Ends')}" in listed[1]
    assert f"(can't be used: command 'ends' of ends-commands 1.0: {why.format('COMMAND')})" in " ".join(
        helped[1].split()
    )


MINE = """
import kschedfw
from kschedfw.config.extensions import Preset


class Odd(BaseException):
    pass


def exits(catalog, gates):
    raise SystemExit(0)


def fails(catalog, gates):
    raise ValueError("no luck")


EXITS, FAILS = Preset(exits), Preset(fails)


class Ends(kschedfw.Plugin):
    name = "Ends"

    @kschedfw.hookimpl
    def filter(self):
        raise Odd("no luck")
"""


@pytest.mark.slow
def test_code_that_exits_when_it_is_called_is_an_error_that_names_it(
    site: Site, files: Mapping[str, str]
) -> None:
    site.install("mine", "1.0", "mine", MINE, "Ends = mine:Ends")
    site.install(
        "presets", "1.0", "unused", "", "Exits = mine:EXITS", "Fails = mine:FAILS", group="kschedfw.presets"
    )
    simulate = ("simulate", files["cluster"])
    done = kschedfw(
        site,
        (*simulate, "--algorithm-provider", "Exits"),
        (*simulate, "--algorithm-provider", "Fails"),
        # That isn't told as an attempt's failure: nobody but a plugin raises it, but it may mean the process.
        (*simulate, "--config", files["profile"]),
    )
    assert [(code, errors) for code, _, errors in done] == [
        (2, "kschedfw: algorithm provider 'Exits' of presets 1.0: SystemExit: 0 (mine.py, line 11)\n"),
        (70, "kschedfw: this is a bug in kschedfw: ValueError: no luck\n"),
        (70, "kschedfw: ended by Odd: no luck (mine.py, line 26)\n"),
    ]


@pytest.mark.slow
def test_the_process_ends_with_the_exit_code_of_the_error(site: Site, files: Mapping[str, str]) -> None:
    site.install("ends", "1.0", "ends", "raise SystemExit(0)", "Ends = ends:Ends")
    done = subprocess.run(
        [sys.executable, "-m", "kschedfw", "simulate", files["cluster"], "--config", files["profile"]],
        check=False,
        capture_output=True,
        text=True,
        env=site.environment,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "plugin 'Ends' (from distribution ends 1.0): loading ends:Ends failed: SystemExit: 0" in done.stderr
    )


LOUD = """
import kschedfw

TEXT = "\\x1b[31mred\\x1b[0m\\x07\\r\\u202e\\x9b" + "x" * 1_000_000


class Loud(kschedfw.Plugin):
    name = "Loud"

    @kschedfw.hookimpl
    def filter(self, pod, node_info):
        if pod.name == "failing":
            raise RuntimeError(TEXT)
        return kschedfw.Status.unschedulable(f"node(s) are {TEXT}")

    def evidence(self, pod, node_info):
        return [kschedfw.Evidence(TEXT, TEXT)]
"""


@pytest.mark.slow
def test_what_a_plugin_says_reaches_the_terminal_escaped_and_shortened(
    site: Site, files: Mapping[str, str]
) -> None:
    site.install("loud", "1.0", "loud", LOUD, "Ends = loud:Loud", "Loud = loud:Loud")
    profile = Path(files["profile"])
    profile.write_text(profile.read_text().replace("Ends", "Loud"))
    cluster = Path(files["cluster"])
    pod = cluster.read_text().split("---")[1]
    both, alone = cluster.with_name("both.yaml"), cluster.with_name("pod.yaml")
    alone.write_text(pod)
    both.write_text(f"{cluster.read_text()}---\n{pod.replace('name: p}', 'name: failing}')}")
    options = ("--config", str(profile))
    commands = {
        ("simulate", str(both), *options): 1,
        ("explain", str(both), "p", *options): 1,
        ("explain", str(both), "failing", *options): 1,
        ("pending", str(cluster), *options): 1,
        ("fit", str(cluster), "--pod", str(alone), *options): 1,
    }
    done = kschedfw(site, *commands)
    for (command, code), (found, out, errors) in zip(commands.items(), done, strict=True):
        assert found == code, (command, out[:300], errors[:300])
        for text in (out, errors):
            assert text.replace("\n", "").isprintable(), command
            assert len(text) < 40_000, command
    assert r"\x1b[31mred\x1b[0m" in done[0][1]


ENDLESS = """
import itertools

import kschedfw


class Ends(kschedfw.Plugin):
    name = "Ends"

    @kschedfw.hookimpl
    def placement_generate(self, group):
        return None if group.key.endswith("none") else itertools.repeat(None)
"""
GROUPS = """
{{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {{name: {0}, namespace: default}},
  spec: {{schedulingPolicy: {{gang: {{minCount: 1}}}}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: {0}-0}},
  spec: {{schedulingGroup: {{podGroupName: {0}}}, containers: [{{name: c, image: i}}]}}}}
---
"""


@pytest.mark.slow
def test_a_command_ends_whatever_placements_a_plugin_makes(site: Site, files: Mapping[str, str]) -> None:
    site.install("endless", "1.0", "endless", ENDLESS, "Ends = endless:Ends")
    cluster, profile = Path(files["cluster"]), Path(files["profile"])
    cluster.write_text(GROUPS.format("none") + GROUPS.format("endless") + cluster.read_text())
    disabled = "multiPoint: {disabled: [{name: TopologyPlacementGenerator}], "
    profile.write_text(profile.read_text().replace("multiPoint: {", disabled))
    gates = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
    options = ("--config", str(profile), "--feature-gates", gates)
    done = kschedfw(
        site,
        ("simulate", str(cluster), *options),
        ("explain", str(cluster), "none-0", *options),
        ("explain", str(cluster), "endless-0", *options),
    )
    assert [code for code, _, _ in done] == [1] * 3, done
    wrong = "placement_generate must return GroupPlacements of the nodes that it was given"
    assert all(f"{wrong}, or a Status that isn't success, not None" in errors for _, _, errors in done)
