"""A small cluster as files."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_nodes import NODES, PODS


@pytest.fixture
def cluster_dir(tmp_path: Path) -> Path:
    """Two nodes; a pod that fits, one that doesn't and one that is bound."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    (directory / "nodes.yaml").write_text(NODES)
    (directory / "pods.yaml").write_text(PODS)
    return directory
