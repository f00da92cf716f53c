"""The second example prints what its README shows, and its plugin keeps the rules."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hypothesis import strategies as st

from kschedfw import Pod
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.testing import PluginContract, strategies
from tests.examples.running import output_as_shown

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "02-stateful-plugin"
LICENCES = runpy.run_path(str(EXAMPLE / "licences.py"))


def test_it_prints_what_its_readme_shows() -> None:
    lines = output_as_shown("02-stateful-plugin", "licences.py")

    first, without, last = "\n".join(lines).split(" leaves: ")
    assert "solver-2: 0/1 nodes are available: 1 the budget was not approved yet." in first
    assert "solver-3: has the licence B" in first, "what solver-2 was given it has given back"
    assert without.startswith("0 attempts"), "a pod without a licence makes room for nobody"
    assert "has the licence A" in last


class TestLicences(PluginContract):
    plugin = LICENCES["Licences"]
    args = LICENCES["LicencesArgs"](keys=("A",))

    def pods(self) -> st.SearchStrategy[Pod]:
        return st.builds(with_licence, strategies.pod_manifests("pod"), st.booleans())


def with_licence(manifest: strategies.Manifest, needs_one: bool) -> Pod:
    labels = {LICENCES["NEEDS"]: ""} if needs_one else {}
    manifest["metadata"]["labels"] = {**manifest["metadata"].get("labels", {}), **labels}
    return pod_from_manifest(manifest)
