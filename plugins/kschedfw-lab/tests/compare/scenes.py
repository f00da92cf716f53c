"""Small clusters on which spreading and packing differ, in a few words."""

from __future__ import annotations

from kschedfw_lab.compare import Setup

from kschedfw import InMemoryCluster, Node, Pod, Profile, SchedulerConfiguration, make_node, make_pod
from kschedfw.config import parse_configuration

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 30
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins:
    score:
      enabled:
      - {name: NodeResourcesFit, weight: 10}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""


def spreading(label: str = "spreading") -> Setup:
    return Setup.of(label, parse_configuration(CONFIGURATION), "default-scheduler")


def packing(label: str = "packing") -> Setup:
    return Setup.of(label, parse_configuration(CONFIGURATION), "packing")


def bare(*plugins: str, label: str = "bare") -> Setup:
    """Only these plugins, and what no profile can do without."""
    profile = Profile(["PrioritySort", *plugins, "DefaultBinder"])
    return Setup(label, SchedulerConfiguration(profiles=(profile,)))


def node(name: str, cpu: int = 4, memory: str = "8Gi") -> Node:
    return make_node(name).capacity(cpu=cpu, memory=memory, pods=10).build()


def pod(name: str, cpu: int = 1, memory: str = "2Gi") -> Pod:
    return make_pod(name).requests(cpu=cpu, memory=memory).build()


def two_nodes(*pods: Pod) -> InMemoryCluster:
    """Two equal nodes, on the first of which a pod takes a quarter."""
    seated = make_pod("seated").requests(cpu=1, memory="2Gi").node("n1").build()
    return InMemoryCluster([node("n1"), node("n2"), seated, *pods])
