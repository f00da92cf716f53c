"""Forms for every installed plugin, in the shape of its arguments."""

from __future__ import annotations

import pytest
from explore.clusters import default_configuration
from kschedfw_advisor.explore.forms import Shape, profile_forms, shape_of

from kschedfw.framework.runtime.registry import Registry
from kschedfw.plugins.node_resources_fit.args import NodeResourcesFitArgs
from kschedfw.testing.clock import FakeClock


def test_a_form_has_what_the_arguments_have() -> None:
    fields = dict(shape_of(NodeResourcesFitArgs).fields)
    strategy = dict(fields["scoringStrategy"].fields)
    assert strategy["type"] == Shape(
        "choice", choices=["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
    )
    resource = Shape("object", fields=[("name", Shape("text")), ("weight", Shape("integer"))])
    assert strategy["resources"] == Shape("list", item=resource)
    assert strategy["requestedToCapacityRatio"].optional


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (int, "integer"),
        (bool, "boolean"),
        (float, "number"),
        (str, "text"),
        (FakeClock, "json"),
        (object, "json"),
    ],
)
def test_simple_types(hint: object, kind: str) -> None:
    assert shape_of(hint) == Shape(kind)


def test_the_plugins_of_a_profile_and_the_others() -> None:
    profiles = default_configuration().profiles
    (form,) = profile_forms(profiles, profiles, Registry())
    by_name = {plugin.name: plugin for plugin in form.plugins}
    assert by_name["TaintToleration"].weight == 3
    assert by_name["NodeName"].enabled
    assert not by_name["NodeName"].scores
    assert not by_name["SelectorSpread"].enabled
    assert by_name["InterPodAffinity"].arguments["hardPodAffinityWeight"] == 1
    own = [plugin.enabled for plugin in form.plugins]
    assert own == sorted(own, reverse=True), "the profile's own come first"
