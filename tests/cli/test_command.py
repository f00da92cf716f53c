"""The command as a process: started, piped, interrupted, installed without its extra."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from kschedfw_apiserver.processes import interruptible, running

from kschedfw.api import how_to_install
from kschedfw.api.manifests import _Loader
from kschedfw.cli import app, main
from kschedfw.scheduler import Scheduler

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "kschedfw"]

MANY_PODS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: 20000
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 1m}}}]}
"""


def test_python_dash_m(cluster_dir: Path) -> None:
    done = subprocess.run([*COMMAND, "simulate", cluster_dir], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 pods tried on 2 nodes" in done.stdout
    assert "\x1b" not in done.stdout


def test_import_needs_no_extra() -> None:
    code = "import sys, kschedfw.cli; assert not {'click', 'rich'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


class TestMain:
    """The same within this process."""

    def test_exits_with_the_code(self, cluster_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for args, code in ((["simulate", str(cluster_dir)], 0), (["nonsense"], 2)):
            with pytest.raises(SystemExit) as end:
                main(args)
            assert end.value.code == code

    def test_needs_the_extra(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "click", None)
        with pytest.raises(SystemExit) as end:
            main([])
        assert end.value.code == 1
        assert how_to_install("kschedfw", "cli") in capsys.readouterr().err

    def test_interrupted_while_starting(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupt(args: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(app, "run", interrupt)
        with pytest.raises(SystemExit) as end:
            main([])
        assert end.value.code == 130
        assert capsys.readouterr() == ("", "kschedfw: interrupted\n")

    @pytest.mark.parametrize("command", ["simulate --json", "explain", "compare --profile default"])
    def test_interrupted_while_reading_is_told(
        self,
        command: str,
        cluster_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        def interrupt(self: object, source: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(_Loader, "load", interrupt)
        more = {"explain": ["fits"], "compare --profile default": ["--profile", "DefaultProvider"]}
        with pytest.raises(SystemExit) as end:
            main([*command.split(), str(cluster_dir), *more.get(command, [])])
        assert end.value.code == 130
        assert capsys.readouterr() == ("", "kschedfw: interrupted\n")

    def test_interrupted_while_explaining_is_told(
        self, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupt(self: Scheduler) -> bool:
            raise KeyboardInterrupt

        monkeypatch.setattr(Scheduler, "begin_attempt", interrupt)
        with pytest.raises(SystemExit) as end:
            main(["explain", str(cluster_dir), "fits"])
        assert end.value.code == 130
        assert capsys.readouterr() == ("", "kschedfw: interrupted\n")


@pytest.mark.parametrize("module", ["kschedfw.cli", "click", "kschedfw.cli.app", "rich.console", "numpy"])
def test_interrupted_while_importing(module: str) -> None:
    """Ctrl-C arrives while this is imported; numpy is when the subcommand is."""
    code = f"""
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from kschedfw_command import main
main()
"""
    command = [sys.executable, "-c", code, "simulate", "missing.yaml"]
    with interruptible():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "kschedfw: interrupted\n")


def test_the_script_starts_where_imports_are_guarded() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"kschedfw": "kschedfw_command:main"}


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_running_it_without_the_extra(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from kschedfw.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"kschedfw: the command needs the cli extra: {how_to_install('kschedfw', 'cli')}\n"
    assert done.stdout == ""


def test_a_reader_that_leaves_early(cluster_dir: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [*COMMAND, "simulate", cluster_dir], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(
    ("args", "code"), [("--version", 0), ("config show", 0), ("config show none.yaml", 2)]
)
def test_closed_streams_change_no_exit_code(closed: str, args: str, code: int) -> None:
    command = f"{' '.join(COMMAND)} {args} {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "kschedfw: " not in done.stdout


def test_characters_that_the_encoding_of_stdout_lacks_are_written_as_escapes() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, "config", "show"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "\\xd7" in done.stdout


def read_all(terminal: int) -> None:
    with suppress(OSError):  # what Linux says at the end
        while os.read(terminal, 4096):
            pass


def test_ctrl_c_shows_what_was_done_so_far(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(MANY_PODS)
    (tmp_path / "node.yaml").write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 64, pods: 30000}}}"
    )
    terminal, its_end = pty.openpty()
    command = [*COMMAND, "simulate", str(tmp_path)]
    with running(command, stderr=its_end, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(its_end)
        shown = b""
        while b"/20000" not in shown:  # the progress bar, which is drawn on a terminal only
            shown += os.read(terminal, 4096)
        # A terminal that nobody reads any more would hold the process up sooner or later.
        reader = threading.Thread(target=read_all, args=(terminal,))
        reader.start()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    reader.join()
    os.close(terminal)
    assert process.returncode == 130
    assert out.startswith("Interrupted. This is what was done so far.")
    assert "not tried" in out
    assert "Traceback" not in out
