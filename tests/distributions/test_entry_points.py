"""Plugins of installed distributions: found by name, imported when enabled, and harmless until then.

The distributions are directories as pip leaves them.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributions.site import Site

DOWNSTREAM = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "downstream.py"))

pytestmark = pytest.mark.slow

GOOD = """
from kschedfw import Plugin, Status, hookimpl

class Rack(Plugin):
    name = "Rack"

    @hookimpl
    def filter(self, node_info):
        if node_info.node.labels.get("rack") != "r1":
            return Status.unschedulable("node(s) were in the wrong rack")
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_plugin_is_found_by_its_name_and_works(site: Site) -> None:
    site.install("my-racks", "1.2", "my_racks", GOOD, "Rack = my_racks:Rack")
    answer = site.run_alone("""
registry = Registry()
offered = "Rack" in registry.names() and "my_racks" not in sys.modules
nodes = [make_node("a").labels(rack="r1").build(), make_node("b").build()]
verdicts = FrameworkHarness("Rack", "NodeName", nodes=nodes).filter(make_pod().build())
answer = [offered, registry.distribution("Rack"), {node: [s.plugin, s.message] for node, s in verdicts.items()}]
""")
    assert answer == [True, "my-racks 1.2", {"a": ["", ""], "b": ["Rack", "node(s) were in the wrong rack"]}]


class TestBroken:
    @pytest.fixture(autouse=True)
    def _install(self, site: Site) -> None:
        site.install("my-racks", "1.2", "my_racks", "import no_such_inventory", "Rack = my_racks:Rack")

    def test_a_distribution_that_can_not_be_imported_harms_nobody_who_does_not_enable_it(
        self, site: Site
    ) -> None:
        answer = site.run("""
made = framework("NodeName", "TaintToleration")
answer = ["Rack" in Registry().names(), list(made.plugins)]
""")
        assert answer == [True, ["NodeName", "TaintToleration"]]

    def test_who_enables_it_is_told_plugin_distribution_entry_point_and_cause(self, site: Site) -> None:
        assert site.run('answer = failure("NodeName", "Rack")') == [
            "PluginLoadError",
            (
                "plugin 'Rack' (from distribution my-racks 1.2): loading my_racks:Rack failed: "
                "ModuleNotFoundError: No module named 'no_such_inventory' (my_racks.py, line 1)"
            ),
            "ModuleNotFoundError",
        ]


def test_two_distributions_that_offer_the_same_name_are_both_named(site: Site) -> None:
    site.install("my-racks", "1.2", "my_racks", GOOD, "Rack = my_racks:Rack")
    site.install("other-racks", "0.1", "other_racks", GOOD, "Rack = other_racks:Rack")
    assert site.run('answer = failure("Rack")') == [
        "PluginLoadError",
        (
            "plugin 'Rack': my_racks:Rack of my-racks 1.2 and other_racks:Rack of other-racks 0.1 have the same name; "
            "uninstall all but one, or have one take the others' place: by its entry point in the group "
            "'kschedfw.replace', or by Registry.register(…, replace=True)"
        ),
        "NoneType",
    ]
    assert site.run('answer = failure("NodeName")') is None


def test_one_that_says_that_it_replaces_the_other_takes_its_place(site: Site) -> None:
    source = GOOD.replace("Rack", "NodeName")
    site.install(
        "my-names", "1.2", "my_names", source, "NodeName = my_names:NodeName", group="kschedfw.replace"
    )
    answer = site.run("""
registry = Registry()
found = registry.load("NodeName").__module__, registry.distribution("NodeName")
others = [each.partition(" ")[0] for each in registry.replaced("NodeName")]
answer = [*found, others, failure("NodeName", "NodeAffinity")]
""")
    assert answer == ["my_names", "my-names 1.2", ["kschedfw"], None]
    site.install(
        "more-names", "1", "more_names", source, "NodeName = more_names:NodeName", group="kschedfw.replace"
    )
    error, text, _ = site.run('answer = failure("NodeName")')
    assert error == "PluginLoadError"
    assert (
        "more_names:NodeName of more-names 1 and my_names:NodeName of my-names 1.2 have the same name" in text
    )


def test_one_that_has_the_name_of_an_in_tree_plugin_without_saying_so_is_named_with_it(site: Site) -> None:
    site.install("my-names", "1.2", "my_names", GOOD, "NodeName = my_names:NodeName")
    error, text, _ = site.run('answer = failure("NodeName")')
    assert error == "PluginLoadError"
    assert text.startswith("plugin 'NodeName': kschedfw.plugins.node_name:NodeName of kschedfw ")
    assert " and my_names:NodeName of my-names 1.2 have the same name; uninstall all but one, or " in text


def test_a_plugin_registered_in_the_process_takes_their_place_if_it_says_so(site: Site) -> None:
    site.install("my-racks", "1.2", "my_racks", GOOD, "Rack = my_racks:Rack")
    site.install("other-racks", "0.1", "other_racks", "raise ValueError", "Rack = other_racks:Rack")
    answer = site.run("""
from my_racks import Rack
registry = Registry()
registry.register(Rack, replace=True)
answer = [registry.load("Rack") is Rack, registry.distribution("Rack")]
""")
    assert answer == [True, None]


@pytest.mark.parametrize(
    ("source", "entry_point", "message"),
    [
        ("Rack = 42", "Rack = my_racks:Rack", "42 is not a subclass of kschedfw.Plugin"),
        (
            "class Rack: name = 'Rack'",
            "Rack = my_racks:Rack",
            "<class 'my_racks.Rack'> is not a subclass of kschedfw.Plugin",
        ),
        (GOOD, "Rack = my_racks", "<module 'my_racks' from '{path}'> is not a subclass of kschedfw.Plugin"),
        (
            GOOD,
            "Row = my_racks:Rack",
            "the entry point is called 'Row' but the plugin 'Rack'; they must be equal",
        ),
        (
            "from kschedfw import Plugin\nclass Rack(Plugin): pass",
            "Rack = my_racks:Rack",
            "Rack has no name; set name = 'Rack'",
        ),
        (
            GOOD,
            "Rack = my_racks:Row",
            "loading my_racks:Row failed: AttributeError: module 'my_racks' has no attribute 'Row'",
        ),
        (
            GOOD.replace("def filter", "def fliter"),
            "Rack = my_racks:Rack",
            "unknown hook 'fliter'; did you mean 'filter'?",
        ),
        (
            GOOD.replace("self, node_info", "self, node"),
            "Rack = my_racks:Rack",
            (
                "its hook 'filter' has no argument 'node'; did you mean 'node_info'? "
                "(it may take state, pod, node_info)"
            ),
        ),
    ],
    ids=[
        "no class",
        "no plugin",
        "a module",
        "other name",
        "no name",
        "missing",
        "misspelt hook",
        "unknown argument",
    ],
)
def test_what_makes_no_plugin_is_refused_with_its_distribution(
    site: Site, source: str, entry_point: str, message: str
) -> None:
    site.install("my-racks", "1.2", "my_racks", source, entry_point)
    name = entry_point.split(" = ", maxsplit=1)[0]
    _, text, _ = site.run(f"answer = failure({name!r})")
    assert text == (
        f"plugin '{name}' (from distribution my-racks 1.2): " + message.format(path=site.path / "my_racks.py")
    )


def test_an_unknown_name_is_compared_with_installed_ones(site: Site) -> None:
    site.install("my-racks", "1.2", "my_racks", GOOD, "RackAffinity = my_racks:Rack")
    kind, text, _ = site.run('answer = failure("RackAfinity")')
    assert kind == "PluginNotFoundError"
    assert text.endswith("did you mean 'RackAffinity'?")


def test_a_blocked_plugin_is_not_imported(site: Site) -> None:
    site.install("my-racks", "1.2", "my_racks", "raise SystemExit('imported')", "Rack = my_racks:Rack")
    answer = site.run("""
registry = Registry()
registry.block("Rack")
try:
    registry.load("Rack")
except KschedfwError as error:
    answer = ["Rack" in registry.names(), str(error)]
""")
    assert answer == [False, "plugin 'Rack': it is blocked in this registry"]


def test_make_downstream_refuses_an_entry_of_the_gallery_that_names_other_plugins(site: Site) -> None:
    site.install("my-racks", "1.2", "my_racks", GOOD, "Rack = my_racks:Rack")

    def loaded(*promised: str) -> tuple[int, str]:
        names = json.dumps({"my-racks": promised})
        command = [sys.executable, "-c", DOWNSTREAM["LOAD_PLUGINS"], str(site.path), names]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=site.environment)
        return done.returncode, done.stdout + done.stderr

    assert loaded("Rack") == (0, "Rack of my-racks 1.2 loads\n")
    code, told = loaded("Rack", "Row")
    assert code == 1
    assert "my-racks offers ['Rack']; its entry in the gallery says ['Rack', 'Row']" in told
