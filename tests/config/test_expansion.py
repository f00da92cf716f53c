"""Which plugins a profile has where: explicit before multiPoint before default, in kube-scheduler's order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import Framework, InMemoryCluster, Parallelizer, Parts, Profile, default_profile
from kschedfw.config.schema import points_of_version
from kschedfw.framework.profile import ExtensionPoint
from tests.config.documents import REGISTRY, document, loaded, one_profile, plugin_with_hooks, refused

SCORES = [
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
]
"""The score plugins of the default profile, in order."""

EXTRA = plugin_with_hooks("Extra", "pre_score", "score")
OTHER = plugin_with_hooks("Other", "score")


def profile_with(**plugins: Any) -> Profile:
    (profile,) = loaded(one_profile(plugins=plugins), EXTRA, OTHER).profiles
    return profile


def scores(profile: Profile) -> list[tuple[str, int, str]]:
    return [
        (plugin.name, plugin.weight, str(plugin.origin)) for plugin in profile.points[ExtensionPoint.SCORE]
    ]


def names(profile: Profile, point: ExtensionPoint = ExtensionPoint.SCORE) -> list[str]:
    return [plugin.name for plugin in profile.points[point]]


def some(*plugins: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": plugin, **fields} for plugin in plugins]


def test_the_default_profile_is_what_it_expands_to_as_far_as_it_is_here() -> None:
    def points(profile: Any) -> dict[str, tuple[str, ...]]:
        framework = Framework(REGISTRY, profile, Parts(InMemoryCluster(), parallelizer=Parallelizer(1)))
        return {point: framework.plugins_at(point) for point in points_of_version("1.36")}

    expanded = loaded(document()).profiles[0]
    assert points(expanded) == points(default_profile())
    assert {name: expanded.weight(name) for name in SCORES} == {
        name: default_profile().weight(name) for name in SCORES
    }


def test_what_is_enabled_at_the_point_takes_the_place_of_the_default_and_comes_first() -> None:
    found = scores(profile_with(score={"enabled": some("ImageLocality", weight=5)}))
    assert found[:2] == [("ImageLocality", 5, "explicit"), ("TaintToleration", 3, "default")]
    assert len(found) == len(SCORES)


def test_what_is_new_at_the_point_comes_last_with_weight_1_unless_it_says_otherwise() -> None:
    found = scores(profile_with(score={"enabled": some("Extra")}))
    assert found[-1] == ("Extra", 1, "explicit")
    assert [name for name, *_ in found[:-1]] == SCORES


def test_a_default_plugin_in_multi_point_keeps_its_place_and_a_new_one_comes_last() -> None:
    found = scores(profile_with(multiPoint={"enabled": some("Other", "NodeAffinity", weight=9)}))
    assert found[1] == ("NodeAffinity", 9, "multiPoint")
    assert found[-1] == ("Other", 9, "multiPoint")
    assert [name for name, *_ in found[:-1]] == SCORES


def test_the_weight_at_the_point_comes_before_that_in_multi_point() -> None:
    profile = profile_with(
        multiPoint={"enabled": some("Extra", weight=7)}, score={"enabled": some("Extra", weight=2)}
    )
    assert ("Extra", 2, "explicit") in scores(profile)
    assert names(profile, ExtensionPoint.PRE_SCORE)[-1] == "Extra"


def test_disabling_one_at_a_point_leaves_the_others_and_the_other_points() -> None:
    profile = profile_with(score={"disabled": some("NodeAffinity")})
    assert names(profile) == [name for name in SCORES if name != "NodeAffinity"]
    assert "NodeAffinity" in names(profile, ExtensionPoint.PRE_SCORE)


def test_one_that_is_disabled_and_enabled_at_a_point_is_moved_to_the_end() -> None:
    profile = profile_with(score={"disabled": some("NodeAffinity"), "enabled": some("NodeAffinity")})
    assert scores(profile)[-1] == ("NodeAffinity", 1, "explicit")


def test_disabling_all_leaves_what_the_point_enables_itself() -> None:
    profile = profile_with(
        multiPoint={"enabled": some("Other")}, score={"disabled": some("*"), "enabled": some("Extra")}
    )
    assert names(profile) == ["Extra"]


def test_disabling_all_in_multi_point_leaves_what_is_named() -> None:
    profile = profile_with(
        multiPoint={"disabled": some("*"), "enabled": some("PrioritySort", "DefaultBinder", "Extra")}
    )
    assert {
        str(point): names(profile, point) for point in points_of_version("1.36") if names(profile, point)
    } == {
        "queueSort": ["PrioritySort"],
        "preScore": ["Extra"],
        "score": ["Extra"],
        "bind": ["DefaultBinder"],
    }


class TestPlacements:
    """The plugins that divide nodes for groups, and rate the parts."""

    def test_the_weight_at_the_point_is_for_placements_alone(self) -> None:
        profile = profile_with(
            placementScore={"enabled": [*some("PodGroupPodsCount", weight=5), *some("NodeResourcesFit")]},
            multiPoint={"enabled": some("NodeResourcesFit", weight=3)},
        )
        rating = profile.points[ExtensionPoint.PLACEMENT_SCORE]
        assert [(each.name, each.weight, str(each.origin)) for each in rating] == [
            ("NodeResourcesFit", 1, "explicit"),
            ("PodGroupPodsCount", 5, "explicit"),
        ]
        assert profile.weight("PodGroupPodsCount", ExtensionPoint.PLACEMENT_SCORE) == 5
        assert profile.weight("NodeResourcesFit", ExtensionPoint.PLACEMENT_SCORE) == 1
        assert profile.weight("NodeResourcesFit") == 3

    def test_multi_point_enables_them_at_their_points(self) -> None:
        profile = profile_with(
            multiPoint={
                "enabled": [*some("TopologyPlacementGenerator"), *some("PodGroupPodsCount", weight=4)]
            }
        )
        assert names(profile, ExtensionPoint.PLACEMENT_GENERATE) == ["TopologyPlacementGenerator"]
        rating = profile.points[ExtensionPoint.PLACEMENT_SCORE]
        assert {each.name: each.weight for each in rating} == {"NodeResourcesFit": 1, "PodGroupPodsCount": 4}

    def test_a_list_can_disable_what_multi_point_enables(self) -> None:
        profile = profile_with(placementScore={"disabled": some("*")})
        assert names(profile, ExtensionPoint.PLACEMENT_SCORE) == []
        assert "NodeResourcesFit" in names(profile)

    def test_a_plugin_without_the_hook_is_refused(self) -> None:
        (error,) = refused(one_profile(plugins={"placementGenerate": {"enabled": some("NodeResourcesFit")}}))
        assert error == (
            'profiles[0].plugins.placementGenerate.enabled[0]: Invalid value: "NodeResourcesFit": plugin '
            '"NodeResourcesFit" does not extend placementGenerate; its extension points: preFilter, filter, '
            "preScore, score, placementScore"
        )


def test_each_names_the_distribution_that_it_comes_from() -> None:
    found = profile_with(score={"enabled": some("Extra")}).points[ExtensionPoint.SCORE]
    distributions = {plugin.name: plugin.distribution for plugin in found}
    assert distributions["Extra"] is None
    assert str(distributions["ImageLocality"]).startswith("kschedfw ")


CHOICES = st.lists(st.sampled_from([*SCORES, "Extra", "Other"]), unique=True, max_size=5)


@pytest.mark.slow
@given(CHOICES, CHOICES, CHOICES, CHOICES, st.booleans())
def test_however_it_is_configured(
    enabled: list[str], disabled: list[str], everywhere: list[str], nowhere: list[str], none: bool
) -> None:
    own = {"enabled": some(*enabled), "disabled": some(*disabled, *(["*"] if none else []))}
    profile = profile_with(score=own, multiPoint={"enabled": some(*everywhere), "disabled": some(*nowhere)})
    found = names(profile)

    assert len(set(found)) == len(found)
    assert set(enabled) <= set(found)
    inherited = [name for name in found if name not in enabled]
    assert set(inherited) == (set() if none else inheritable(disabled, everywhere, nowhere) - set(enabled))
    # What the point overrides comes first, what only it has comes last; both in its own order.
    overridden = inheritable(disabled, everywhere, nowhere) if not none else set()
    first = [name for name in enabled if name in overridden]
    last = [name for name in enabled if name not in overridden]
    assert found == [*first, *inherited, *last]
    for plugin in profile.points[ExtensionPoint.SCORE]:
        assert plugin.weight >= 1
        assert plugin.origin == origin_of(plugin.name, enabled, everywhere)


def inheritable(disabled: list[str], everywhere: list[str], nowhere: list[str]) -> set[str]:
    return (set(everywhere) | (set(SCORES) - set(nowhere))) - set(disabled)


def origin_of(name: str, enabled: list[str], everywhere: list[str]) -> str:
    return "explicit" if name in enabled else "multiPoint" if name in everywhere else "default"
