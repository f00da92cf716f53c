"""What holds for any input: no traceback, no exit code of a bug, nothing that a terminal obeys, no end of output.

Input is read, simulated and shown in this process, as the commands do it, but with plugins that are looked up once:
that makes for twenty times as many trials. One in `COMMANDS` goes through a command, too.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

from kschedfw import ConfigurationError, Registry
from kschedfw.api.errors import KschedfwError
from kschedfw.api.manifests import Manifests, parse_manifests
from kschedfw.cli.app import run
from kschedfw.cli.construction import refused_profile
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import SchedulerConfiguration, default_profile, parse_configuration
from kschedfw.config.effective import effective
from kschedfw.scheduler.setup import profiles_of
from kschedfw.simulator import Simulation
from kschedfw.simulator.failures import Failures
from tests.hostile import mutations

MOST_OUTPUT = 300_000
"""Characters of what a command says of bad input. What is shown of good input is as long as that."""
COMMANDS = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@cache
def registry() -> Registry:
    """The installed plugins."""
    return Registry()


# One input


def read_cluster(text: str) -> Manifests:
    """The cluster in a text; what is wrong with it can be shown."""
    loaded = parse_manifests(text, "cluster")
    for problem in loaded.problems:
        check_shown(str(problem))
    try:
        list(loaded.objects())
    except KschedfwError as error:
        check_shown(str(error))
        assert loaded.problems
    else:
        assert not loaded.problems
    return loaded


def simulate(loaded: Manifests) -> None:
    """Schedule what could be read, with plugins that don't fail."""
    with Failures() as failures:
        report = Simulation(
            InMemoryCluster(loaded.objects(skip_invalid=True)),
            profiles=[default_profile()],
            registry=registry(),
            parallelism=1,
        ).run()
    assert not failures.count, "\n".join(failures.lines())
    check_data(report.to_json())


def read_configuration(text: str) -> SchedulerConfiguration | None:
    """The configuration in a text, or None; what is wrong with it can be shown, and so can the rest."""
    try:
        configuration = parse_configuration(text, registry=registry())
    except ConfigurationError as error:
        check_shown(str(error))
        return None
    check_data(effective(configuration))
    for profile in profiles_of(configuration):
        for refused in refused_profile(profile, registry(), "profile"):
            check_shown(str(refused))
    return configuration


def check_shown(text: str) -> None:
    """It fits on some screens, and is no more than text."""
    check_printable(text)
    assert len(text) <= MOST_OUTPUT


def check_printable(text: str) -> None:
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)[:2000]


def check_data(data: object) -> None:
    """It can be printed as JSON, with nothing in it that a terminal obeys."""
    text = json.dumps(data, ensure_ascii=False)
    assert not _CONTROL.search(text), ascii(text)[:2000]


def command(arguments: Sequence[str]) -> int:
    """The exit code of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    check_shown(err.getvalue())
    if "--json" not in arguments:
        check_printable(out.getvalue())
    elif out.getvalue():
        check_data(json.loads(out.getvalue()))
    assert code in (0, 1, 2), f"exit code {code}: {err.getvalue()}"
    assert "Traceback" not in err.getvalue()
    return code


# One seed


def try_seed(seed: int, directory: Path) -> Counter[str]:
    """One input that the seed stands for: a cluster, and for one in three a configuration; what was tried."""
    random = Random(seed)
    through_command = seed % COMMANDS == 0
    file = directory / random.choice(("input.yaml", "input.json"))
    if seed % 3:
        text = mutations.cluster(random)
        simulate(read_cluster(text))
        arguments = [*random.choice(CLUSTER_COMMANDS), *random.choice(((), ("--skip-invalid",)))]
    else:
        text = mutations.configuration(random)
        read_configuration(text)
        arguments = list(random.choice(CONFIGURATION_COMMANDS))
    if through_command:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        command([argument.replace("FILE", str(file)) for argument in arguments])
    return Counter(
        clusters=int(seed % 3 > 0), configurations=int(seed % 3 == 0), commands=int(through_command)
    )


NOWHERE = "192.0.2.1"
"""An address that no machine has: servers read their input, can't listen, and end."""
CLUSTER_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("simulate", "FILE", "--no-progress"),
    ("simulate", "FILE", "--no-progress", "--json"),
    ("simulate", "FILE", "--no-progress", "--arrivals"),
    ("explain", "FILE", "shop/web"),
    ("compare", "FILE", "--no-progress", "--profile", "default", "--profile", "ClusterAutoscalerProvider"),
    ("pending", "FILE", "--no-progress"),
    ("fit", "FILE", "--cpu", "1", "--at-most", "9", "--no-progress"),
    ("drain", "FILE", "one", "--no-progress"),
    ("scale-down", "FILE", "--no-progress"),
    ("scale-up", "FILE", "--node-group", "FILE", "--no-progress"),
    ("explore", "FILE", "--host", NOWHERE, "--no-progress"),
    ("serve-extender", "--plugin", "NodeResourcesFit", "--cluster", "FILE", "--host", NOWHERE),
    ("dump", "-", "--kubeconfig", "FILE", "--no-progress"),
    ("record", "--kubeconfig", "FILE", "--out", "FILE.recording", "--for", "1s", "--no-progress"),
    ("shadow", "--kubeconfig", "FILE", "--for", "1s"),
    ("replay", "FILE", "--no-progress"),
    ("sweep", "FILE", "--dry-run", "--no-progress"),
    ("tune", "FILE", "--no-progress"),
    ("report", "FILE"),
    ("plugins", "FILE"),
    ("what-if", "FILE", "--changes", "FILE", "--no-progress"),
)
CONFIGURATION_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("config", "check", "FILE"),
    ("config", "check", "FILE", "--json"),
    ("config", "show", "FILE"),
    ("config", "show", "FILE", "--json"),
    ("config", "diff", "FILE", "FILE"),
    ("serve-extender", "--config", "FILE", "--host", NOWHERE),
    ("run", "--config", "FILE", "--write-config-to", "-"),
    ("bench", "--profile", "FILE", "--workload", "none"),
)
SUITE_COMMANDS: tuple[tuple[str, ...], ...] = (("test", "FILE"), ("test", "FILE", "--json"))


# Long runs


def watch(seconds: float) -> None:
    """End the process after this time, with a traceback: even where it hangs outside of Python's own code."""
    if sys.stderr is sys.__stderr__:
        faulthandler.dump_traceback_later(seconds, exit=True)


def show_threads() -> None:
    """Say on stderr where every thread is."""
    if sys.stderr is sys.__stderr__:
        faulthandler.dump_traceback(all_threads=True)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
