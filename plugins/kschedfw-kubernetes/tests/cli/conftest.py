"""A small cluster as files."""

from __future__ import annotations

from pathlib import Path

import pytest

NODES = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}}
"""

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: fits}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: too-big}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 3}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bound}
spec: {nodeName: n1, containers: [{name: main, image: app, resources: {requests: {cpu: 500m}}}]}
"""


@pytest.fixture
def cluster_dir(tmp_path: Path) -> Path:
    """Two nodes; a pod that fits, one that doesn't and one that is bound."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    (directory / "nodes.yaml").write_text(NODES)
    (directory / "pods.yaml").write_text(PODS)
    return directory
