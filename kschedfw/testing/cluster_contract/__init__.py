"""The tests that every `Cluster` must pass."""

from __future__ import annotations

from kschedfw.testing.cluster_contract.objects import ObjectChecks
from kschedfw.testing.cluster_contract.pods import PodChecks
from kschedfw.testing.cluster_contract.subject import Widget
from kschedfw.testing.cluster_contract.watching import WatchChecks

__all__ = ["ClusterContract", "Widget"]


class ClusterContract(PodChecks, WatchChecks, ObjectChecks):
    """The tests that every `Cluster` must pass, to be inherited, with a fixture that gives one::

        class TestMyCluster(ClusterContract):
            @pytest.fixture
            def cluster(self):
                return MyCluster()

    The cluster may be in use: the tests work in namespaces of their own, and on nodes with random names. No kubelet and
    no scheduler should be at work on the pods, which name `nobody` as their scheduler. What is read may lag behind what
    was written. A check that fails ends with what a cluster has to do.

    The cluster has to keep Pod, Node, Namespace and the custom kind `Widget` (`widgets.contract.example.com`, version
    v1), unless the class says otherwise: `kinds = frozenset({Pod})` skips the checks of the others.
    """
