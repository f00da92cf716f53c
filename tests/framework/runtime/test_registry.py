"""Plugins are found by name: those registered by hand first, then installed ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kschedfw import KschedfwError, Plugin, Registry
from kschedfw.framework.errors import HookError, PluginLoadError, PluginNotFoundError
from tests.framework.support import answering, plugin


def registry() -> Registry:
    return Registry(entry_points=False)


class TestRegister:
    def test_a_registered_class_is_loaded_by_its_name(self) -> None:
        own, rack = registry(), plugin("Rack")
        assert own.register(rack) is rack
        assert own.load("Rack") is rack
        assert own.names() == ["Rack"]
        assert own.distribution("Rack") is None

    def test_its_hooks_must_fit_or_what_was_there_stays(self) -> None:
        own = registry()
        fine, wrong = plugin("Rack", filter=answering(None)), plugin("Rack", fliter=answering(None))
        own.register(fine)
        with pytest.raises(HookError, match="unknown hook 'fliter'"):
            own.register(wrong, replace=True)
        assert own.load("Rack") is fine
        assert own.hookimpls("Rack").keys() == {"filter"}

    def test_it_serves_as_a_decorator(self) -> None:
        own = registry()

        @own.register
        class Rack(Plugin):
            name = "Rack"

        assert own.load("Rack") is Rack

    def test_a_name_is_registered_once(self) -> None:
        own, rack = registry(), plugin("Rack")
        assert own.register(rack) is own.register(rack)
        with pytest.raises(PluginLoadError) as caught:
            own.register(plugin("Rack"))
        assert str(caught.value) == (
            "plugin 'Rack': tests.framework.support:Rack has the name of tests.framework.support:Rack, which is "
            "registered; give it another name, or have it take the other's place: register(Rack, replace=True)"
        )
        assert own.load("Rack") is rack

    def test_or_it_takes_the_others_place(self) -> None:
        own, other = registry(), plugin("Rack")
        own.register(plugin("Rack"))
        assert own.register(other, replace=True) is other
        assert own.load("Rack") is other

    @pytest.mark.parametrize(
        ("what", "text"),
        [
            (42, "plugin '42': 42 is not a subclass of kschedfw.Plugin"),
            (str, "plugin \"<class 'str'>\": <class 'str'> is not a subclass of kschedfw.Plugin"),
        ],
    )
    def test_it_must_be_a_plugin_class(self, what: object, text: str) -> None:
        with pytest.raises(PluginLoadError) as caught:
            registry().register(what)  # type: ignore[type-var]
        assert str(caught.value) == text

    @pytest.mark.parametrize("name", ["", 7])
    def test_it_must_have_a_name(self, name: object) -> None:
        nameless = type("Rack", (Plugin,), {"name": name})
        with pytest.raises(PluginLoadError, match=r"Rack has no name; set name = 'Rack'$"):
            registry().register(nameless)

    def test_a_class_without_the_attribute_has_no_name_either(self) -> None:
        with pytest.raises(PluginLoadError, match=r"Rack has no name; set name = 'Rack'$"):
            registry().register(type("Rack", (Plugin,), {}))

    @pytest.mark.parametrize("is_loaded", [False, True])
    def test_the_name_of_an_installed_plugin_is_taken(self, is_loaded: bool) -> None:
        own, node_name = Registry(), plugin("NodeName", filter=answering(None))
        if is_loaded:
            own.load("NodeName")
        installed = own.distribution("NodeName")
        with pytest.raises(PluginLoadError) as caught:
            own.register(node_name)
        assert str(caught.value) == (
            "plugin 'NodeName': tests.framework.support:NodeName has the name of "
            f"kschedfw.plugins.node_name:NodeName of {installed}; give it another name, or have it take the other's "
            "place: register(NodeName, replace=True)"
        )
        assert own.load("NodeName") is not node_name

        own.register(node_name, replace=True)
        assert own.load("NodeName") is node_name
        assert own.distribution("NodeName") is None
        assert own.replaced("NodeName") == [installed]
        assert own.names().count("NodeName") == 1

    def test_an_installed_plugin_may_be_registered_as_well(self) -> None:
        own = Registry()
        node_name = Registry().load("NodeName")
        assert own.register(node_name) is own.load("NodeName") is node_name
        assert own.replaced("NodeName") == []


class TestUnknownNames:
    def test_a_near_miss_is_suggested(self) -> None:
        with pytest.raises(PluginNotFoundError) as caught:
            Registry().load("NodeAfinity")
        assert str(caught.value) == (
            "plugin 'NodeAfinity': no installed distribution offers it in the entry-point group 'kschedfw'; "
            "did you mean 'NodeAffinity'?"
        )
        assert isinstance(caught.value, KschedfwError)
        assert caught.value.plugin == "NodeAfinity"

    def test_otherwise_all_are_listed(self) -> None:
        own = registry()
        own.register(plugin("B"))
        own.register(plugin("A"))
        with pytest.raises(PluginNotFoundError, match=r"group 'kschedfw'; available are: A, B$"):
            own.load("Something")

    def test_even_if_there_are_none(self) -> None:
        with pytest.raises(PluginNotFoundError, match=r"available are: none$"):
            registry().load("Something")


class TestBlock:
    def test_a_blocked_plugin_is_not_there(self) -> None:
        own = Registry()
        own.block("NodeName")
        assert "NodeName" not in own.names()
        with pytest.raises(PluginNotFoundError) as caught:
            own.load("NodeName")
        assert str(caught.value) == "plugin 'NodeName': it is blocked in this registry"

    def test_it_can_not_be_registered(self) -> None:
        own = registry()
        own.block("Rack")
        with pytest.raises(PluginLoadError) as caught:
            own.register(plugin("Rack"))
        assert str(caught.value) == "plugin 'Rack': it is blocked in this registry"

    def test_what_was_registered_before_is_gone(self) -> None:
        own = registry()
        own.register(plugin("Rack"))
        own.block("Rack")
        assert own.names() == []
        with pytest.raises(PluginNotFoundError, match="blocked"):
            own.load("Rack")


class TestInstalledPlugins:
    def test_the_in_tree_plugins_come_through_entry_points_of_kschedfw_itself(self) -> None:
        own = Registry()
        assert {"NodeName", "NodeAffinity", "DefaultBinder"} <= set(own.names())
        assert own.names() == sorted(own.names())
        for name in ("NodeName", "PodTopologySpread"):
            before = own.distribution(name)
            assert before is not None
            assert before.startswith("kschedfw 0.")
            assert own.load(name).name == name
            assert own.distribution(name) == before

    def test_each_is_imported_when_it_is_asked_for_and_not_before(self) -> None:
        program = """
import sys
from kschedfw.framework.runtime.registry import Registry
loaded = lambda: {name for name in sys.modules if name.startswith("kschedfw.plugins.")}
registry = Registry()
registry.names(), registry.distribution("NodeName")
assert loaded() == set(), loaded()
registry.load("NodeName")
assert "kschedfw.plugins.node_name" in loaded()
assert "kschedfw.plugins.node_affinity" not in loaded()
"""
        done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")

    def install(self, site: Path, distribution: str, entry_point: str, *requires: str) -> None:
        info = site / f"{distribution}-1.0.dist-info"
        info.mkdir()
        required = "".join(f"Requires-Dist: {each}\n" for each in requires)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n{required}"
        )
        (info / "entry_points.txt").write_text(f"[kschedfw]\n{entry_point}\n")

    def test_one_that_can_not_be_imported_is_offered_until_it_is_asked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.install(tmp_path, "racks", "Rack = no_such_module:Rack")
        monkeypatch.syspath_prepend(tmp_path)
        own = Registry()
        assert "Rack" in own.names()
        with pytest.raises(PluginLoadError) as caught:
            own.load("Rack")
        assert str(caught.value) == (
            "plugin 'Rack' (from distribution racks 1.0): loading no_such_module:Rack failed: "
            "ModuleNotFoundError: No module named 'no_such_module'"
        )

    @pytest.mark.parametrize(
        ("requirement", "told"),
        [
            ("no-such-inventory[fast]>=2,<3", "; it requires no-such-inventory>=2,<3, which isn't installed"),
            ("shelves (>=2.1)", "; it requires shelves>=2.1, and 2.0.5 is installed"),
            ("shelves<2", "; it requires shelves<2, and 2.0.5 is installed"),
            ("shelves~=1.9", "; it requires shelves~=1.9, and 2.0.5 is installed"),
            ("shelves!=2.0.5", "; it requires shelves!=2.0.5, and 2.0.5 is installed"),
            ("shelves>=1.5,<=2.0.5,~=2.0,==2.*,>1", ""),
            ("shelves", ""),
            ("no-such-inventory; extra == 'fast'", ""),
        ],
    )
    def test_unmet_requirement_of_its_distribution_is_named(
        self, requirement: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.install(tmp_path, "racks", "Rack = no_such_module:Rack", requirement)
        shelves = tmp_path / "shelves-2.0.5.dist-info"
        shelves.mkdir()
        (shelves / "METADATA").write_text("Metadata-Version: 2.1\nName: shelves\nVersion: 2.0.5\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(PluginLoadError) as caught:
            Registry().load("Rack")
        assert str(caught.value).endswith(f"No module named 'no_such_module'{told}")

    def test_a_name_that_two_distributions_offer_is_nobodys(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.install(tmp_path, "racks", "Rack = racks:Rack")
        self.install(tmp_path, "rows", "Rack = rows:Rack")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(
            PluginLoadError, match=r"racks:Rack of racks 1\.0 and rows:Rack of rows 1\.0 have"
        ):
            Registry().load("Rack")

    def test_one_under_another_name_than_its_own_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.install(tmp_path, "rows", "Row = kschedfw.plugins.node_name:NodeName")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(
            PluginLoadError, match="the entry point is called 'Row' but the plugin 'NodeName'"
        ):
            Registry().load("Row")

    def test_one_whose_hooks_do_not_fit_is_refused_when_it_is_asked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.install(tmp_path, "racks", "Rack = racks_without_filter:Rack")
        (tmp_path / "racks_without_filter.py").write_text(
            "import kschedfw\n"
            "class Rack(kschedfw.Plugin):\n"
            "    name = 'Rack'\n"
            "    @kschedfw.hookimpl\n"
            "    def fliter(self): pass\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        own = Registry()
        assert "Rack" in own.names()
        with pytest.raises(HookError) as caught:
            own.load("Rack")
        assert str(caught.value) == (
            "plugin 'Rack' (from distribution racks 1.0): unknown hook 'fliter'; did you mean 'filter'?"
        )

    def test_a_registry_may_do_without_them(self) -> None:
        assert registry().names() == []
        assert registry().distribution("NodeName") is None
