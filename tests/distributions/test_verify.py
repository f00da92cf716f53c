"""`make verify`: parts of a table are run, resumed, and reported, and nothing that wasn't shown is called passed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kschedfw_apiserver.processes import running

from kschedfw.testing.waiting import PATIENCE, eventually
from tests.conformance.modes import Mode

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / ".ci" / "verify.py"
PAGE = "# Verification\n\nBefore.\n\n<!-- verified -->\n<!-- end of verified -->\n\nAfter.\n"

pytestmark = pytest.mark.slow


class Checkout:
    """A repository with a table and a page of its own, and the script."""

    def __init__(self, folder: Path, table: str) -> None:
        self.folder = folder
        (folder / ".ci").mkdir()
        (folder / "docs").mkdir()
        shutil.copy(SCRIPT, folder / ".ci")
        (folder / ".gitignore").write_text("build/\nruns\n")
        self.table = folder / ".ci" / "verify.toml"
        self.table.write_text(table)
        self.page = folder / "docs" / "verification.md"
        self.page.write_text(PAGE)
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "--message=a state")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self.folder / ".ci" / "verify.py"), *arguments]

    def verify(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=os.environ | variables,
        )

    @property
    def rows(self) -> dict[str, list[str]]:
        """The cells of the report's rows after the name of the part: what, amount, figure, time, verdict."""
        rows = re.findall(r"^\| (.*) \|$", self.page.read_text(), re.MULTILINE)[2:]
        return {name: rest for name, *rest in (row.split(" | ") for row in rows)}

    def verdict(self, part: str) -> str:
        return self.rows[part][-1]

    @property
    def runs(self) -> list[str]:
        """What the parts' commands have noted of themselves."""
        noted = self.folder / "runs"
        return noted.read_text().split() if noted.exists() else []


def part(name: str, command: str, **fields: str) -> str:
    given = {"what": '"something"', "figure": r"'^figure (.*)$'", "minutes": "1"} | fields
    lines = "".join(f"{field} = {value}\n" for field, value in given.items())
    return f'["{name}"]\ncommand = """{command}"""\n{lines}\n'


NOTED = "echo {0} >> runs; echo figure of {0}"


def test_the_report_has_each_part_with_its_figure_and_verdict(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, part("one", "echo figure 1; echo figure 2 | cat") + part("two", "echo no"))
    done = checkout.verify()
    assert done.returncode == 1
    assert checkout.rows["one"] == ["something", "", "2", "0 s", "passed"]
    assert checkout.verdict("two") == "FAILED: it ended well and shows no figure"
    assert "verify: failed: two; the outputs are in build/verify/" in done.stderr
    text = checkout.page.read_text()
    assert f"kschedfw at {checkout.git('rev-parse', '--short', 'HEAD')}, " in text
    assert text.startswith("# Verification\n\nBefore.\n")
    assert text.endswith("\n\nAfter.\n")


def test_a_part_that_fails_has_failed_though_it_shows_a_figure(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, part("one", "echo figure 1; false; echo never"))
    assert checkout.verify().returncode == 1
    assert checkout.rows["one"][2:] == ["1", "0 s", "FAILED: exit code 1"]


def test_what_the_machine_lacks_is_named_and_never_green(tmp_path: Path) -> None:
    needs = '["program:no-such-program", "variable:NO_SUCH_VARIABLE"]'
    checkout = Checkout(tmp_path, part("one", NOTED.format("one"), needs=needs))
    assert checkout.verify().returncode == 0
    assert checkout.verdict("one") == "not run: there is no no-such-program and NO_SUCH_VARIABLE isn't set"
    assert checkout.runs == []


def test_a_program_of_a_cluster_is_looked_for_in_the_folder_that_a_variable_names(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "etcd").symlink_to(shutil.which("git") or "")
    (tmp_path / "checkout").mkdir()
    checkout = Checkout(
        tmp_path / "checkout",
        part("one", "echo figure 1", needs='["asset:etcd"]')
        + part("two", "echo figure 2", needs='["asset:git"]'),
    )
    assert checkout.verify(KUBEBUILDER_ASSETS=str(assets)).returncode == 0
    assert checkout.verdict("one") == "passed"
    assert checkout.verdict("two") == "not run: KUBEBUILDER_ASSETS has no git that runs"


def test_that_no_variable_names_a_folder_of_programs_is_said_once(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, part("one", "echo figure 1", needs='["asset:etcd", "asset:git"]'))
    assert checkout.verify(KUBEBUILDER_ASSETS="").returncode == 0
    assert checkout.verdict("one") == "not run: KUBEBUILDER_ASSETS isn't set"


def test_a_program_that_is_there_and_does_not_run_is_lacking(tmp_path: Path) -> None:
    shim = tmp_path / "shims" / "python9.9"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    folder = tmp_path / "checkout"
    folder.mkdir()
    checkout = Checkout(folder, part("one", "echo figure 1", needs='["program:python9.9"]'))
    checkout.verify(PATH=f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    assert checkout.verdict("one") == "not run: there is no python9.9"


def test_a_part_whose_needs_are_there_is_run(tmp_path: Path) -> None:
    needs = '["program:git", "variable:SOMETHING"]'
    checkout = Checkout(tmp_path, part("one", "echo figure $SOMETHING", needs=needs))
    assert checkout.verify(SOMETHING="good").returncode == 0
    assert checkout.rows["one"][2] == "good"


def test_what_passed_is_not_run_again_on_the_same_commit_and_what_failed_is(tmp_path: Path) -> None:
    fails = "echo bad >> runs; exit 1"
    checkout = Checkout(tmp_path, part("good", NOTED.format("good")) + part("bad", fails))
    checkout.verify()
    checkout.verify()
    assert checkout.runs == ["good", "bad", "bad"]
    assert checkout.verdict("good") == "passed"
    checkout.commit()
    checkout.verify("good")
    assert checkout.runs == ["good", "bad", "bad", "good"]
    assert checkout.verdict("bad") == "not run: not begun"


def test_an_interrupted_run_ends_what_it_started_and_goes_on_later(tmp_path: Path) -> None:
    # The second part waits for a file that isn't there until the second run.
    waits = "echo two >> runs; while ! [ -e build/go ]; do sleep 0.05; done; echo over >> runs; echo figure 2"
    checkout = Checkout(tmp_path, part("one", NOTED.format("one")) + part("two", waits))
    with running(checkout.command()) as process:
        eventually(lambda: checkout.runs == ["one", "two"])
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) != 0
    assert checkout.verdict("one") == "passed"
    assert checkout.verdict("two") == "not run: not begun"
    (tmp_path / "build" / "go").touch()
    assert checkout.verify().returncode == 0
    assert checkout.runs == ["one", "two", "two", "over"], (
        "the first run's command went on, or a part ran twice"
    )


def test_runs_of_other_parts_beside_each_other_make_one_report(tmp_path: Path) -> None:
    waits = "echo one >> runs; while ! [ -e build/go ]; do sleep 0.05; done; echo figure 1"
    checkout = Checkout(tmp_path, part("one", waits) + part("two", "echo figure 2") + part("three", "false"))
    with running(checkout.command("one")) as process:
        eventually(lambda: checkout.runs == ["one"])
        assert checkout.verify("two", "three").returncode == 1
        (tmp_path / "build" / "go").touch()
        assert process.wait(PATIENCE) == 1, "a part has failed, though in the other run"
    assert [checkout.verdict(each) for each in ("one", "two")] == ["passed", "passed"]
    assert checkout.verdict("three") == "FAILED: exit code 1"


def test_a_part_that_does_not_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, part("one", "sleep 1000 & echo figure 1; wait", minutes="0.002"))
    assert checkout.verify().returncode == 1
    assert checkout.verdict("one") == "FAILED: not at its end after 0.002 minutes"


def test_less_than_the_table_says_is_told_and_not_enough_for_the_whole(tmp_path: Path) -> None:
    table = part("one", "echo {amount} >> runs; echo figure {amount}", amount="3_600", unit='"s"')
    checkout = Checkout(tmp_path, table)
    checkout.verify("--at-most", "one=300")
    assert checkout.rows["one"] == ["something", "300 of 3,600 s", "300", "0 s", "passed, with less"]
    checkout.verify("--at-most", "one=200")  # more than that has been shown
    checkout.verify("--at-most", "one=5000")  # never more than the table says
    assert checkout.runs == ["300", "3600"]
    assert checkout.rows["one"] == ["something", "3,600 s", "3600", "0 s", "passed"]


def test_a_part_that_failed_with_less_says_so_too(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, part("one", "echo {amount}; false", amount="3_600", unit='"s"'))
    assert checkout.verify("--at-most", "one=300").returncode == 1
    assert checkout.rows["one"][1] == "300 of 3,600 s"


def test_outcomes_of_several_machines_make_one_report(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    folders[0].mkdir()
    table = part("one", "echo figure 1") + part("two", "echo figure 2") + part("three", "false")
    first = Checkout(folders[0], table)
    first.git("clone", "-q", ".", str(folders[1]))
    second = Checkout.__new__(Checkout)
    second.folder, second.page = folders[1], folders[1] / "docs" / "verification.md"
    assert first.verify("one").returncode == 0
    assert second.verify("two", "three").returncode == 1
    shutil.copytree(folders[1] / "build", folders[0] / "build", dirs_exist_ok=True)
    assert first.verify("--report-only").returncode == 1, "a part has failed"
    assert [first.verdict(each) for each in ("one", "two")] == ["passed", "passed"]
    assert first.verdict("three") == "FAILED: exit code 1"


def test_uncommitted_changes_are_refused_but_for_those_of_the_report(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, part("one", NOTED.format("one")))
    assert checkout.verify().returncode == 0
    assert checkout.verify().returncode == 0, "the report has changed, and nothing else"
    checkout.table.write_text(part("one", NOTED.format("other")))
    done = checkout.verify()
    assert done.returncode == 1
    assert done.stderr == "verify: a report is about a commit: commit first\nM .ci/verify.toml\n"
    assert checkout.runs == ["one"]


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        ('[one]\nwhat = "a"\n', [], "verify.toml: one: it has no command, figure, minutes"),
        (part("one", "true", hours="2"), [], "verify.toml: one: there is no field hours"),
        (part("one", "true {amount}"), [], "an amount and {amount} in the command belong together"),
        (
            part("one", "true", needs='["helm"]'),
            [],
            "needs are program:, asset: or variable:NAME, not ['helm']",
        ),
        (part("one", "true", figure='"none"'), [], "one: figure must have one group, which is shown"),
        (part("one", "true"), ["two"], "there is no part two; there are one"),
        (part("one", "true"), ["--at-most", "one"], "'one' is not NAME=N with a positive whole number"),
    ],
)
def test_a_mistake_is_told_in_a_line(tmp_path: Path, table: str, arguments: list[str], message: str) -> None:
    done = Checkout(tmp_path, table).verify(*arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_repositorys_table_is_read_and_its_page_has_all_parts_or_none() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--list"], check=True, capture_output=True, text=True)
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(names) > 25
    page = (REPOSITORY / "docs" / "verification.md").read_text()
    report = page.split("<!-- verified -->\n")[1].split("<!-- end of verified -->")[0]
    reported = re.findall(r"^\| ([\w.-]+) \|", report, re.MULTILINE)[2:]
    assert reported in ([], names)


def test_targets_that_parts_make_are_there() -> None:
    targets = set(re.findall(r"^(\w+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    table = (REPOSITORY / ".ci" / "verify.toml").read_text()
    made = set(re.findall(r"\bmake (?:-C \S+ |\w+=\S+ )*([a-z]+)", table.split("\n\n", 1)[1]))
    assert len(made) > 8
    assert made <= targets


def test_files_that_parts_name_are_there() -> None:
    table = (REPOSITORY / ".ci" / "verify.toml").read_text(encoding="utf-8")
    commands = " ".join(re.findall(r"^command = (.+)$", table, re.MULTILINE))
    paths = set(re.findall(r"(?<=\s)(?:tests|plugins|deploy)/[\w/*.-]+", commands))
    assert len(paths) > 5
    assert [path for path in sorted(paths) if not any(REPOSITORY.glob(path))] == []


def test_parts_name_no_tests_of_distributions_that_the_environment_lacks() -> None:
    (parts,) = re.findall(r"^PARTS := (.+)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    table = (REPOSITORY / ".ci" / "verify.toml").read_text(encoding="utf-8")
    commands = " ".join(re.findall(r"^command = (.+)$", table, re.MULTILINE))
    named = re.findall(r"(?<=\s)(plugins/[\w*.-]+)/", commands)
    found = {str(each.relative_to(REPOSITORY)) for pattern in named for each in REPOSITORY.glob(pattern)}
    assert len(found) > 3
    assert found <= set(parts.split())


def test_modes_that_parts_check_recordings_in_are_there() -> None:
    asked = re.findall(r"--mode (\S+)", (REPOSITORY / ".ci" / "verify.toml").read_text(encoding="utf-8"))
    assert len(asked) > 4
    assert set(asked) <= {"all", *(mode.value for mode in Mode)}
