"""A plugin's arguments: from a configuration's mapping to the plugin's own class."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import pytest

from kschedfw import CycleState, KschedfwError, Plugin, Status, hookimpl
from kschedfw.api.field_errors import FieldError
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.framework.errors import PluginLoadError
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.runtime.args import ArgsError
from kschedfw.framework.runtime.registry import Registry
from tests.framework.support import PluginClass, make_framework, node_info, plugin, pod


@attrs.frozen
class Limits:
    max_pods: int = 10
    per_rack: tuple[int, ...] = ()


@attrs.frozen
class RackArgs:
    rack_label: str = "rack"
    limits: Limits = attrs.field(factory=Limits)
    retries: int = attrs.field(default=3, metadata={"zero_is_unset": True})

    def validate(self) -> Iterator[FieldError]:
        if not self.rack_label:
            yield FieldError.required("rackLabel")
        if self.limits.max_pods < 0:
            yield FieldError.invalid("limits.maxPods", self.limits.max_pods, "must not be negative")


@attrs.frozen
class LabelArgs:
    labels: FrozenDict[str, str] = EMPTY


class Rack(Plugin[RackArgs]):
    name = "Rack"
    args_type = RackArgs

    @hookimpl
    def filter(self) -> Status:
        return Status.unschedulable(self.args.rack_label)


def made_with(given: object, which: PluginClass = Rack) -> object:
    return make_framework(which, args={which.name: given}).plugins[which.name].args


def refused(given: object, which: PluginClass = Rack) -> list[str]:
    with pytest.raises(ArgsError) as caught:
        made_with(given, which)
    assert isinstance(caught.value, KschedfwError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.plugin == which.name
    errors = [str(error) for error in caught.value.errors]
    assert str(caught.value) == f"{which.name}: {'; '.join(errors)}"
    return errors


def test_they_reach_the_plugin() -> None:
    framework = make_framework(Rack, args={"Rack": {"rackLabel": "topology/rack"}})
    assert framework.run_filter_plugins(CycleState(), pod(), node_info()).reasons == ("topology/rack",)


@pytest.mark.parametrize("given", [None, {}, {"apiVersion": "rack.example/v1", "kind": "RackArgs"}])
def test_nothing_given_means_the_defaults(given: object) -> None:
    assert made_with(given) == RackArgs()
    assert make_framework(Rack).plugins["Rack"].args == RackArgs()


def test_an_instance_is_taken_as_it_is() -> None:
    args = RackArgs("row")
    assert made_with(args) is args


def test_a_mapping_has_the_configurations_camel_case_keys() -> None:
    given = {"rackLabel": "row", "limits": {"maxPods": 7, "perRack": [1, 2]}}
    assert made_with(given) == RackArgs("row", Limits(7, (1, 2)))


def test_zero_means_unset_where_kubernetes_reads_it_so_and_the_mapping_is_left_alone() -> None:
    given = {"retries": 0, "limits": {"maxPods": 0}}
    assert made_with(given) == RackArgs(retries=3, limits=Limits(0))
    assert given == {"retries": 0, "limits": {"maxPods": 0}}


def test_a_field_may_be_a_mapping_with_keys_of_its_own() -> None:
    labels = plugin("Labels", args_type=LabelArgs)
    assert made_with({"labels": {"any/key": "x"}}, labels) == LabelArgs(FrozenDict({"any/key": "x"}))


class TestMistakes:
    def test_an_unknown_field_is_named_with_those_that_are_known(self) -> None:
        assert refused({"rackLable": "row"}) == [
            'strict decoding error: unknown field "rackLable"; known are: limits, rackLabel, retries'
        ]

    def test_also_inside_and_all_of_them(self) -> None:
        errors = refused({"rack_label": "row", "limits": {"maxpods": 1}})
        assert [error.split('"')[1] for error in errors] == ["rack_label", "limits.maxpods"]

    def test_a_wrong_type_is_named_with_its_path(self) -> None:
        (error,) = refused({"limits": {"maxPods": "seven"}})
        assert error.startswith("limits.maxPods: ")
        assert "seven" in error

    def test_all_rules_that_are_broken_are_named(self) -> None:
        assert refused({"rackLabel": "", "limits": {"maxPods": -1}}) == [
            "rackLabel: Required value",
            "limits.maxPods: Invalid value: -1: must not be negative",
        ]

    def test_rules_hold_for_instances_too(self) -> None:
        assert refused(RackArgs("")) == ["rackLabel: Required value"]

    def test_anything_else_is_no_arguments(self) -> None:
        assert refused(["row"]) == ["must be a RackArgs or a mapping, not list"]

    def test_a_plugin_without_arguments_takes_none(self) -> None:
        plain = plugin("Plain")
        assert refused({"rackLabel": "row"}, plain) == ["the plugin takes no arguments"]
        assert made_with(None, plain) is None
        assert made_with({}, plain) is None


class Shape:
    """No attrs class."""

    def __init__(self, name: str) -> None:
        self.name = name


@attrs.frozen
class Mixed:
    either: bool | str = ""
    inner: Inner | None = None
    count_or_name: int | str = 1


@attrs.frozen
class Inner:
    shapes: tuple[Shape, ...] = ()
    again: tuple[Inner, ...] = ()
    own: Shape = attrs.field(kw_only=True, converter=Shape)


@attrs.frozen
class Dangling:
    racks: Nowhere = 1  # type: ignore[name-defined]  # noqa: F821


def with_validate(validate: Callable[..., object]) -> type[AnyPlugin]:
    return plugin("Rack", args_type=attrs.frozen(type("Args", (), {"validate": validate})))


def raising(_args: object) -> None:
    raise KeyError("racks")


class TestMistakesOfThePluginsAuthor:
    @pytest.mark.parametrize(
        ("args_type", "why"),
        [
            (Shape, "its args_type Shape is no attrs class; decorate it with @attrs.frozen"),
            (RackArgs(), "must be an attrs class, not an instance or a name"),
            ("RackArgs", "its args_type is 'RackArgs'; it must be an attrs class, not an instance or a name"),
        ],
    )
    def test_an_args_type_that_is_no_attrs_class_is_refused_with_the_plugin(
        self, args_type: object, why: str
    ) -> None:
        with pytest.raises(PluginLoadError) as caught:
            Registry(entry_points=False).register(plugin("Rack", args_type=args_type))
        assert str(caught.value).startswith("plugin 'Rack': its args_type")
        assert str(caught.value).endswith(why)

    @pytest.mark.parametrize(
        ("args_type", "errors"),
        [
            (Mixed, ["either: bool | str can't be read; ", "inner.shapes: Shape can't be read; "]),
            (Dangling, ["an annotation of Dangling can't be evaluated: name 'Nowhere' is not defined; "]),
        ],
    )
    def test_fields_that_no_configuration_can_have_are_named_whichever_are_given(
        self, args_type: type[object], errors: list[str]
    ) -> None:
        with pytest.raises(PluginLoadError) as caught:
            made_with({"countOrName": "a"}, plugin("Rack", args_type=args_type))
        said = str(caught.value)
        assert said.startswith(f"plugin 'Rack': its args_type {args_type.__name__} is unusable: {errors[0]}")
        assert all(error in said for error in errors)
        assert said.count("can't be") == len(errors)

    @pytest.mark.parametrize(
        ("validate", "why"),
        [
            (lambda _args: None, "<lambda> returned None; it must yield a FieldError for each rule"),
            (lambda _args: ["no"], "<lambda> yielded 'no'; it must yield a FieldError for each rule"),
            (raising, "raising raised KeyError: 'racks'; it must yield a FieldError for each rule"),
        ],
    )
    def test_a_validate_that_yields_no_field_errors_is_named_with_what_it_does(
        self, validate: Callable[..., object], why: str
    ) -> None:
        with pytest.raises(PluginLoadError) as caught:
            made_with(None, with_validate(validate))
        assert str(caught.value).startswith("plugin 'Rack': ")
        assert why in str(caught.value)


class TestFieldErrors:
    def test_they_are_phrased_as_kubernetes_phrases_them(self) -> None:
        assert str(FieldError.invalid("a.b", "x", "must be y")) == 'a.b: Invalid value: "x": must be y'
        assert str(FieldError.invalid("a", 7, "must be less")) == "a: Invalid value: 7: must be less"
        assert str(FieldError.required("a")) == "a: Required value"
        assert (
            str(FieldError.required("a", "there is no default")) == "a: Required value: there is no default"
        )
        assert str(FieldError.unsupported("a", "x", ("y", "z"))) == (
            'a: Unsupported value: "x": supported values: "y", "z"'
        )
