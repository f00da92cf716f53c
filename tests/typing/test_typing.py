"""Plugin authors and embedders get their types from the installed package: their code passes `mypy --strict`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kschedfw import InMemoryCluster, make_node, make_pod
from tests.typing.embedder import Loop, run_files
from tests.typing.plugin_author import Rack, reserved

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
FILES = ("plugin_author.py", "embedder.py", "mistakes.py", "hook_mistakes.py")


def mypy(where: Path) -> subprocess.CompletedProcess[str]:
    """Run in a directory outside the repository, so that kschedfw is found as an installed package."""
    (where / "mypy.ini").write_text("[mypy]\nplugins = kschedfw.mypy\n")
    command = [sys.executable, "-m", "mypy", "--strict"]
    command += [
        "--namespace-packages",
        "--explicit-package-bases",
        *(f"tests/typing/{name}" for name in FILES),
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=where)


def test_realistic_code_has_no_type_errors_and_mistakes_have(tmp_path: Path) -> None:
    package = tmp_path / "tests" / "typing"
    package.mkdir(parents=True)
    for name in FILES:
        (package / name).write_text((HERE / name).read_text(encoding="utf-8"), encoding="utf-8")
    done = mypy(tmp_path)
    assert done.stdout == f"Success: no issues found in {len(FILES)} source files\n", (
        done.stdout + done.stderr
    )

    # … and the marks in the files of mistakes are not what keeps it quiet about everything
    lines = {
        name: (package / name).read_text(encoding="utf-8").splitlines()
        for name in FILES
        if "mistakes" in name
    }
    for name, its_lines in lines.items():
        (package / name).write_text(
            "\n".join(its_lines).replace("# type: ignore", "# mistake:"), encoding="utf-8"
        )
    found = mypy(tmp_path).stdout
    for name, its_lines in lines.items():
        for number, line in enumerate(its_lines, start=1):
            if "# type: ignore" in line:
                assert f"/{name}:{number}: error: " in found
            if "type: ignore[kschedfw" in line:
                text = its_lines[number - 2].strip().removeprefix("# ")
                assert f"/hook_mistakes.py:{number}: error: {text}  [kschedfw]\n" in found
    assert found.count("[kschedfw]") == sum("[kschedfw" in line for line in lines["hook_mistakes.py"])
    assert "plugin_author.py" not in found
    assert "embedder.py" not in found


class TestItAlsoRuns:
    NODES = tuple(
        make_node(f"{rack}{index}").labels(rack=rack).capacity(cpu=8, memory="8Gi").build()
        for rack in "ab"
        for index in range(2)
    )

    def test_pods_are_placed_by_the_plugin(self) -> None:
        pods = [make_pod(f"p{index}").labels(racks="a").requests(cpu="1").build() for index in range(5)]
        loop = Loop(InMemoryCluster([*self.NODES, *pods]))
        placed = loop.run()
        assert [node and node[0] for node in placed.values()] == ["a", "a", "a", None, None]
        assert [event.message for event in loop.cluster.events] == [
            "0/4 nodes are available: 2 node(s) didn't satisfy plugin(s) [Rack], 2 node(s) were in a full rack."
        ] * 2
        rack = loop.framework.plugins["Rack"]
        assert isinstance(rack, Rack)
        assert len(reserved(rack)) == 3
        loop.framework.close()

    def test_pods_come_from_files_too(self, tmp_path: Path) -> None:
        (tmp_path / "all.yaml").write_text(
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1, pods: 5}}\n---\n"
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n",
            encoding="utf-8",
        )
        assert run_files(tmp_path / "all.yaml") == {"default/p": "n"}
