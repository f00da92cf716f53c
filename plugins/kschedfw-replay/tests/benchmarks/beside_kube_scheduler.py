"""Record, shadow and replay the stock kube-scheduler, in its folder of tests:
`PYTHONPATH=.:../../.. python -m benchmarks.beside_kube_scheduler FOLDER [MINUTES [PODS_PER_SECOND]]`.

`KUBEBUILDER_ASSETS` names a folder with etcd, kube-apiserver, kube-scheduler and kube-controller-manager. They run with
a load in which pods preempt one another, nodes are drained, and claims come and go (`churn.py`). Beside them run
`kschedfw record`, which is killed (SIGKILL) and started again in the middle, and `kschedfw shadow`. FOLDER gets
`recording`, `shadow.jsonl`, `audit.log` and the logs. Every minute a line tells of the load and of the memory of both,
which follows the number of pods that are left. Then the recording is replayed, and each of its decisions made again.

The last line tells how often the shadow and the replay decided as kube-scheduler. The program fails if that is less
than LEAST_AGREEMENT, if a plugin failed, or if the recording is damaged or without an end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs
from benchmarks.churn import Churn
from kschedfw_apiserver.control_plane import VARIABLE, ControlPlane, control_plane
from kschedfw_replay.shadow.decision import Agreement, Cause

LEAST_AGREEMENT: Final = 0.97
"""The share of decisions that are the same or tied. Races with changes of the same moment are most of the others."""
_NODES, _MEAN_LIFE = 50, 25.0
_BINARIES = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
_CONTROLLERS = (
    "disruption-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "resourceclaim-controller",
)
_AS_FAST_AS_IT_GOES = {"qps": 5000, "burst": 10000}


@attrs.frozen
class Companions:
    """Starts the programs that run beside the API server; all end when `until_end` does."""

    server: ControlPlane
    folder: Path
    until_end: ExitStack
    running: dict[str, subprocess.Popen[bytes]] = attrs.field(factory=dict)
    """The latest process of each name."""

    def start(self, name: str, *command: str, output: Path | None = None) -> subprocess.Popen[bytes]:
        log = self.until_end.enter_context((self.folder / f"{name}.log").open("ab"))
        out = self.until_end.enter_context(output.open("ab")) if output else log
        process = subprocess.Popen(command, stdout=out, stderr=log, stdin=subprocess.DEVNULL)
        self.until_end.callback(_end, process)
        self.running[name] = process
        return process

    def check_running(self) -> None:
        """End the program if one of the companions has ended, since nothing is shown without it."""
        for name, process in self.running.items():
            if (code := process.poll()) is not None:
                sys.exit(f"{name} ended with {code}: {self.folder / name}.log says why")

    def kube_scheduler(self) -> None:
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(self.server.kubeconfig(self.folder / "scheduler.kubeconfig")),
                **_AS_FAST_AS_IT_GOES,
            },
        }
        file = self.folder / "scheduler.yaml"
        file.write_text(json.dumps(content))
        self.start("kube-scheduler", _binary("kube-scheduler"), f"--config={file}", "--secure-port=0")

    def controllers(self) -> None:
        kubeconfig = self.server.kubeconfig(self.folder / "controllers.kubeconfig")
        self.start(
            "kube-controller-manager",
            _binary("kube-controller-manager"),
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(_CONTROLLERS)}",
            "--leader-elect=false",
            "--secure-port=0",
            *(f"--kube-api-{name}={value}" for name, value in _AS_FAST_AS_IT_GOES.items()),
        )

    def recorder(self) -> subprocess.Popen[bytes]:
        kubeconfig = self.server.kubeconfig(self.folder / "recorder.kubeconfig")
        out = self.folder / "recording"
        return self.start(
            "record", *_kschedfw("record"), f"--kubeconfig={kubeconfig}", f"--out={out}", "--json"
        )

    def shadow(self) -> subprocess.Popen[bytes]:
        kubeconfig = self.server.kubeconfig(self.folder / "shadow.kubeconfig")
        command = (*_kschedfw("shadow"), f"--kubeconfig={kubeconfig}", "--json")
        return self.start("shadow", *command, output=self.folder / "shadow.jsonl")


def main(folder: Path, minutes: int, rate: float) -> None:
    # Kubeconfigs name certificates in it, and a relative path is one from where the kubeconfig is.
    folder = folder.resolve()
    folder.mkdir(parents=True)
    policy = folder / "audit-policy.yaml"
    policy.write_bytes(
        subprocess.run([*_kschedfw("record"), "--audit-policy"], check=True, capture_output=True).stdout
    )
    audit = (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-maxsize=10000",
    )
    with ExitStack() as until_end:
        server = until_end.enter_context(control_plane(folder, flags=audit))
        companions = Companions(server, folder, until_end)
        companions.controllers()
        load = Churn(server.client, rate=rate, nodes=_NODES, life=_MEAN_LIFE)
        load.set_up()
        companions.kube_scheduler()
        recorder, shadow = companions.recorder(), companions.shadow()
        time.sleep(10)
        with load.running():
            for minute in itertools.count(1):
                time.sleep(60)
                sizes = f"recorder {_memory(recorder)} MiB, shadow {_memory(shadow)} MiB"
                print(f"{minute} min: {load.made} pods made, {load.left} left, {sizes}", flush=True)
                companions.check_running()
                if minute == max(1, minutes // 2):
                    recorder.send_signal(signal.SIGKILL)
                    recorder.wait()
                    time.sleep(3)
                    recorder = companions.recorder()
                if minute >= minutes:
                    break
        time.sleep(3)
        for process in (recorder, shadow):
            process.terminate()
            if code := process.wait(timeout=120):
                sys.exit(f"{process.args!r} ended with {code}")
    shadowed, replayed = _shadowed(folder / "shadow.jsonl"), _replayed(folder / "recording")
    print(f"{minutes} min: {load.made} pods, {sizes}; shadow: {shadowed}; replay: {replayed}")
    if min(shadowed.share, replayed.share) < LEAST_AGREEMENT or shadowed.failed or replayed.failed:
        sys.exit(f"expected that {LEAST_AGREEMENT:.0%} agree and no plugin fails")


@attrs.frozen
class _Agreement:
    """How often kschedfw decided as kube-scheduler."""

    decisions: int
    agreeing: int
    failed: int
    unknown: int
    """Decisions that differ, and the cause isn't known."""

    @classmethod
    def of(cls, report: dict[str, Any]) -> _Agreement:
        """Read the report of a shadow, or of a replay's fidelity."""
        counts: dict[str, int] = report["counts"]
        agreeing = sum(count for name, count in counts.items() if Agreement(name).agrees)
        return cls(
            report["decisions"],
            agreeing,
            counts.get(Agreement.FAILED, 0),
            report["causes"].get(Cause.UNKNOWN, 0),
        )

    @property
    def share(self) -> float:
        return self.agreeing / self.decisions if self.decisions else 0.0

    def __str__(self) -> str:
        return f"{self.share:.2%} of {self.decisions} agree, {self.unknown} unexplained"


def _shadowed(output: Path) -> _Agreement:
    summary = json.loads(output.read_text().splitlines()[-1])
    return _Agreement.of(summary["summary"])


def _replayed(recording: Path) -> _Agreement:
    """Replay a recording. A damaged one, or one without an end, ends the program."""
    replay = [*_kschedfw("replay"), str(recording), "--fidelity", "--json", "--no-progress"]
    comparison = json.loads(subprocess.run(replay, check=True, capture_output=True).stdout)
    if comparison["unfinished"]:
        sys.exit("the recording is unfinished")
    return _Agreement.of(comparison["fidelity"])


def _memory(process: subprocess.Popen[bytes]) -> int:
    """Resident memory in MiB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS:")), 0)


def _binary(name: str) -> str:
    return str(Path(os.environ[VARIABLE]) / name)


def _kschedfw(command: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "kschedfw", command)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that isn't there yet")
    parser.add_argument("minutes", type=int, nargs="?", default=60, metavar="MINUTES")
    parser.add_argument("rate", type=float, nargs="?", default=20.0, metavar="PODS_PER_SECOND")
    given = parser.parse_args()
    if given.folder.exists():
        parser.error(f"{given.folder} is there already; give a new folder")
    if lacking := [name for name in _BINARIES if not (Path(os.environ.get(VARIABLE, "")) / name).is_file()]:
        parser.error(f"{VARIABLE} names no folder with {', '.join(lacking)}")
    return given


if __name__ == "__main__":
    arguments = _arguments()
    main(arguments.folder, arguments.minutes, arguments.rate)
