"""`kschedfw plugins new`: what things are called, and that there is a whole project or none.

That the project is any good is tested in tests/plugins_distributions.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from kschedfw_apiserver.processes import running

from kschedfw import Plugin, Registry
from kschedfw.api import how_to_install
from kschedfw.cli import app
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.plugins_new import TEMPLATE, ProjectNames
from kschedfw.config import parse_configuration

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check_release(project: str, tag: str) -> tuple[int, str]:
    """The exit code of the project's own check, and what it says."""
    done = subprocess.run(
        [sys.executable, f"{project}/.github/check_release.py", tag],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    return done.returncode, done.stderr


def complaint(capsys: pytest.CaptureFixture[str], *args: str, code: int = 2) -> str:
    """What the command says when it refuses; nothing was written then."""
    before = sorted(Path.cwd().rglob("*"))
    assert app.run(["plugins", "new", *args]) == code
    assert sorted(Path.cwd().rglob("*")) == before
    return capsys.readouterr().err


class TestNames:
    @pytest.mark.parametrize(
        ("name", "distribution", "package", "class_name"),
        [
            ("rack", "rack", "rack", "Rack"),
            ("kschedfw-rack", "kschedfw-rack", "kschedfw_rack", "Rack"),
            ("kschedfw-gpu-share", "kschedfw-gpu-share", "kschedfw_gpu_share", "GpuShare"),
            ("kschedfw-GPU-share", "kschedfw-gpu-share", "kschedfw_gpu_share", "GPUShare"),
            ("RackAffinity", "rackaffinity", "rackaffinity", "RackAffinity"),
            ("numa.zones_v2", "numa-zones-v2", "numa_zones_v2", "NumaZonesV2"),
            ("kschedfw--tor--us", "kschedfw-tor-us", "kschedfw_tor_us", "TorUs"),
            ("kschedfwish", "kschedfwish", "kschedfwish", "Kschedfwish"),
        ],
    )
    def test_they_follow_from_the_distributions(
        self, name: str, distribution: str, package: str, class_name: str
    ) -> None:
        assert ProjectNames.of(name) == ProjectNames(distribution, package, class_name)

    def test_the_plugin_may_have_another(self) -> None:
        assert ProjectNames.of("acme-policies", "Rack") == ProjectNames(
            "acme-policies", "acme_policies", "Rack"
        )

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("", "NAME '' is no name of a distribution"),
            ("-rack", "NAME '-rack' is no name of a distribution"),
            ("rack_", "NAME 'rack_' is no name of a distribution"),
            ("rack affinity", "NAME 'rack affinity' is no name of a distribution"),
            ("räck", "NAME 'räck' is no name of a distribution"),
            ("../rack", "NAME '../rack' is no name of a distribution"),
            ("r" * 41, "letters, digits and inner -, _ and ., at most 40"),
            ("3d", "NAME 3d: '3d' can't be imported; begin with a letter: kschedfw-3d"),
            ("class", "NAME class: 'class' can't be imported"),
            ("kschedfw", "NAME kschedfw: a package 'kschedfw' would hide another one"),
            ("Random", "NAME Random: a package 'random' would hide another one; try kschedfw-Random"),
            ("tests", "NAME tests: a package 'tests' would hide another one"),
            ("numpy", "NAME numpy: numpy, which is installed, has a package 'numpy'"),
            ("kschedfw-3d", "NAME kschedfw-3d: '3d' is no name of a class: a capital letter"),
            ("a-name-that-is-too-long-for-a-class", "'ANameThatIsTooLongForAClass' is no name of a class"),
            ("node-name", "NAME node-name: 'NodeName' is a plugin of kschedfw "),
            ("kschedfw-status", "NAME kschedfw-status: 'Status' means something else to the plugin's code"),
            ("kschedfw-none", "NAME kschedfw-none: 'None' means something else to the plugin's code"),
            ("test-rack", "NAME test-rack: 'TestRack' would be a test to pytest"),
        ],
    )
    def test_what_can_not_be_is_refused(self, name: str, problem: str) -> None:
        with pytest.raises(UsageError) as raised:
            ProjectNames.of(name)
        assert problem in str(raised.value)

    @pytest.mark.parametrize("class_name", ["", "rack", "Rack-1", "_Rack", "NodeName", "R" * 26])
    def test_so_is_a_plugins(self, class_name: str) -> None:
        with pytest.raises(UsageError, match=r"^--class-name '"):
            ProjectNames.of("kschedfw-rack", class_name)


class TestProject:
    def test_it_has_what_the_options_say(self, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--description", 'Says "no" \\ often', "--author", "Zoë 'Z' O\"Hara", "--license", "MIT"]
        assert app.run(["plugins", "new", "rack", "--dest", "a/b", "--class-name", "Row", *options]) == 0
        project = tomllib.loads(Path("a/b/pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["description"] == 'Says "no" \\ often'
        assert project["authors"] == [{"name": "Zoë 'Z' O\"Hara"}]
        assert project["license"] == "MIT"
        assert project["entry-points"] == {"kschedfw": {"Row": "rack:Row"}}
        licence = Path("a/b/LICENSE").read_text(encoding="utf-8")
        assert licence.startswith("MIT License\n\nCopyright (c) Zoë 'Z' O\"Hara\n")
        assert sorted(path.name for path in Path.cwd().iterdir()) == ["a"]
        assert capsys.readouterr().out.startswith("a/b has the plugin Row. Next:\n\n  cd a/b\n")

    def test_a_release_needs_a_tag_a_version_and_a_changelog_that_agree(self) -> None:
        assert app.run(["plugins", "new", "rack"]) == 0
        assert check_release("rack", "v0.2.0") == (
            1,
            "pyproject.toml has version 0.1.0, so the tag must be v0.1.0, not v0.2.0\n",
        )
        assert check_release("rack", "v0.1.0") == (
            1,
            "CHANGELOG.md has no heading '## 0.1.0 (YYYY-MM-DD)'\n",
        )
        changelog = Path("rack/CHANGELOG.md")
        text = changelog.read_text(encoding="utf-8")
        assert "`Rack`: a filter and a score" in text
        changelog.write_text(text.replace("## Unreleased", "## 0.1.0 (2027-01-31)"), encoding="utf-8")
        assert check_release("rack", "v0.1.0") == (0, "")

    def test_only_the_job_that_publishes_may_say_who_it_is_and_it_publishes_what_was_checked(self) -> None:
        assert app.run(["plugins", "new", "rack"]) == 0
        text = Path("rack/.github/workflows/release.yml").read_text(encoding="utf-8")
        workflow = yaml.safe_load(text)
        build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
        assert workflow["permissions"] == {"contents": "read"}
        assert "permissions" not in build
        assert publish["permissions"] == {"id-token": "write"}
        assert (publish["needs"], publish["environment"]) == ("build", "pypi")
        assert "secrets." not in text
        runs = [step["run"] for step in build["steps"] if "run" in step]
        assert runs[0] == 'python .github/check_release.py "$GITHUB_REF_NAME"'
        checks = next(run for run in runs if "pytest" in run)
        tested = yaml.safe_load(Path("rack/.github/workflows/test.yml").read_text(encoding="utf-8"))
        assert checks.split(" && ") == [
            step["run"] for step in tested["jobs"]["test"]["steps"][3:]
        ]  # the same as for every change

    def test_its_page_has_a_profile_that_loads(self) -> None:
        assert app.run(["plugins", "new", "rack"]) == 0
        page = Path("rack/docs/index.md").read_text(encoding="utf-8")
        (profile,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        registry = Registry()
        registry.register(type("Rack", (Plugin,), {"name": "Rack", "args_type": dict}))
        (loaded,) = parse_configuration(profile, "docs/index.md", registry).profiles
        assert loaded.args["Rack"] == {"maxPerNode": 2}

    def test_a_command_and_a_source_of_clusters_come_with_it(self) -> None:
        assert app.run(["plugins", "new", "rack", "--command", "rack-view"]) == 0
        project = tomllib.loads(Path("rack/pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["entry-points"] == {
            "kschedfw": {"Rack": "rack:Rack"},
            "kschedfw.commands": {"rack-view": "rack.commands:COMMAND"},
            "kschedfw.sources": {"rack-view-exports": "rack.exports:EXPORTS"},
        }

    @pytest.mark.parametrize(
        ("command", "why"),
        [
            ("simulate", "kschedfw has it already; give another name"),
            ("Racks", "lower-case letters, digits and inner -, at most 20, such as racks"),
        ],
    )
    def test_a_command_that_can_not_be_is_refused(
        self, command: str, why: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert complaint(capsys, "rack", "--command", command) == f"kschedfw: --command '{command}': {why}\n"

    @pytest.mark.parametrize("dest", ["kschedfw-rack", "."])
    def test_an_empty_directory_is_taken(self, dest: str) -> None:
        Path(dest).mkdir(exist_ok=True)
        assert app.run(["plugins", "new", "kschedfw-rack", "--dest", dest]) == 0
        assert Path(dest, "src/kschedfw_rack/py.typed").is_file()

    def test_a_directory_with_something_in_it_is_not(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("rack").mkdir()
        Path("rack/.keep").touch()
        assert complaint(capsys, "rack") == (
            "kschedfw: rack isn't empty; give another directory with --dest\n"
        )

    def test_neither_is_a_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("rack").touch()
        assert complaint(capsys, "rack") == "kschedfw: rack is no directory; give another one with --dest\n"

    def test_a_file_on_the_way_is_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("file").touch()
        problem = complaint(capsys, "rack", "--dest", "file/rack")
        assert problem == "kschedfw: file/rack: File exists; give another directory with --dest\n"

    def test_an_answer_that_is_none_leaves_nothing_behind(self, capsys: pytest.CaptureFixture[str]) -> None:
        problem = complaint(capsys, "rack", "--description", "one\ntwo")
        assert problem == "kschedfw: --description: one line, please\n"

    def test_without_the_extra_it_says_what_to_install(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "copier", None)
        assert complaint(capsys, "rack", code=1) == (
            f"kschedfw: plugins new needs the extra new: {how_to_install('kschedfw', 'new')}\n"
        )

    def test_git_is_not_needed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        assert app.run(["plugins", "new", "rack"]) == 0

    def test_the_apache_licence_is_kschedfws_own(self) -> None:
        assert (TEMPLATE / "licenses/Apache-2.0").read_bytes() == (REPOSITORY / "LICENSE").read_bytes()


def on_a_terminal(*args: str, answers: bytes) -> int:
    """The exit code of `kschedfw plugins new`, whose questions are answered as soon as there are some."""
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-m", "kschedfw", "plugins", "new", *args]
    environment = os.environ | {"TERM": "xterm"}
    with running(command, stdin=its_end, stdout=its_end, stderr=its_end, env=environment) as process:
        os.close(its_end)
        shown = b""
        with suppress(OSError):  # it has ended
            while chunk := os.read(terminal, 4096):
                if b"What the plugin does" in chunk and b"What the plugin does" not in shown:
                    os.write(terminal, answers)
                shown += chunk
        os.close(terminal)
        return process.wait()


@pytest.mark.slow
class TestQuestions:
    def test_what_no_option_says_is_asked_for(self) -> None:
        assert on_a_terminal("rack", "--author", "A", "--license", "MIT", answers=b", it is said\r") == 0
        project = tomllib.loads(Path("rack/pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["description"] == "A kschedfw plugin, it is said"

    def test_with_defaults_nothing_is(self) -> None:
        assert on_a_terminal("rack", "--defaults", answers=b"") == 0
        assert Path("rack/pyproject.toml").is_file()

    def test_an_interrupt_leaves_nothing_behind(self) -> None:
        assert on_a_terminal("rack", answers=b"\x03") == 130
        assert list(Path.cwd().iterdir()) == []
