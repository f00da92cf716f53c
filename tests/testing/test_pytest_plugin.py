"""The pytest plugin: fixtures, their marker, and that it is in nobody's way.

Pytest runs in a process of its own, where kschedfw's distribution is installed, and a stranger's is. Such a process
takes a second, so tests of different things are files of one run; what a process has imported is asked in one alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

import pytest
from kschedfw_apiserver.processes import WITHOUT_HYPOTHESIS

from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]

STRANGER = {
    "kschedfw_stranger.py": """
from kschedfw import Plugin, Status, hookimpl

class Stranger(Plugin):
    name = "Stranger"

    @hookimpl
    def filter(self):
        return Status.unschedulable("node(s) were strange")
""",
    "kschedfw_stranger-1.0.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: kschedfw-stranger\nVersion: 1.0\n"
    ),
    "kschedfw_stranger-1.0.dist-info/entry_points.txt": "[kschedfw]\nStranger = kschedfw_stranger:Stranger\n",
}

RACKS = """
import attrs
from kschedfw import Plugin, Status, hookimpl, make_node

@attrs.frozen
class RackArgs:
    rack: str = "r1"

class Rack(Plugin[RackArgs]):
    name = "Rack"
    args_type = RackArgs

    @hookimpl
    def filter(self, node_info):
        if node_info.node.labels.get("rack") != self.args.rack:
            return Status.unschedulable("node(s) were in the wrong rack")

NODES = [make_node(name).labels(rack=rack).capacity(cpu=4).build() for name, rack in (("a", "r1"), ("b", "r2"))]
"""
"""A module with a policy and nodes, which tests of a project may import."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with kschedfw, as an installation shows it, and a stranger's plugin."""
    site = tmp_path_factory.mktemp("site")
    # Links, so that the bytecode is there already. What a wheel has is asked in tests/distributions.
    for name in ("kschedfw", "kschedfw_command.py", "pytest_kschedfw.py"):
        (site / name).symlink_to(REPOSITORY / name)
    installed = distribution("kschedfw")
    told = site / f"kschedfw-{installed.version}.dist-info"
    told.mkdir()
    for name in ("METADATA", "entry_points.txt"):
        (told / name).write_text(installed.read_text(name) or "", encoding="utf-8")
    for name, text in STRANGER.items():
        path = site / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return site


class Project:
    """Somebody's project, with tests."""

    def __init__(self, path: Path, site: Path) -> None:
        self.path = path
        self.site = site

    def run(
        self,
        files: Mapping[str, str],
        *options: str,
        has_hypothesis: bool = False,
        has_profiles: bool = False,
    ) -> tuple[int, str]:
        """Run the tests of modules. Without `has_hypothesis`, its plugin, which imports attrs, isn't there."""
        if not has_hypothesis:
            options = (*WITHOUT_HYPOTHESIS, *options)
        settings = "kschedfw_profiles = true\n" if has_profiles else ""
        (self.path / "pytest.ini").write_text(
            f"[pytest]\naddopts = --strict-markers --strict-config\nfilterwarnings = error\n{settings}"
        )
        (self.path / "racks.py").write_text(RACKS, encoding="utf-8")
        for name, tests in files.items():
            (self.path / f"{name}.py").write_text(tests, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
            check=False,
            cwd=self.path,
            env=os.environ | {"PYTHONPATH": str(self.site), "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path, site: Path) -> Project:
    return Project(tmp_path, site)


def test_a_project_without_need_of_it_notices_nothing(project: Project) -> None:
    tests = """
import sys

def test_nothing_of_kschedfw_is_imported_but_the_plugin(pytestconfig):
    assert pytestconfig.pluginmanager.has_plugin("kschedfw")
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert "pytest_kschedfw" in loaded
    assert not {"kschedfw", "numpy", "attrs", "yaml"} & loaded
"""
    code, output = project.run({"test_it": tests})
    assert code == 0, output


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 3
extenders: [{urlPrefix: "http://extender.invalid:80", weight: 1, prioritizeVerb: prioritize}]
profiles:
- schedulerName: spreading
- schedulerName: racks
  plugins: {multiPoint: {enabled: [{name: Rack}]}}
  pluginConfig: [{name: Rack, args: {rack: r2}}]
"""

FIXTURES = {
    # The first file that is imported, so that the others do without hypothesis, too.
    "test_all_fixtures_are_there_without_hypothesis": """
import sys
sys.modules["hypothesis"] = None

def test_them(kschedfw_clock, kschedfw_cluster, kschedfw_framework, kschedfw_registry, kschedfw_scheduler):
    assert kschedfw_framework.handle.clock is kschedfw_clock
    assert kschedfw_scheduler.cluster is kschedfw_cluster
    assert "NodeResourcesFit" in kschedfw_framework.plugins
""",
    "test_configuration_brings_all_its_profiles_and_extenders": """
import pytest
from pathlib import Path
from kschedfw import Pod, make_pod
from racks import NODES, Rack
PODS = [make_pod(name).scheduler_name(name).build() for name in ("spreading", "racks", "other")]

@pytest.mark.kschedfw(configuration="scheduler.yaml", plugins=[Rack], objects=[*NODES, *PODS])
def test_the_scheduler(kschedfw_scheduler, kschedfw_cluster):
    assert list(kschedfw_scheduler.frameworks) == ["spreading", "racks"]
    assert kschedfw_scheduler.run_until_idle() == 2
    placed = {pod.name: pod.node_name for pod in kschedfw_cluster.list(Pod)}
    assert placed["spreading"] and placed["racks"] == "b" and not placed["other"]

@pytest.mark.kschedfw(configuration=Path(__file__).with_name("scheduler.yaml"), plugins=[Rack], scheduler_name="racks")
def test_the_framework(kschedfw_framework):
    assert kschedfw_framework.profile.scheduler_name == "racks"
    assert kschedfw_framework.plugins["Rack"].args.rack == "r2"
    (extender,) = kschedfw_framework.handle.extenders
    assert extender.name == "http://extender.invalid:80"

@pytest.mark.kschedfw(configuration="scheduler.yaml", plugins=[Rack])
def test_the_framework_is_the_first_profiles(kschedfw_framework):
    assert kschedfw_framework.profile.scheduler_name == "spreading"
""",
    "test_marker_says_what_is_in_them": """
import pytest
from kschedfw import Pod, Profile, make_pod
from racks import NODES, Rack

@pytest.mark.kschedfw(plugins=[Rack], args={"Rack": {"rack": "r2"}}, objects=[*NODES, make_pod("web").build()])
def test_plugins_args_and_objects(kschedfw_scheduler, kschedfw_cluster, kschedfw_framework):
    assert [info.name for info in kschedfw_framework.handle.snapshot.node_infos] == ["a", "b"]
    kschedfw_scheduler.run_until_idle()
    assert kschedfw_cluster.get(Pod, "default/web").node_name == "b"

@pytest.mark.kschedfw(profile=Profile(["PrioritySort", "Rack"]), plugins=[Rack])
def test_a_whole_profile(kschedfw_framework):
    assert list(kschedfw_framework.plugins) == ["PrioritySort", "Rack"]

@pytest.mark.kschedfw(seed=7)
def test_the_seed(kschedfw_framework):
    from random import Random
    assert kschedfw_framework.handle.random.random() == Random(7).random()

@pytest.mark.kschedfw(objects=[
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c"}, "status": {"allocatable": {"cpu": 1, "pods": 9}}},
    make_pod("web").build(),
])
def test_objects_may_be_manifests(kschedfw_scheduler, kschedfw_cluster):
    kschedfw_scheduler.run_until_idle()
    assert kschedfw_cluster.get(Pod, "default/web").node_name == "c"

@pytest.mark.kschedfw(objects=NODES[:1])
class TestTime:
    def test_moves_by_hand(self, kschedfw_scheduler, kschedfw_cluster, kschedfw_clock):
        kschedfw_cluster.add(make_pod("large").requests(cpu=5).build())
        assert kschedfw_scheduler.run_until_idle() == 1
        kschedfw_clock.advance(301)
        assert kschedfw_scheduler.run_until_idle() == 1
""",
    "test_plugins_of_strangers_are_there_only_if_asked_for": """
import sys, pytest
from kschedfw import KschedfwError

def test_not_by_themselves(kschedfw_registry):
    assert "Stranger" not in kschedfw_registry.names()
    assert "NodeResourcesFit" in kschedfw_registry.names()
    with pytest.raises(KschedfwError):
        kschedfw_registry.load("Stranger")
    assert "kschedfw_stranger" not in sys.modules

@pytest.mark.kschedfw(plugins=["Stranger"], entry_points=True)
def test_with_entry_points(kschedfw_framework, kschedfw_registry):
    assert "Stranger" in kschedfw_framework.plugins
""",
    "test_the_cluster_is_served": """
import json
from urllib.request import urlopen
import pytest
from kschedfw import make_node

@pytest.mark.kschedfw(objects=[make_node("a").build()])
def test_it(kschedfw_api_server, kschedfw_cluster):
    with urlopen(f"{kschedfw_api_server.url}/api/v1/nodes") as answer:
        assert [node["metadata"]["name"] for node in json.load(answer)["items"]] == ["a"]
""",
}
"""Files of tests about the fixtures, by the sentence that they prove."""


@pytest.fixture(scope="module")
def told_of_fixtures(tmp_path_factory: pytest.TempPathFactory, site: Path) -> str:
    """What pytest shows of the files about the fixtures."""
    project = Project(tmp_path_factory.mktemp("fixtures"), site)
    (project.path / "scheduler.yaml").write_text(CONFIGURATION, encoding="utf-8")
    return project.run(FIXTURES, "-rA")[1]


@pytest.mark.parametrize("file", FIXTURES)
def test_the_fixtures_are_as_a_project_asks_for_them(told_of_fixtures: str, file: str) -> None:
    passed = re.findall(rf"^PASSED {file}\.py::", told_of_fixtures, re.MULTILINE)
    assert len(passed) == FIXTURES[file].count("def test_"), told_of_fixtures


WRONG = [
    ("plugin=[]", "got an unexpected keyword argument 'plugin'"),
    ("[]", "takes keywords only"),
    ("configuration='none.yaml'", "configuration none.yaml: "),
    ("configuration='test_it.py'", "configuration test_it.py: "),
    (
        "configuration='x', args={'NodeResourcesFit': {}}",
        "with a configuration there is no profile, no args",
    ),
    (
        "profile=default_profile(), args={'NodeResourcesFit': {}}",
        "a profile says its args itself: Profile([…], args={…})",
    ),
    (
        "configuration={}",
        "configuration: expected the path of a file or a SchedulerConfiguration, found dict",
    ),
    ("configuration='none.yaml'", "(a relative path starts from the test's own file)"),
    ("configuration='strange.yaml'", "Stranger"),
    ("configuration='strange.yaml'", "give the marker entry_points=True"),
    ("objects=[{}]", "objects: kind: Required value"),
    ("objects=['a']", "objects: expected an object or its manifest, a mapping; found str"),
    ("objects={'kind': 'Node'}", "kschedfw: objects: expected a list, found dict; write objects=[…]"),
    ("objects=5", "kschedfw: objects: expected a list, found int; write objects=[…]"),
    ("plugins=int", "kschedfw: plugins: expected a list, found int; write plugins=[…]"),
    ("plugins='Stranger'", "kschedfw: plugins: expected a list, found str; write plugins=[…]"),
    ("args={'NodeResourceFit': {}}", "has the name 'NodeResourceFit' (did you mean NodeResourcesFit?)"),
    ("args={'Gagn': {}}", "kschedfw: args: no plugin has the name 'Gagn'"),
    (
        "args={'Stranger': {}}",
        "args: plugin 'Stranger' is blocked in this registry; for plugins of installed",
    ),
    ("args=['Gagn']", "args: expected a mapping from names of plugins, found list"),
    ("scheduler_name='x'", "scheduler_name is for a configuration's profiles"),
]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory, site: Path) -> list[str]:
    """What pytest shows of each test with a wrong marker, in one run."""
    tests = (
        f"@pytest.mark.kschedfw({marker})\ndef test_{i}(kschedfw_scheduler): ...\n"
        for i, (marker, _) in enumerate(WRONG)
    )
    project = Project(tmp_path_factory.mktemp("wrong"), site)
    (project.path / "strange.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Stranger}]}}}]\n"
    )
    code, output = project.run(
        {"test_it": "import pytest\nfrom kschedfw.config import default_profile\n" + "".join(tests)}
    )
    assert code == 1
    assert "Traceback" not in output
    assert "During handling of the above exception" not in output
    return re.split(r"^_+ ERROR at setup of test_\d+ _+$", output, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize(("number", "text"), [(i, text) for i, (_, text) in enumerate(WRONG)])
def test_a_wrong_marker_is_one_clear_error(refusals: list[str], number: int, text: str) -> None:
    assert len(refusals) == len(WRONG)
    assert text in refusals[number]


ACCEPTED = """
from kschedfw.testing import PluginContract

class TestStranger(PluginContract):
    plugin = "Stranger"
    max_examples = 2

def test_what_is_not_there_is_no_test():
    assert TestStranger.test_bind_binds_to_the_chosen_node_or_says_why_not is None
"""

GIVEN = """
import pytest
from kschedfw_stranger import Stranger

@pytest.mark.kschedfw(plugins=[Stranger])
def test_it(kschedfw_framework):
    assert "Stranger" in kschedfw_framework.plugins
"""

REFUSED = """
import attrs
from kschedfw import Plugin, hookimpl
from kschedfw.testing import PluginContract

@attrs.frozen
class RackArgs:
    size: int = 1

    def validate(self):
        return []

class Rack(Plugin[RackArgs]):
    name = "Rack"
    args_type = RackArgs

    @hookimpl
    def filter(self): ...

    @hookimpl
    def fliter_batch(self): ...

class TestRack(PluginContract):
    plugin = Rack
"""


@pytest.fixture(scope="module")
def told_of_classes(tmp_path_factory: pytest.TempPathFactory, site: Path) -> str:
    """What pytest shows of contracts, and of a test that gives a stranger's class."""
    project = Project(tmp_path_factory.mktemp("classes"), site)
    files = {"test_accepted": ACCEPTED, "test_given": GIVEN, "test_refused": REFUSED}
    code, output = project.run(files, "-rA", has_hypothesis=True)
    assert code == 1
    return output


def test_the_contract_of_a_stranger_runs_under_it(told_of_classes: str) -> None:
    assert "\nPASSED test_accepted.py::test_what_is_not_there_is_no_test\n" in told_of_classes
    assert (
        "\nPASSED test_accepted.py::TestStranger::test_hooks_and_arguments_are_accepted\n" in told_of_classes
    )
    assert not re.search("^(FAILED|ERROR) test_accepted", told_of_classes, re.MULTILINE)


def test_a_given_class_is_there_although_its_own_distribution_is_installed(told_of_classes: str) -> None:
    assert "\nPASSED test_given.py::test_it\n" in told_of_classes


def test_a_contract_whose_plugin_is_not_accepted_says_so_once_at_length_and_else_in_a_line(
    told_of_classes: str,
) -> None:
    failures = re.split("^=+ (?:FAILURES|PASSES) =+$", told_of_classes, flags=re.MULTILINE)[1]
    first, others = failures.split("test_arguments_are_read_from_a_configuration", 1)
    assert "test_hooks_and_arguments_are_accepted" in first
    assert "no framework can be made with it" in first
    line = (
        "\nplugin 'Rack': unknown hook 'fliter_batch'; did you mean 'filter_batch'? "
        "(see test_hooks_and_arguments_are_accepted)\n"
    )
    failed = re.search(r"^(\d+) failed", told_of_classes, flags=re.MULTILINE)
    assert failed is not None
    assert others.count(line) == int(failed[1]) - 1
    assert "\nE  " not in others
    assert "`validate`" not in told_of_classes


class TestProfiles:
    """What Hypothesis' settings are in a project that asks for kschedfw's profiles."""

    TESTS = """
from hypothesis import HealthCheck, settings
from kschedfw.testing.properties import examples

def test_they_are():
    now = settings()
    is_unlimited = now.deadline is None and HealthCheck.too_slow in now.suppress_health_check
    print(f"is {is_unlimited} {now.derandomize} {now.max_examples} {examples(30)}")
"""

    @pytest.mark.parametrize(
        ("options", "settings"),
        [
            ((), "True True 12 4"),
            (("--hypothesis-profile", "nightly"), "True False 100 30"),
        ],
    )
    def test_no_limit_of_time_in_any(self, project: Project, options: tuple[str, ...], settings: str) -> None:
        tests = {"test_it": self.TESTS}
        code, output = project.run(tests, "-s", *options, has_hypothesis=True, has_profiles=True)
        assert code == 0, output
        assert f"is {settings}\n" in output

    def test_a_project_that_does_not_ask_keeps_its_own(self, project: Project) -> None:
        code, output = project.run({"test_it": self.TESTS}, "-s", has_hypothesis=True)
        assert code == 0, output
        assert " 100 30\n" in output


SUITE = """
nodes: [{metadata: {name: a}, status: {allocatable: {cpu: 4, pods: 9}}}]
cases:
- name: fits
  pods: [&pod {metadata: {name: web}, spec: {containers: [{name: m, image: i}]}}]
  expected: {pods: {web: {node: a}}}
- name: is elsewhere
  pods: [*pod]
  expected: {pods: {web: {node: b}}}
- name: has a typo
  pods: [*pod]
  configuration: none.yaml
  expected: {evicted: []}
"""


class TestSuites:
    def test_cases_are_tests_and_fail_in_a_few_lines(self, project: Project) -> None:
        (project.path / "web.kschedfw.yaml").write_text(SUITE, encoding="utf-8")
        (project.path / "values.yaml").write_text(SUITE, encoding="utf-8")
        code, output = project.run({"test_it": ""}, "-rA")
        assert code == 1
        assert "PASSED web.kschedfw.yaml::fits" in output
        assert "web.kschedfw.yaml:7: is elsewhere\n  * default/web should go to b, and is on a" in output
        assert "web.kschedfw.yaml:12: cases[2].configuration: " in output
        assert "Traceback" not in output
        assert "exception" not in output
        assert "2 failed, 1 passed" in output

    def test_wrong_suite_is_an_error_of_collection(self, project: Project) -> None:
        (project.path / "web.kschedfw.yaml").write_text("cases: [{name: a}]", encoding="utf-8")
        code, output = project.run({"test_it": ""})
        assert code == 2
        assert "web.kschedfw.yaml:1: cases[0].expected: Required value" in output
        assert "Traceback" not in output
