"""What the page on extenders shows can be done as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import trustme
from kschedfw_apiserver.forked import running_forked

from kschedfw.config import load_configuration

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "extenders.md").read_text(encoding="utf-8")
COMMANDS = [
    command.replace("\\\n", " ")
    for block in re.findall(r"^ *```sh\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    for command in re.findall(r"^ *(kschedfw serve-extender (?:.*\\\n)*.*)", block, re.MULTILINE)
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """With the files that the commands name."""
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    (tmp_path / "scheduler.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: packing}, {schedulerName: plain}]\n"
    )
    return tmp_path


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, directory: Path) -> None:
    arguments = [*shlex.split(command)[1:], "--port", "0"]
    with running_forked("-m", "kschedfw", *arguments, cwd=directory) as process:
        assert process.stderr is not None
        said = ""
        while "extender at http" not in said and (line := process.stderr.readline()):
            said += line  # notes about the manifests come first
        process.terminate()
        rest = process.stderr.read()
        process.wait()
    assert "extender at http" in said, said + rest
    assert (process.returncode, rest) == (0, "")


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_configurations_are_complete(block: str, tmp_path: Path) -> None:
    file = tmp_path / "kube-scheduler.yaml"
    file.write_text(block)
    assert load_configuration(file).extenders
    assert "kubeconfig:" in block
