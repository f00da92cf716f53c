"""A small cluster as files, and the command in this process."""

from tests.cli.conftest import cluster_dir

__all__ = ["cluster_dir"]
