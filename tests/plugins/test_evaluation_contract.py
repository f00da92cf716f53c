"""The in-tree plugins answer the same node by node, in batches, and from what is remembered."""

from __future__ import annotations

import pytest

from kschedfw import default_profile
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.testing import EvaluationContract, FrameworkHarness

PLUGINS = default_profile().plugin_names


def looks_at_nodes(name: str) -> bool:
    framework = FrameworkHarness(name).framework
    return any(framework.plugins_at(point) for point in (ExtensionPoint.FILTER, ExtensionPoint.SCORE))


@pytest.mark.parametrize("name", [name for name in PLUGINS if looks_at_nodes(name)])
def test_every_evaluation_of_the_plugin_gives_the_same_answers(name: str) -> None:
    contract = type("Contract", (EvaluationContract,), {"plugin": name, "max_examples": 6})()
    contract.test_every_evaluation_gives_the_same_answers_while_the_cluster_changes()
