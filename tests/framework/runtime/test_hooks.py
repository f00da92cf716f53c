"""Hooks are checked against their specs once, and then called as plain functions."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable
from functools import cached_property
from weakref import ReferenceType, ref

import pytest

from kschedfw import (
    Code,
    CycleState,
    Handle,
    KschedfwError,
    NodeInfo,
    Plugin,
    Pod,
    PodInfo,
    Status,
    hookimpl,
)
from kschedfw.framework import hookspecs
from kschedfw.framework.errors import HookError
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.hooks import hooks_of, points_of
from tests.framework.support import PluginClass, answering, make_framework, node_info, plugin, pod

POD = pod()


class TestSpecs:
    def test_every_hook_but_events_to_register_belongs_to_an_extension_point(self) -> None:
        assert [name for name, spec in HOOKS.items() if spec.point is None] == ["events_to_register"]
        assert {spec.point for spec in HOOKS.values()} == {*ExtensionPoint, None}

    def test_their_arguments_are_those_of_the_functions(self) -> None:
        assert HOOKS["filter"].arguments == ("state", "pod", "node_info")
        assert HOOKS["events_to_register"].arguments == ()

    def test_a_hook_goes_with_another_one_of_the_same_point(self) -> None:
        pairs = [(spec, HOOKS[spec.goes_with]) for spec in HOOKS.values() if spec.goes_with is not None]
        assert pairs
        assert all(spec.point is other.point and other.goes_with is None for spec, other in pairs)

    @pytest.mark.parametrize("hook", sorted(HOOKS))
    def test_codes_are_declared_where_the_answer_is_a_status(self, hook: str) -> None:
        codes = HOOKS[hook].codes
        answer = inspect.signature(getattr(hookspecs, hook)).return_annotation
        # A status in place of a score is an ERROR, whatever its code.
        is_status = "Status" in answer and hook not in ("score", "placement_score")
        assert (codes is not None) == is_status
        assert not {Code.SUCCESS, Code.ERROR} & (codes or frozenset())

    @pytest.mark.parametrize("hook", sorted(HOOKS))
    def test_each_has_a_contract_and_no_logic(self, hook: str) -> None:
        function = getattr(hookspecs, hook)
        assert inspect.getdoc(function)
        assert len(function.__code__.co_code) <= 8, "returns None and does nothing else"


class TestAnySubsetOfTheArguments:
    @pytest.mark.parametrize(
        "hook",
        [
            lambda: Status.unschedulable("pod on n"),
            lambda pod: Status.unschedulable(f"{pod.name} on n"),
            lambda node_info: Status.unschedulable(f"pod on {node_info.name}"),
            lambda pod, node_info: Status.unschedulable(f"{pod.name} on {node_info.name}"),
            lambda node_info, pod: Status.unschedulable(f"{pod.name} on {node_info.name}"),
            lambda node_info, pod, state: Status.unschedulable(f"{pod.name} on {node_info.name}"),
            lambda state, pod, node_info: Status.unschedulable(f"{pod.name} on {node_info.name}"),
        ],
    )
    def test_they_are_passed_by_name_whatever_their_order(self, hook: Callable[..., Status]) -> None:
        framework = make_framework(plugin("Rack", filter=hook))
        assert framework.run_filter_plugins(CycleState(), POD, node_info("n")).reasons == ("pod on n",)

    def test_a_method_gets_its_instance(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            def __init__(self, args: None, handle: Handle) -> None:
                super().__init__(args, handle)
                self.seen: list[str] = []

            @hookimpl
            def filter(self, node_info: NodeInfo) -> None:
                self.seen.append(node_info.name)

        framework = make_framework(Rack)
        framework.run_filter_plugins(CycleState(), POD, node_info("n"))
        rack = framework.plugins["Rack"]
        assert isinstance(rack, Rack)
        assert rack.seen == ["n"]

    def test_static_and_class_methods_serve_too(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            @staticmethod
            @hookimpl
            def filter(pod: Pod) -> Status:
                return Status.unschedulable(pod.name)

            @classmethod
            @hookimpl
            def reserve(cls, node_name: str) -> Status:
                return Status.unschedulable(cls.name, node_name)

        framework = make_framework(Rack)
        assert framework.run_filter_plugins(CycleState(), POD, node_info()).reasons == ("pod",)
        assert framework.run_reserve_plugins_reserve(CycleState(), POD, "n").reasons == ("Rack", "n")

    def test_a_hook_may_be_inherited(self) -> None:
        base = plugin("Base", filter=lambda pod: Status.unschedulable(pod.name))
        derived = type("Derived", (base,), {"name": "Derived"})
        framework = make_framework(derived)
        assert framework.run_filter_plugins(CycleState(), POD, node_info()) == (
            Status.unschedulable("pod").with_plugin("Derived")
        )

    def test_a_hook_may_have_another_name_than_its_method(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            @hookimpl(specname="filter")
            def by_rack(self, pod: Pod) -> Status:
                return Status.unschedulable(pod.name)

        assert make_framework(Rack).run_filter_plugins(CycleState(), POD, node_info()).reasons == ("pod",)
        assert hooks_of(Rack) == ("filter",)
        assert points_of(Rack) == {ExtensionPoint.FILTER}


def hook_error(*plugins: PluginClass) -> str:
    with pytest.raises(HookError) as caught:
        make_framework(*plugins)
    assert isinstance(caught.value, KschedfwError)
    assert caught.value.plugin == plugins[-1].name
    return str(caught.value)


class TestMistakes:
    def test_a_misspelt_hook(self) -> None:
        text = hook_error(plugin("Rack", fliter=answering(None)))
        assert text.startswith("plugin 'Rack': ")
        assert "unknown hook 'fliter'" in text
        assert text.endswith("did you mean 'filter'?")

    def test_an_argument_that_the_hook_has_not_got(self) -> None:
        text = hook_error(plugin("Rack", filter=lambda pod, node: None))
        assert text == (
            "plugin 'Rack': its hook 'filter' has no argument 'node'; did you mean 'node_info'? "
            "(it may take state, pod, node_info)"
        )

    @pytest.mark.parametrize(
        ("hook", "needed"),
        [
            ("filter_batch", "filter"),
            ("score_batch", "score"),
            ("normalize_score", "score"),
            ("pre_filter_add_pod", "pre_filter"),
            ("pre_filter_remove_pod", "pre_filter"),
        ],
    )
    def test_a_hook_without_the_one_it_goes_with(self, hook: str, needed: str) -> None:
        assert hook_error(plugin("Rack", **{hook: answering(None)})) == (
            f"plugin 'Rack': it has the hook {hook!r} but not {needed!r}, which it goes with"
        )
        make_framework(plugin("Rack", **{hook: answering(None), needed: answering(None)}))

    def test_only_the_plugin_that_is_wrong_is_blamed(self) -> None:
        hook_error(plugin("Fine", filter=answering(None)), plugin("Wrong", fliter=answering(None)))

    def test_a_method_named_like_a_hook_that_is_not_marked(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            def filter(self, pod: Pod) -> Status:  # type: ignore[kschedfw]
                return Status.unschedulable(pod.name)

        assert hook_error(Rack) == "plugin 'Rack': its method 'filter' is not marked @hookimpl"

    def test_an_argument_with_a_default(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            @hookimpl
            def filter(self, pod: Pod, node_info: NodeInfo | None = None) -> None: ...

        assert hook_error(Rack) == (
            "plugin 'Rack': its hook 'filter' gives node_info a default; hooks' arguments have none"
        )

    def test_a_wrapper(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            @hookimpl(wrapper=True)  # type: ignore[kschedfw]
            def filter(self):  # type: ignore[no-untyped-def]
                return (yield)

        assert hook_error(Rack) == (
            "plugin 'Rack': its hook 'filter' is a wrapper; hooks of other plugins can't be wrapped"
        )

    @pytest.mark.parametrize("option", ["tryfirst", "trylast"])
    def test_an_order_other_than_the_profiles(self, option: str) -> None:
        class Rack(Plugin):
            name = "Rack"

            @hookimpl(**{option: True})  # type: ignore[call-overload, untyped-decorator]  # one of pluggy's options
            def filter(self) -> None: ...

        assert hook_error(Rack) == (
            f"plugin 'Rack': its hook 'filter' is marked {option}; plugins are called in the profile's order"
        )

    def test_arguments_that_nobody_would_pass(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            @hookimpl
            def filter(self, pod: Pod, *others: object, **more: object) -> None: ...  # type: ignore[kschedfw]

        assert hook_error(Rack) == (
            "plugin 'Rack': its hook 'filter' takes *others, which would be empty (it may take state, pod, "
            "node_info); its hook 'filter' takes **more, which would be empty (it may take state, pod, node_info)"
        )

    def test_an_unknown_hook_that_is_marked_optional_is_none(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            @hookimpl(optionalhook=True)
            def of_a_later_version(self, something: object) -> None: ...

        assert make_framework(Rack).plugins.keys() == {"Rack"}

    def test_a_hook_of_an_instance_alone(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            def __init__(self, args: None, handle: Handle) -> None:
                super().__init__(args, handle)
                self.filter = hookimpl(answering(None))

        assert hook_error(Rack) == (
            "plugin 'Rack': its hook 'filter' is set on the instance; hooks are methods of the class"
        )


def test_properties_are_left_alone() -> None:
    class Rack(Plugin):
        name = "Rack"

        @property
        def framework(self) -> object:
            return self.handle.framework

        @cached_property
        def filtering(self) -> object:
            return self.handle.framework.run_filter_plugins

        @hookimpl
        def filter(self) -> Status:
            return Status.unschedulable(str(self.framework is not None and self.filtering is not None))

    assert make_framework(Rack).run_filter_plugins(CycleState(), POD, node_info()).reasons == ("True",)


def test_a_hook_that_is_replaced_in_the_class_is_replaced_in_frameworks_made_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Rack(Plugin):
        name = "Rack"

        @hookimpl
        def filter(self) -> Status:
            return Status.unschedulable("as written")

    def said() -> tuple[str, ...]:
        return make_framework(Rack).run_filter_plugins(CycleState(), POD, node_info()).reasons

    assert said() == ("as written",)
    with monkeypatch.context() as patched:
        patched.setattr(Rack, "filter", hookimpl(lambda self: Status.unschedulable("patched")))
        assert said() == ("patched",)
    assert said() == ("as written",)


def test_pre_filter_extensions_take_any_subset_too() -> None:
    seen: list[str] = []
    rack = plugin(
        "Rack",
        pre_filter=answering(None),
        pre_filter_add_pod=lambda node_info, pod_info_to_add: seen.append(
            f"+{pod_info_to_add.pod.name}@{node_info.name}"
        ),
        pre_filter_remove_pod=lambda pod_info_to_remove: seen.append(f"-{pod_info_to_remove.pod.name}"),
    )
    framework = make_framework(rack)
    other = PodInfo.of(pod("other"))
    assert framework.run_pre_filter_add_pod(CycleState(), POD, other, node_info("n")).is_success
    assert framework.run_pre_filter_remove_pod(CycleState(), POD, other, node_info("n")).is_success
    assert seen == ["+other@n", "-other"]


@pytest.mark.xfail(
    (3, 12) <= sys.version_info < (3, 12, 4),
    reason="inspect.getattr_static of these Pythons keeps the classes that it has looked at",
)
def test_a_class_that_nobody_has_any_more_is_forgotten() -> None:
    """Though its hook refers to it."""

    def made() -> ReferenceType[type[Plugin]]:
        class Passing(Plugin):
            name = "Passing"

            @hookimpl
            def filter(self) -> None:
                assert Passing.name

        make_framework(Passing).close()
        return ref(Passing)

    passing = made()
    gc.collect()
    assert passing() is None
