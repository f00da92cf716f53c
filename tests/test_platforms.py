"""kschedfw is imported, and works in other processes, on systems that lack what only POSIX has."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from kschedfw_replay import RecordingWriter, State

from kschedfw import InMemoryCluster, Pod, Profile, Scheduler, default_profile, make_node, make_pod

pytestmark = pytest.mark.slow

# What other packages do at import is decided by the platform that they see, and that is this one. So everything is
# imported once as usual; then kschedfw's own modules again, without what Windows lacks.
IMPORT_EVERYTHING = """
import importlib, os, pkgutil, signal, sys

PACKAGES = [
    "kschedfw", "kschedfw_kubernetes", "kschedfw_advisor", "kschedfw_lab", "kschedfw_legacy", "kschedfw_mcp",
    "kschedfw_replay",
]
OURS = ("kschedfw", "pytest_kschedfw")


def import_everything():
    found = ["kschedfw_command", "pytest_kschedfw"]
    for name in PACKAGES:
        package = importlib.import_module(name)
        found += [name, *(each.name for each in pkgutil.walk_packages(package.__path__, f"{name}."))]
    # A template is no code of ours, and a module named __main__ is a command.
    found = [each for each in found if "template" not in each and not each.endswith("__main__")]
    for each in found:
        importlib.import_module(each)
    return len(found)


import_everything()
for name in [each for each in sys.modules if each.startswith(OURS)]:
    del sys.modules[name]
for name in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
for name in ("fork", "getpgid", "getuid", "killpg", "register_at_fork", "setsid", "uname"):
    delattr(os, name)
for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
    delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "alarm", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
print(import_everything(), "modules")
"""

READ_AND_WRITE = """
from kschedfw_kubernetes.cluster.kubeconfig import small_file
from kschedfw_replay import RecordingError, RecordingWriter, open_recording

directory, token, kubeconfig = sys.argv[1:]
print(small_file(token))
print(len(list(open_recording(directory))), "records")
try:
    RecordingWriter(directory)
except RecordingError as error:
    print(error)
"""


REFUSED = """
from pathlib import Path
from kschedfw import KschedfwError, SystemClock
from kschedfw.cli.app import run
from kschedfw_kubernetes.cluster.credentials import Credentials
from kschedfw_kubernetes.cluster.kubeconfig import load_connection

sys.stderr = sys.stdout
print(run(["run", "--kubeconfig", kubeconfig, "--secure-port=0"]))
try:
    Credentials(load_connection(kubeconfig), SystemClock()).identity()
except KschedfwError as error:
    print(error)
"""

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
users:
- name: it
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: never-run, interactiveMode: Never}}
"""


def test_where_what_only_posix_has_is_missing_all_is_imported_and_files_read_and_the_rest_refused_clearly(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_bytes(b"secret")
    recorded = tmp_path / "recording"
    with RecordingWriter(recorded) as writer:
        writer.write(State(1.0, ()))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG, encoding="utf-8")
    command = [sys.executable, "-c", IMPORT_EVERYTHING + READ_AND_WRITE + REFUSED]
    done = subprocess.run(
        [*command, recorded, token, kubeconfig], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    imported, *lines = done.stdout.splitlines()
    assert int(imported.removesuffix(" modules")) > 300
    assert lines == [
        "b'secret'",
        "1 records",
        f"{recorded}: can't be locked on this system; record on Linux or macOS",
        (
            "kschedfw: leaderElection: leaders need Linux or macOS, where an alarm ends a process that lost its lease; "
            "here set leaderElect to false, or give --leader-elect=false"
        ),
        "2",
        (
            f"{kubeconfig}, context it: exec plugin never-run: commands that give credentials need Linux or macOS; "
            "here give a token or a client certificate"
        ),
    ]


def node_of_a_pod(cpu: int) -> str:
    cluster = InMemoryCluster(
        [
            make_node("small").capacity(cpu=1, memory="1Gi").build(),
            make_node("large").capacity(cpu=9, memory="1Gi").build(),
            make_pod("web").requests(cpu=cpu).build(),
        ]
    )
    Scheduler(cluster, [Profile(default_profile().multi_point)]).run_until_idle()
    pod = cluster.get(Pod, "default/web")
    assert pod is not None
    return pod.node_name


def test_a_process_that_is_spawned_schedules_as_this_one_does() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as spawned:
        assert (
            list(spawned.map(node_of_a_pod, [5, 20]))
            == [node_of_a_pod(5), node_of_a_pod(20)]
            == ["large", ""]
        )


def test_the_module_is_the_command_in_any_directory(tmp_path: Path) -> None:
    manifests = tmp_path / "cluster.yaml"
    manifests.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {pods: 5}}}\n---\n"
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c}]}}\n"
    )
    arguments = ["simulate", manifests.name, "--no-progress", "--json"]
    by_module = subprocess.run(
        [sys.executable, "-m", "kschedfw", *arguments],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert by_module.returncode == 0, by_module.stderr
    assert json.loads(by_module.stdout)
