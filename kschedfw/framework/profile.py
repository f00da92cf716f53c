"""The plugins of a scheduler name: extension points, order, weights and arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api import DEFAULT_SCHEDULER_NAME, EMPTY
from kschedfw.api.records import frozen
from kschedfw.framework.errors import ProfileError


class ExtensionPoint(StrEnum):
    """The points at which plugins can be enabled; names as in KubeSchedulerConfiguration."""

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_FEASIBLE = "placementFeasible"
    PLACEMENT_SCORE = "placementScore"
    POD_GROUP_POST_FILTER = "podGroupPostFilter"


class Origin(StrEnum):
    """The origin of a plugin's entry in a profile: the part of a configuration that names it."""

    DEFAULT = "default"
    MULTI_POINT = "multiPoint"
    EXPLICIT = "explicit"
    POLICY = "Policy"
    PROVIDER = "provider"


_NOT_WRITTEN: Final = {"is_written": False}


@frozen
class EnabledPlugin:
    """A plugin of a profile, by name, as written in a configuration or in Python; `weight` multiplies its score.

    A weight of 0 stands for none given and counts as 1, as in kube-scheduler: a plugin that shouldn't score is left
    out of the profile's score plugins. `Profile` checks names and weights, and a configuration is checked as a whole,
    so that all its errors are told.

    A configuration doesn't write the other fields; reading it sets them. With an `absence`, its reason, the plugin
    doesn't run here, though in kube-scheduler it does. `distribution` is the distribution that the plugin comes from,
    if any. `asked_by` has the predicates and priorities that the plugin implements, or the algorithm provider that
    enables it. Two entries with different `origin`, `distribution` or `asked_by` are equal: they run alike.
    """

    name: str = ""
    weight: int = 0
    origin: Origin = attrs.field(default=Origin.EXPLICIT, eq=False, metadata=_NOT_WRITTEN)
    distribution: str | None = attrs.field(default=None, eq=False, metadata=_NOT_WRITTEN)
    absence: str = attrs.field(default="", metadata=_NOT_WRITTEN)
    asked_by: tuple[str, ...] = attrs.field(default=(), eq=False, metadata=_NOT_WRITTEN)


def _checked(plugin: EnabledPlugin) -> EnabledPlugin:
    if type(plugin.name) is not str or not plugin.name:
        raise ProfileError(f"a plugin is enabled by its name, {_found(plugin.name)}")
    # Not by isinstance: True is an int, and no weight.
    if type(plugin.weight) is not int or plugin.weight < 0:
        problem = f"the weight must be an integer of at least 0, not {plugin.weight!r}"
        raise ProfileError(f"plugin {plugin.name!r}: {problem}")
    return plugin


def _found(value: object) -> str:
    """Return what was found instead of a plugin's name, and what to write."""
    name = getattr(value, "name", None)
    if not isinstance(name, str):
        return f"not by {value!r}"
    kind = value if isinstance(value, type) else type(value)
    return f"not by its class: write {name!r}, and Registry().register({kind.__name__}) if no distribution offers it"


def _enabled(plugins: Iterable[EnabledPlugin | str]) -> tuple[EnabledPlugin, ...]:
    if isinstance(plugins, str):
        raise ProfileError(f"plugins are given as a list, not as a string: [{plugins!r}]")
    return tuple(
        _checked(each if isinstance(each, EnabledPlugin) else EnabledPlugin(each)) for each in plugins
    )


def _points(
    points: Mapping[ExtensionPoint, Iterable[EnabledPlugin | str]],
) -> Mapping[ExtensionPoint, tuple[EnabledPlugin, ...]]:
    if unknown := sorted(set(points) - set(ExtensionPoint)):
        raise ProfileError(f"{unknown[0]!r} is no extension point; there are {', '.join(ExtensionPoint)}")
    return {ExtensionPoint(point): _enabled(plugins) for point, plugins in points.items()}


@frozen
class Profile:
    """A scheduling policy under a scheduler name: read from a configuration, or written in Python.

    `multi_point` plugins take part in every extension point whose hooks they have, in this order. `points`
    gives the whole list for single extension points, which replaces `multi_point` at that point. `args` holds,
    per plugin, an instance of its `args_type` or a mapping as in a configuration file (camelCase keys);
    arguments of plugins that aren't enabled are ignored, as in kube-scheduler. `percentage_of_nodes_to_score`
    (0–100, 0 = adaptive) overrides the scheduler's. With `run_all_filters`, all filters are called for a node
    even after one has refused it, and all their reasons are given (a Policy's alwaysCheckAllPredicates).

    Raises:
        ProfileError: a plugin's name isn't a text, its weight isn't an integer of at least 0, it is listed twice at a
            point, an extension point doesn't exist, or the percentage is out of range.
    """

    multi_point: tuple[EnabledPlugin, ...] = attrs.field(default=(), converter=_enabled)
    points: Mapping[ExtensionPoint, tuple[EnabledPlugin, ...]] = attrs.field(default=EMPTY, converter=_points)
    args: Mapping[str, object] = attrs.field(default=EMPTY)
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: int | None = None
    run_all_filters: bool = False

    def __attrs_post_init__(self) -> None:
        lists = {"multiPoint": self.multi_point} | {
            str(point): listed for point, listed in self.points.items()
        }
        for where, plugins in lists.items():
            names = [plugin.name for plugin in plugins]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ProfileError(
                    f"profile {self.scheduler_name!r}: {where} lists {', '.join(twice)} more than once"
                )
        percentage = self.percentage_of_nodes_to_score
        if percentage is not None and not 0 <= percentage <= 100:
            raise ProfileError(
                f"profile {self.scheduler_name!r}: percentage_of_nodes_to_score must be 0–100, not {percentage}"
            )

    @property
    def listed(self) -> tuple[EnabledPlugin, ...]:
        """All entries of the profile, in order; a plugin that is listed at several points has several."""
        return (*self.multi_point, *(plugin for plugins in self.points.values() for plugin in plugins))

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """The names of all plugins that the profile runs, in order of first mention."""
        return tuple(dict.fromkeys(plugin.name for plugin in self.listed if not plugin.absence))

    @property
    def absent_by_name(self) -> tuple[str, ...]:
        """The names of plugins that the profile enables by name, and that don't run at any point."""
        named = (plugin.name for plugin in self.listed if plugin.origin is not Origin.DEFAULT)
        here = set(self.plugin_names)
        return tuple(dict.fromkeys(name for name in named if name not in here))

    def weight(self, name: str, point: ExtensionPoint = ExtensionPoint.SCORE) -> int:
        """Return the weight of a plugin at a point: the one listed for the point, else in multi_point; at least 1."""
        listed = (*self.points.get(point, ()), *self.multi_point)
        return next((plugin.weight for plugin in listed if plugin.name == name), 0) or 1
