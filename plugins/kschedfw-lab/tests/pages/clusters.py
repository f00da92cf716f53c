"""Clusters for the tests of the page."""

from __future__ import annotations

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod

HOSTILE = "</script><script>document.title = 'broken in'</script><img src=x onerror=alert(1)>"
"""A text that no label has in a real cluster; manifests from elsewhere may have it."""


def nodes() -> list[Node]:
    """Two that are half full of CPU or of memory, and an empty one that is cordoned."""
    return [
        make_node("cpu-taken")
        .capacity(cpu=4, memory="8Gi", pods=10)
        .labels(zone="a", note=HOSTILE)
        .build(check=False),
        make_node("memory-taken").capacity(cpu=4, memory="8Gi", pods=10).labels(zone="b").build(),
        make_node("shut").capacity(cpu=4, memory="8Gi", pods=10).labels(zone="b").unschedulable().build(),
    ]


def pods() -> list[Pod]:
    """One on each of the first two nodes, one that fits, one that never does, and one with a gate."""
    return [
        make_pod("busy").requests(cpu="2", memory="1Gi").node("cpu-taken").build(),
        make_pod("cache").requests(cpu="1", memory="4Gi").node("memory-taken").build(),
        make_pod("web").requests(cpu="1", memory="1Gi").annotations({"why": HOSTILE}).build(),
        make_pod("huge").requests(cpu="64").build(),
        make_pod("gated").requests(cpu="1").scheduling_gate("example.com/quota").build(),
    ]


def cluster() -> InMemoryCluster:
    return InMemoryCluster([*nodes(), *pods()])
