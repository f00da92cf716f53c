"""Fixtures that the commands of the core are tested with."""

from tests.cli.conftest import cluster_dir as cluster_dir
