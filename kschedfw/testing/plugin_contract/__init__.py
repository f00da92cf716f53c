"""The tests that every plugin must pass."""

from __future__ import annotations

from kschedfw.testing.plugin_contract.binding import BindingChecks
from kschedfw.testing.plugin_contract.clock_and_random import ChanceChecks
from kschedfw.testing.plugin_contract.declaration import DeclarationChecks
from kschedfw.testing.plugin_contract.evaluation import EvaluationChecks
from kschedfw.testing.plugin_contract.following import FollowingChecks
from kschedfw.testing.plugin_contract.looking import LookingChecks
from kschedfw.testing.plugin_contract.opinion import OpinionChecks
from kschedfw.testing.plugin_contract.reserving import ReservingChecks
from kschedfw.testing.plugin_contract.user_text import UserTextChecks

__all__ = ["PluginContract"]


class PluginContract(  # pytest runs the checks of the last one first
    BindingChecks,
    ReservingChecks,
    FollowingChecks,
    UserTextChecks,
    ChanceChecks,
    EvaluationChecks,
    LookingChecks,
    OpinionChecks,
    DeclarationChecks,
):
    """The tests that every plugin must pass, to be inherited.

        class TestRack(PluginContract):
            plugin = Rack
            args = RackArgs(size=3)

    Where pods or nodes need something particular for the plugin to have an opinion, such as an annotation, override
    `pods` and `nodes`; `objects` are what it finds in the cluster besides. There is a test for each thing that the
    plugin has hooks for, and none for others. Where no generated cluster has a node that it refuses, or two that it
    scores differently, a test is skipped and says so. Clusters are generated, with the extra `testing`.
    """
