"""Plugins of other distributions, installed with pip, are found by name; a broken one harms only who enables it.

The distributions' own tests, and what their READMEs show, are run by `make test` with all of them installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
COSTAWARE = REPOSITORY / "plugins" / "kschedfw-costaware"

BROKEN_DISTRIBUTION = {
    "kschedfw_broken.py": "import a_library_that_is_not_installed\n",
    "kschedfw_broken-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: kschedfw-broken\nVersion: 1.0\n",
    "kschedfw_broken-1.0.dist-info/WHEEL": (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ),
    "kschedfw_broken-1.0.dist-info/entry_points.txt": "[kschedfw]\nBroken = kschedfw_broken:Broken\n",
}

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: 1, memory: 1Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec: {containers: [{name: main, image: app}]}
"""


def pip_install(what: Path, target: Path, *options: str) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps"]
    run([*pip, *options, "--target", str(target), str(what)], cwd=target)


def run(command: list[str], cwd: Path, env: Mapping[str, str] | None = None) -> str:
    result = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which the plugin from this repository and a broken one are installed."""
    target = tmp_path_factory.mktemp("site")
    pip_install(COSTAWARE, target, "--no-build-isolation")
    wheel = tmp_path_factory.mktemp("wheel") / "kschedfw_broken-1.0-py3-none-any.whl"
    record = "kschedfw_broken-1.0.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in BROKEN_DISTRIBUTION.items():
            archive.writestr(name, content)
        archive.writestr(record, "".join(f"{name},,\n" for name in (*BROKEN_DISTRIBUTION, record)))
    pip_install(wheel, target)
    return target


def ask(site: Path, code: str) -> Any:
    """What the code leaves in `answer`, run in a process of its own that sees the installed distributions."""
    script = f"import json\nfrom kschedfw import *\n{code}\nprint(json.dumps(answer))\n"
    return json.loads(run([sys.executable, "-c", script], cwd=site, env={"PYTHONPATH": str(site)}))


def test_all_are_listed_and_none_is_imported(site: Path) -> None:
    listed, imported = ask(
        site,
        "import sys\n"
        "names = Registry().names()\n"
        "answer = [names, sorted(m for m in sys.modules if m.startswith(('kschedfw_', 'kschedfw.plugins.')))]",
    )
    assert {"CostAware", "Broken", "NodeResourcesFit"} <= set(listed)
    assert imported == []


def test_an_installed_plugin_is_enabled_by_its_name(site: Path) -> None:
    code = """
from random import Random
from kschedfw import make_node, make_pod

registry = Registry()
prices = [{"value": "cheap", "hourlyPrice": "0.10"}, {"value": "dear", "hourlyPrice": "0.30"}]
base = default_profile({"CostAware": {"priceLabel": "price", "prices": prices}})
profile = Profile([*base.multi_point, EnabledPlugin("CostAware", weight=100)], args=base.args)
snapshot, cache = Snapshot(), Cache()
framework = Framework(registry, profile, Parts(InMemoryCluster(), snapshot=snapshot))
for name in ("dear", "cheap"):
    cache.add_node(make_node(name).labels(price=name).capacity(cpu=4, memory="8Gi").build())
pod = make_pod().requests(cpu="1").build()
result = GenericScheduler(cache, snapshot, random=Random(0)).schedule(framework, CycleState(), pod)
framework.close()
answer = [registry.distribution("CostAware"), result.suggested_host, registry.load("CostAware").__module__]
"""
    assert ask(site, code) == ["kschedfw-costaware 0.1.0", "cheap", "kschedfw_costaware.plugin"]


def test_a_broken_plugin_is_one_clear_error_once_it_is_enabled(site: Path) -> None:
    code = """
try:
    Framework(Registry(), Profile(["Broken"]), Parts(InMemoryCluster()))
except KschedfwError as error:
    answer = [type(error).__name__, str(error), type(error.__cause__).__name__]
"""
    kind, text, cause = ask(site, code)
    assert (kind, cause) == ("PluginLoadError", "ModuleNotFoundError")
    assert text == (
        "plugin 'Broken' (from distribution kschedfw-broken 1.0): loading kschedfw_broken:Broken failed: "
        "ModuleNotFoundError: No module named 'a_library_that_is_not_installed' (kschedfw_broken.py, line 1)"
    )


def test_the_command_is_not_disturbed_by_a_broken_plugin(site: Path) -> None:
    cluster = site / "cluster.yaml"
    cluster.write_text(CLUSTER, encoding="utf-8")
    output = run(
        [sys.executable, "-m", "kschedfw", "simulate", str(cluster), "--json"],
        cwd=site,
        env={"PYTHONPATH": str(site)},
    )
    assert json.loads(output)["pods"]["placed"] == 1
