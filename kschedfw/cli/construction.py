"""Checks that plugins can be made, as a scheduler does at its start, and that a profile can decide on a pod."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from kschedfw.api.builders import make_node, make_pod
from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState, StateKeyError
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.errors import PluginError, ProfileError
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler import Scheduler, SchedulingError

_PREPARING: Final = {ExtensionPoint.PRE_FILTER: "pre_filter", ExtensionPoint.PRE_SCORE: "pre_score"}
"""The hooks that write the state which a plugin's other hooks read."""


def refused_profile(profile: Profile, registry: Registry, path: str) -> Iterator[FieldError]:
    """Yield the errors with which the profile can't run: those of single plugins, or else of all together.

    If there are none, yield the error with which every pod would fail because a plugin's preparing hook isn't
    enabled.
    """
    errors = [
        error
        for name in profile.plugin_names
        if (error := _refusal(Profile([EnabledPlugin(name)], args=_args_of(profile, name)), registry))
    ]
    # A profile that is refused can't be tried.
    if not errors and (error := _refusal(profile, registry) or _missing_state(profile, registry)):
        errors = [error]
    for error in errors:
        yield FieldError(path, str(error))


def refused_plugin(name: str, registry: Registry) -> PluginError | None:
    """Return the error of loading or making the plugin; None without one.

    It is made with its default arguments if these are valid.
    """
    error = _refusal(Profile([EnabledPlugin(name)]), registry)
    return error if isinstance(error, PluginError) else None


def _args_of(profile: Profile, name: str) -> dict[str, object]:
    return {name: profile.args[name]} if name in profile.args else {}


def _refusal(profile: Profile, registry: Registry) -> KschedfwError | None:
    try:
        framework = Framework(registry, profile, Parts(InMemoryCluster(), parallelizer=Parallelizer(1)))
    except KschedfwError as error:
        return error
    try:
        framework.events_to_register()
    except PluginError as error:
        return error
    finally:
        framework.close()
    return None


def _missing_state(profile: Profile, registry: Registry) -> KschedfwError | None:
    """Return the error of a trial decision in which a hook lacks the state that another hook should have written."""
    # Two nodes: a single one isn't scored.
    nodes = [make_node(name).capacity(cpu=4, memory="16Gi", pods=10).build() for name in ("a", "b")]
    with closing(Scheduler(InMemoryCluster(nodes), [profile], registry=registry)) as scheduler:
        framework = scheduler.frameworks[profile.scheduler_name]
        pod = make_pod("pod").requests(cpu=1, memory="1Gi").build()
        try:
            scheduler.algorithm.schedule(framework, CycleState(), pod)
        except SchedulingError as error:
            return _told(error, profile, framework)
        except FitError:
            # No mistake of the configuration: the policy may want other nodes or pods.
            return None
    return None


def _told(error: SchedulingError, profile: Profile, framework: Framework) -> KschedfwError | None:
    cause: BaseException | None = error.status.error
    while cause is not None and not isinstance(cause, StateKeyError):
        cause = cause.__cause__
    if cause is None:
        # This failure may be due to the pod of this trial.
        return None
    name = next((name for name in profile.plugin_names if f'"{name}"' in str(error)), "")
    plugin = framework.plugins.get(name)
    idle = [
        point
        for point, hook in _PREPARING.items()
        if hasattr(plugin, hook) and name not in framework.plugins_at(point)
    ]
    return ProfileError(f"every pod would fail: {error}; enable {name} at {' or '.join(idle)} as well")
