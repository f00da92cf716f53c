"""`kschedfw plugins` tells what is installed, and what each plugin is."""

from __future__ import annotations

import json
import re
from importlib.metadata import EntryPoint
from typing import Any
from zlib import crc32

import attrs
import pytest

from kschedfw import FrozenDict, Handle, NodeInfo, Plugin, Quantity, Registry, Status, hookimpl
from kschedfw.api.pod import Pod
from kschedfw.cli import app, plugins
from kschedfw.cli.plugins import summaries, summary
from kschedfw.framework.errors import PluginError, PluginNotFoundError
from kschedfw.framework.plugin import PROJECT


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = app.run(["plugins", *args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def printed_json(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    code, out, _ = run(capsys, *args, "--json")
    assert code == 0
    return json.loads(out)


@attrs.frozen
class Shelf:
    height: int = 1


@attrs.frozen
class RackArgs:
    """Which racks there are."""

    racks: tuple[str, ...]
    shelves: tuple[Shelf, ...] = (Shelf(2),)
    top: Shelf | None = None
    strict: bool = False
    note: str = attrs.field(factory=lambda: "none")
    amounts: FrozenDict[str, Quantity] = attrs.field(
        factory=lambda: FrozenDict({"cpu": Quantity.parse("500m")})
    )


class Rack(Plugin[RackArgs]):
    """Refuses nodes in other racks.

    And nothing else.
    """

    name = "Rack"
    args_type = RackArgs

    def sign(self, pod: Pod) -> str:
        return pod.name

    @hookimpl
    def filter(self) -> None: ...

    @hookimpl
    def filter_batch(self) -> None: ...

    def help(self) -> None: ...


class TestSummary:
    @pytest.fixture
    def registry(self) -> Registry:
        registry = Registry(entry_points=False)
        registry.register(Rack)
        return registry

    def test_it_says_what_the_class_says(self, registry: Registry) -> None:
        found = summary(registry, "Rack")
        assert found.to_json() == {
            "name": "Rack",
            "distribution": None,
            "class": f"{__name__}:Rack",
            "doc": "Refuses nodes in other racks.\n\nAnd nothing else.",
            "extensionPoints": ["filter"],
            "hooks": ["filter", "filter_batch"],
            "reads": None,
            "sign": True,
            "pure": False,
            "batch": ["filter_batch"],
            "args": [
                {"name": "racks", "type": "list of string", "required": True, "default": None},
                {
                    "name": "shelves",
                    "type": "list of object with height",
                    "required": False,
                    "default": [{"height": 2}],
                },
                {"name": "top", "type": "object with height", "required": False, "default": None},
                {"name": "strict", "type": "boolean", "required": False, "default": False},
                {"name": "note", "type": "string", "required": False, "default": "none"},
                {
                    "name": "amounts",
                    "type": "map of quantity",
                    "required": False,
                    "default": {"cpu": "500m"},
                },
            ],
        }

    def test_one_that_is_not_there_is_an_error(self, registry: Registry) -> None:
        with pytest.raises(PluginNotFoundError, match="did you mean 'Rack'"):
            summary(registry, "Rak")


class Refusing(Plugin):
    name = "Refusing"

    def __init__(self, args: None, handle: Handle) -> None:
        raise KeyError("inventory")


class Misspelt(Plugin[RackArgs]):
    name = "Misspelt"
    args_type = RackArgs

    @hookimpl
    def fliter(self) -> None: ...  # type: ignore[kschedfw]


class TestWhatCanNotBeMade:
    """Rack takes arguments that it can't do without; that is nothing wrong."""

    @pytest.fixture
    def registry(self, monkeypatch: pytest.MonkeyPatch) -> Registry:
        offered = [
            EntryPoint(cls.name, f"{__name__}:{cls.__name__}", PROJECT) for cls in (Refusing, Misspelt)
        ]
        monkeypatch.setattr("kschedfw.framework.runtime.registry.entry_points_of", lambda _groups: offered)
        registry = Registry()
        registry.register(Rack)
        return registry

    def test_is_listed_with_what_its_construction_says(self, registry: Registry) -> None:
        assert {each.name: each.problem for each in summaries(registry)} == {
            "Misspelt": "unknown hook 'fliter'; did you mean 'filter'?",
            "Rack": "",
            "Refusing": "making it failed: KeyError: 'inventory'",
        }

    def test_is_an_error_to_show(self, registry: Registry) -> None:
        with pytest.raises(PluginError, match="plugin 'Refusing': making it failed: KeyError: 'inventory'"):
            summary(registry, "Refusing")


class TestList:
    def test_every_plugin_has_a_line(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("COLUMNS", raising=False)
        code, out, err = run(capsys, "list")
        assert (code, err) == (0, "")
        header, *lines = out.splitlines()
        assert header.split() == [
            *("plugin", "distribution", "enabled", "at"),
            *("pure", "reads", "sign", "batch", "arguments"),
        ]
        assert [line.split()[0] for line in lines] == Registry().names()
        (row,) = (line for line in lines if line.startswith("NodeLabel "))
        assert row.split(maxsplit=3)[3].split() == [
            *("filter,", "score", "yes"),
            *("presentLabels,", "absentLabels,", "presentLabelsPreference,", "absentLabelsPreference"),
        ]

    def test_no_name_is_broken_in_the_narrowest_table(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(plugins.WIDE))
        out = run(capsys, "list")[1]
        assert out.startswith("plugin  ")
        names = {argument.name for each in summaries(Registry()) for argument in each.arguments}
        assert names <= set(out.replace(",", " ").split())

    def test_where_there_is_no_room_for_columns_every_plugin_has_a_paragraph(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        code, out, _ = run(capsys, "list")
        assert code == 0
        lines = out.splitlines()
        assert max(map(len, lines)) <= 60
        assert [line.split()[0] for line in lines if not line.startswith(" ")] == Registry().names()
        assert lines[lines.index(next(line for line in lines if line.startswith("NodeName "))) + 1] == (
            "  filter; reads node; pure"
        )

    def test_json_has_what_show_has_but_for_what_is_learned(self, capsys: pytest.CaptureFixture[str]) -> None:
        listed = printed_json(capsys, "list")
        assert [each["name"] for each in listed] == Registry().names()
        for each in listed[:3]:
            shown = printed_json(capsys, "show", each["name"])
            assert {key: value for key, value in shown.items() if key != "learned"} == each

    def test_a_plugin_that_can_not_be_loaded_does_not_hide_the_others(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from kschedfw.framework.runtime import registry as module

        class Broken:
            value, dist, group = "broken:Rack", None, "kschedfw"

            def load(self) -> object:
                raise ImportError("no such inventory")

        found = {**module._installed(), "Rack": [Broken()]}
        monkeypatch.setattr(module, "_installed", lambda: found)
        monkeypatch.setenv("COLUMNS", "300")
        (broken,) = (each for each in summaries(Registry()) if each.problem)
        assert broken.to_json() == {
            "name": "Rack",
            "distribution": None,
            "problem": broken.problem,
        }
        assert re.fullmatch(
            r"loading broken:Rack failed: ImportError: no such inventory \(test_plugins\.py, line \d+\)",
            broken.problem,
        )
        code, out, _ = run(capsys, "list")
        assert code == 0
        assert "can't be used: loading broken:Rack failed: ImportError: no such inventory" in out
        assert "TaintToleration" in out
        # … and makes the table no wider
        table, _, rest = out.partition("\nRack")
        assert "can't be used" not in table
        assert max(map(len, table.splitlines())) < 250
        assert rest.splitlines()[1].startswith("  can't be used: ")


class TestShow:
    def test_a_plugin_is_shown_with_arguments_and_hooks(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        code, out, _ = run(capsys, "show", "NodeResourcesFit")
        assert code == 0
        assert "Refuses nodes without enough room" in out
        assert "enabled at  preFilter, filter, preScore, score" in out
        assert "ignoredResources       list of string" in out
        assert '{"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}' in out

    def test_paragraphs_of_a_docstring_are_as_wide_as_the_terminal_and_lists_stay(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Racks(Rack):
            """Refuses nodes.

            That is so for those
            in other racks:

            * upper ones
            * lower ones
            """

            name = "Racks"

        registry = Registry(entry_points=False)
        registry.register(Racks)
        monkeypatch.setattr(plugins, "Registry", lambda: registry)
        out = run(capsys, "show", "Racks")[1]
        assert "\n\nThat is so for those in other racks:\n\n* upper ones\n* lower ones\n" in out

    def test_one_without_a_docstring_says_so(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Made, as a class statement would be told to have a docstring.
        bare = type("Bare", (Plugin,), {"name": "Bare", "filter": Rack.filter})
        registry = Registry(entry_points=False)
        registry.register(bare)
        monkeypatch.setattr(plugins, "Registry", lambda: registry)
        assert "It has no docstring." in run(capsys, "show", "Bare")[1]
        assert printed_json(capsys, "show", "Bare")["doc"] == ""

    def test_one_without_arguments_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "It takes no arguments." in run(capsys, "show", "NodeName")[1]

    def test_an_unknown_one_is_bad_input(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, err = run(capsys, "show", "NodeLable")
        assert (code, out) == (2, "")
        assert err.startswith("kschedfw: plugin 'NodeLable': no installed distribution offers it")
        assert err.endswith("did you mean 'NodeLabel'?\n")


class Zoned(Plugin):
    """Keeps apps to zones, and likes some pairs of a pod and a node."""

    name = "Zoned"
    pure = True

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        zone = node_info.node.labels.get("topology.kubernetes.io/zone")
        return Status.unschedulable("elsewhere") if pod.labels.get("zone", zone) != zone else None

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return crc32(f"{pod.name} {node_info.name}".encode()) % 101


class Needy(Plugin[RackArgs]):
    name = "Needy"
    args_type = RackArgs
    pure = True

    @hookimpl
    def filter(self, node_info: NodeInfo) -> None: ...


class TestLearnedFacts:
    """`show` tries a pure plugin with a few pods and nodes."""

    @pytest.fixture(autouse=True)
    def offered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        registry = Registry()
        for each in (Zoned, Needy):
            registry.register(each)
        monkeypatch.setattr(plugins, "Registry", lambda: registry)

    def test_reads_of_a_hook_are_named_and_one_whose_answers_never_repeat_is_told(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        out = run(capsys, "show", "Zoned")[1]
        read = "of the pod: label zone; of the node: label topology.kubernetes.io/zone"
        assert f"filter      in a trial with a few pods it reads {read}\n" in out
        paused = "the answers of score seldom repeat, so that learning paused: it is asked about each node"
        assert f"score       {paused}\n" in out

    def test_json_has_them_too(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert printed_json(capsys, "show", "Zoned")["learned"].keys() == {"filter", "score"}

    def test_there_are_none_of_a_plugin_that_needs_arguments(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert printed_json(capsys, "show", "Needy")["learned"] == {}
