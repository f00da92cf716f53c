"""Templates of pods: what is valid in a pod with its defaults is valid in a template without them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.manifests import Manifests, parse_manifests
from kschedfw.api.objects import pod_from_manifest
from kschedfw.testing.strategies import pod_manifests

Manifest = dict[str, Any]

_LABELS: Final = {"app": "web"}
_KINDS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")


@st.composite
def specs(draw: st.DrawFn) -> Manifest:
    """Draw the spec of a pod as users write it, in which an API server fills in much; it may be invalid."""
    spec: Manifest = draw(pod_manifests("drawn"))["spec"]
    spec |= draw(st.sampled_from([{}, {"hostNetwork": True}]))
    for container in (*spec["containers"], *spec["initContainers"]):
        for port in container["ports"]:
            if draw(st.booleans()):
                port.pop("hostPort", None)
        if draw(st.booleans()):
            # Requests follow from limits.
            container["resources"] = {"limits": container["resources"].get("requests", {})}
    spec |= draw(
        st.sampled_from(
            [
                {},
                {"resources": {"requests": {"cpu": "2"}}},
                {"resources": {"limits": {"cpu": "8", "memory": "8Gi"}}},
                {"nodeName": "n1", "schedulingGates": [{"name": "example.org/gate"}]},
                {"schedulingGates": [{"name": "example.org/gate"}]},
            ]
        )
    )
    return spec


def load(kind: str, spec: Manifest) -> Manifests:
    """Load a node and a workload whose template has this spec."""
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    restarts = {"restartPolicy": "Never"} if kind == "Job" else {}
    workload: Manifest = {"template": {"metadata": {"labels": _LABELS}, "spec": {**spec, **restarts}}}
    if kind not in ("Job", "ReplicationController"):
        workload["selector"] = {"matchLabels": _LABELS}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": workload}
    return parse_manifests(f"{json.dumps(node)}\n---\n{json.dumps(manifest)}")


@given(st.sampled_from(_KINDS), specs())
def test_a_template_is_refused_for_nothing_that_its_pods_are_not_refused_for(
    kind: str, spec: Manifest
) -> None:
    pod = {"metadata": {"name": "web", "labels": _LABELS}, "spec": spec}
    try:
        as_pod = pod_from_manifest(pod)
    except ManifestError:
        # The workload may be valid; the pods aren't, and none is made.
        loaded = load(kind, spec)
        assert not loaded.pods
        assert loaded.problems or loaded.admission.refused or kind == "DaemonSet"
        return
    loaded = load(kind, spec)
    assert not loaded.problems
    for made in loaded.pods:
        assert made.spec.containers == as_pod.spec.containers
        assert made.spec.init_containers == as_pod.spec.init_containers
        assert made.spec.resources == as_pod.spec.resources


@pytest.mark.parametrize("kind", _KINDS)
def test_a_pod_that_is_invalid_with_its_defaults_is_not_created(kind: str) -> None:
    """The template is valid: only in a pod the request follows from the limit."""
    container = {"name": "main", "resources": {"limits": {"cpu": "4"}}}
    loaded = load(kind, {"containers": [container], "resources": {"requests": {"cpu": "2"}}})
    assert not loaded.problems
    assert not loaded.pods
    (refused,) = loaded.admission.refused
    assert refused.reason == (
        'spec.resources.requests.cpu: Invalid value: "2": must be greater than or equal to aggregate container '
        "requests of 4"
    )
