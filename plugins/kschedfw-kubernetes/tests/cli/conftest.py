"""A small cluster as files."""

from tests.cli.conftest import cluster_dir

__all__ = ["cluster_dir"]
