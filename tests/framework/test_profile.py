"""A profile: which plugins run where, in what order and with what weight."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kschedfw import EnabledPlugin, KschedfwError, Profile, default_profile
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.profile import ExtensionPoint, Origin
from tests.framework.support import answering, make_framework, plugin

A = plugin("A", filter=answering(None), score=answering(0), reserve=answering(None))
B = plugin("B", filter=answering(None), score=answering(0))
C = plugin("C", post_bind=answering(None))
FILTER = ExtensionPoint.FILTER


def test_plugins_may_be_given_by_name() -> None:
    assert Profile(["A", EnabledPlugin("B", weight=3)]).multi_point == (
        EnabledPlugin("A"),
        EnabledPlugin("B", 3),
    )
    assert Profile(points={ExtensionPoint.SCORE: ["A"]}).points == {
        ExtensionPoint.SCORE: (EnabledPlugin("A"),)
    }


@pytest.mark.parametrize("given", [A, B])
def test_a_class_instead_of_a_name_is_told_its_name_and_where_it_is_registered(given: Any) -> None:
    text = re.escape(f"not by its class: write '{given.name}', and Registry().register({given.__name__})")
    with pytest.raises(ProfileError, match=text):
        Profile([EnabledPlugin(given)])
    with pytest.raises(ProfileError, match=text):
        Profile([given])
    with pytest.raises(ProfileError, match="a plugin is enabled by its name, not by 3"):
        Profile([3])  # type: ignore[list-item]
    with pytest.raises(ProfileError, match="a plugin is enabled by its name, not by ''"):
        Profile([EnabledPlugin()])


def test_extension_points_have_the_configurations_names() -> None:
    assert [str(point) for point in ExtensionPoint] == [
        "preEnqueue",
        "queueSort",
        "preFilter",
        "filter",
        "postFilter",
        "preScore",
        "score",
        "reserve",
        "permit",
        "preBind",
        "bind",
        "postBind",
        "placementGenerate",
        "placementFeasible",
        "placementScore",
        "podGroupPostFilter",
    ]
    assert Profile(points={"score": ["A"]}).points == {ExtensionPoint.SCORE: (EnabledPlugin("A"),)}  # type: ignore[dict-item]


def test_it_names_every_plugin_once_in_order_of_first_mention() -> None:
    profile = Profile(
        ["B", "A"], points={ExtensionPoint.SCORE: ["C", "A"], ExtensionPoint.FILTER: ["D", "C"]}
    )
    assert profile.plugin_names == ("B", "A", "C", "D")


def test_an_empty_profile_is_kube_schedulers_name_and_nothing_else() -> None:
    profile = Profile()
    assert profile.scheduler_name == "default-scheduler"
    assert profile.plugin_names == ()
    assert profile.percentage_of_nodes_to_score is None


class TestOrder:
    def test_multi_point_plugins_take_part_wherever_they_have_a_hook(self) -> None:
        framework = make_framework(A, B, C)
        assert framework.plugins_at(ExtensionPoint.FILTER) == ("A", "B")
        assert framework.plugins_at(ExtensionPoint.RESERVE) == ("A",)
        assert framework.plugins_at(ExtensionPoint.POST_BIND) == ("C",)
        assert framework.plugins_at(ExtensionPoint.BIND) == ()

    def test_a_points_own_list_replaces_multi_point_there_and_only_there(self) -> None:
        framework = make_framework(A, B, profile=Profile(["A", "B"], points={ExtensionPoint.SCORE: ["B"]}))
        assert framework.plugins_at(ExtensionPoint.SCORE) == ("B",)
        assert framework.plugins_at(ExtensionPoint.FILTER) == ("A", "B")

    def test_an_empty_list_switches_a_point_off(self) -> None:
        framework = make_framework(A, B, profile=Profile(["A", "B"], points={ExtensionPoint.FILTER: []}))
        assert not framework.has_filter_plugins
        assert framework.has_score_plugins

    def test_a_plugin_may_be_enabled_at_single_points_only(self) -> None:
        framework = make_framework(A, profile=Profile(points={ExtensionPoint.FILTER: ["A"]}))
        assert framework.has_filter_plugins
        assert not framework.has_score_plugins


class TestEntriesOfConfigurations:
    @pytest.mark.parametrize("listed", ["multi_point", "points"])
    def test_absent_plugin_is_listed_and_does_not_run(self, listed: str) -> None:
        entries = [EnabledPlugin("A"), EnabledPlugin("Gone", origin=Origin.POLICY, absence="was dropped")]
        profile = Profile(entries) if listed == "multi_point" else Profile(points={FILTER: entries})
        assert [entry.name for entry in profile.listed] == ["A", "Gone"]
        assert (profile.plugin_names, profile.absent_by_name) == (("A",), ("Gone",))
        assert make_framework(A, profile=profile).plugins_at(FILTER) == ("A",)

    def test_absent_default_plugin_was_not_enabled_by_name(self) -> None:
        profile = Profile(["A", EnabledPlugin("Gone", origin=Origin.DEFAULT, absence="was dropped")])
        assert profile.absent_by_name == ()

    def test_entries_that_run_alike_are_equal(self) -> None:
        entry = EnabledPlugin("A", 3, Origin.POLICY, "some 1.0", asked_by=("predicate P",))
        assert entry == EnabledPlugin("A", 3)
        assert hash(entry) == hash(EnabledPlugin("A", 3))
        assert entry != EnabledPlugin("A", 3, absence="was dropped")


class TestWeight:
    @pytest.mark.parametrize(
        ("profile", "weight"),
        [
            (Profile(["A"]), 1),
            (Profile([EnabledPlugin("A", 3)]), 3),
            (Profile([EnabledPlugin("A", 3)], points={ExtensionPoint.SCORE: [EnabledPlugin("A", 5)]}), 5),
            (Profile([EnabledPlugin("A", 3)], points={ExtensionPoint.SCORE: ["A"]}), 1),
            (Profile([EnabledPlugin("A", 3)], points={ExtensionPoint.FILTER: [EnabledPlugin("A", 5)]}), 3),
            (Profile(["B"]), 1),
        ],
    )
    def test_the_score_list_wins_over_multi_point_and_zero_counts_as_one(
        self, profile: Profile, weight: int
    ) -> None:
        assert profile.weight("A") == weight

    def test_their_sum_can_not_make_totals_overflow(self) -> None:
        rater = plugin("A", score=answering(1))
        limit = (2**63 - 1) // 100
        make_framework(rater, profile=Profile([EnabledPlugin("A", limit)]))
        with pytest.raises(ProfileError, match="total score of Score plugins could overflow"):
            make_framework(rater, profile=Profile([EnabledPlugin("A", limit + 1)]))

    def test_it_can_not_be_negative(self) -> None:
        with pytest.raises(
            ProfileError, match="plugin 'A': the weight must be an integer of at least 0, not -1"
        ):
            Profile([EnabledPlugin("A", weight=-1)])


class TestErrors:
    def test_a_plugin_can_not_be_listed_twice_at_a_point(self) -> None:
        with pytest.raises(ProfileError) as caught:
            Profile(["A", "B", EnabledPlugin("A", 2), "B", "C"])
        assert str(caught.value) == "profile 'default-scheduler': multiPoint lists A, B more than once"
        assert isinstance(caught.value, KschedfwError)
        with pytest.raises(ProfileError) as caught:
            Profile(points={ExtensionPoint.SCORE: ["A", "A"]}, scheduler_name="gpu")
        assert str(caught.value) == "profile 'gpu': score lists A more than once"

    def test_plugins_are_a_list(self) -> None:
        with pytest.raises(
            ProfileError, match="plugins are given as a list, not as a string: \\['NodeName'\\]"
        ):
            Profile("NodeName")

    def test_an_extension_point_has_to_exist(self) -> None:
        with pytest.raises(
            ProfileError, match="'filters' is no extension point; there are preEnqueue, queueSort"
        ):
            Profile(points={"filters": ["A"]})  # type: ignore[dict-item]

    @pytest.mark.parametrize("percentage", [-1, 101])
    def test_a_percentage_is_between_0_and_100(self, percentage: int) -> None:
        with pytest.raises(ProfileError) as caught:
            Profile(percentage_of_nodes_to_score=percentage)
        assert str(caught.value) == (
            f"profile 'default-scheduler': percentage_of_nodes_to_score must be 0–100, not {percentage}"
        )

    @pytest.mark.parametrize("percentage", [0, 100, None])
    def test_its_ends_are_allowed(self, percentage: int | None) -> None:
        assert Profile(percentage_of_nodes_to_score=percentage).percentage_of_nodes_to_score == percentage

    def test_a_point_can_not_list_a_plugin_without_a_hook_for_it(self) -> None:
        with pytest.raises(ProfileError) as caught:
            make_framework(C, profile=Profile(points={ExtensionPoint.SCORE: ["C"]}))
        assert (
            str(caught.value) == "profile 'default-scheduler': score lists plugin 'C', without a hook for it"
        )

    def test_there_can_be_only_one_queue_sort(self) -> None:
        first, second = (
            plugin("First", queue_sort=answering(True)),
            plugin("Second", queue_sort=answering(True)),
        )
        with pytest.raises(ProfileError) as caught:
            make_framework(first, second)
        assert str(caught.value) == (
            "profile 'default-scheduler': only one queue sort plugin can be enabled, not First, Second"
        )


def test_the_default_profile_takes_arguments_for_its_plugins() -> None:
    profile = default_profile({"NodeResourcesFit": {}})
    assert profile.args == {"NodeResourcesFit": {}}
    assert profile.plugin_names == default_profile().plugin_names
