"""ImageLocality: nodes that have the images already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.builders import NodeBuilder
from kschedfw.api.objects import pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.plugins.image_locality import ImageLocality, normalized_image_name
from kschedfw.testing import FrameworkHarness

MIB = 1024 * 1024


def scores(pod: Pod, *nodes: NodeBuilder) -> dict[str, int]:
    return FrameworkHarness(ImageLocality, nodes=[node.build() for node in nodes]).score(pod)


def running(*images: str, init: tuple[str, ...] = ()) -> Pod:
    spec = {
        "containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)],
        "initContainers": [{"name": f"i{i}", "image": image} for i, image in enumerate(init)],
    }
    return pod_from_manifest({"metadata": {"name": "pod"}, "spec": spec})


def test_without_the_image_a_node_gets_nothing() -> None:
    assert scores(running("app:1"), make_node("a"), make_node("b").image("other:1", size=500 * MIB)) == {
        "a": 0,
        "b": 0,
    }


def test_size_counts_between_23_and_1000_mib_in_proportion_to_the_share_of_nodes_that_have_it() -> None:
    # on one of two nodes: 600 MiB count as 300 MiB, (300 − 23) / (1000 − 23) = 28.3 %
    assert scores(running("app:1"), make_node("a").image("app:1", size=600 * MIB), make_node("b")) == {
        "a": 28,
        "b": 0,
    }


@pytest.mark.parametrize(
    ("size", "score"), [(23 * MIB, 0), (22 * MIB, 0), (1000 * MIB, 100), (4000 * MIB, 100), (2**63 - 1, 100)]
)
def test_sizes_beyond_the_bounds_are_cut_off(size: int, score: int) -> None:
    assert scores(running("app:1"), make_node("a").image("app:1", size=size)) == {"a": score}


def test_the_upper_bound_grows_with_the_containers_init_containers_included() -> None:
    node = make_node("a").image("app:1", size=1000 * MIB)
    # (1000 − 23) / (2000 − 23) = 49.4 %
    assert scores(running("app:1", "missing:1"), node) == {"a": 49}
    assert scores(running("app:1", init=("missing:1",)), node) == {"a": 49}


def test_init_containers_images_count_and_an_image_used_twice_counts_twice() -> None:
    node = make_node("a").image("app:1", size=1000 * MIB)
    assert scores(running("missing:1", init=("app:1",)), node) == {"a": 49}
    assert scores(running("app:1", "app:1"), node) == {"a": 100}


def test_an_image_has_many_names() -> None:
    node = make_node("a").image("app:1", "mirror/app@sha256:abc", size=1000 * MIB)
    assert scores(running("mirror/app@sha256:abc"), node) == {"a": 100}


@pytest.mark.parametrize(
    ("name", "normalized"),
    [
        ("app", "app:latest"),
        ("app:1", "app:1"),
        ("registry.example:5000/app", "registry.example:5000/app:latest"),
        ("registry.example:5000/app:1", "registry.example:5000/app:1"),
        ("app@sha256:abc", "app@sha256:abc"),
    ],
)
def test_a_name_without_tag_or_digest_means_latest(name: str, normalized: str) -> None:
    assert normalized_image_name(name) == normalized


@given(st.lists(st.tuples(st.integers(0, 5000 * MIB), st.booleans()), min_size=1, max_size=5))
def test_scores_are_within_bounds(images: list[tuple[int, bool]]) -> None:
    nodes = []
    for index, (size, present) in enumerate(images):
        node = make_node(f"n{index}")
        nodes.append(node.image("app:1", size=size) if present else node)
    assert all(0 <= score <= 100 for score in scores(running("app:1"), *nodes).values())


def test_pods_with_the_same_images_share_their_answers() -> None:
    node = make_node().image("a:latest", size=MIB).image("b:latest", size=MIB).build()
    plugin = FrameworkHarness(ImageLocality, nodes=[node]).framework.plugins["ImageLocality"]
    assert plugin.sign(running("a", "b")) == plugin.sign(running("b", init=("a",)))
    assert plugin.sign(running("a")) != plugin.sign(running("a", "a"))
    assert plugin.sign(make_pod().image("a").build()) == plugin.sign(running("a"))


def test_images_that_are_nowhere_make_no_difference_between_pods() -> None:
    harness = FrameworkHarness(ImageLocality, nodes=[make_node("a").build()])
    plugin = harness.framework.plugins["ImageLocality"]
    assert plugin.sign(running("a")) == plugin.sign(running("b", "c"))
    harness.snapshot.update([NodeInfo.of(make_node("a").image("b:latest", size=MIB).build())])
    harness.snapshot.update_image_states()
    assert plugin.sign(running("a")) != plugin.sign(running("b", "c"))
    harness.snapshot.replace([NodeInfo.of(make_node("c").build())])
    assert plugin.sign(running("a")) == plugin.sign(running("b", "c"))


def test_another_number_of_nodes_is_another_signature() -> None:
    harness = FrameworkHarness(ImageLocality, nodes=[make_node("a").image("app:1", size=MIB).build()])
    plugin = harness.framework.plugins["ImageLocality"]
    before = plugin.sign(running("app:1"))
    harness.snapshot.replace([*harness.snapshot.node_infos, NodeInfo.of(make_node("b").build())])
    assert plugin.sign(running("app:1")) != before


def test_an_image_volume_counts_towards_what_is_present_but_not_towards_the_upper_bound() -> None:
    volume = {"name": "model", "image": {"reference": "model:1"}}
    spec = {"containers": [{"name": "main", "image": "app:1"}], "volumes": [volume]}
    pod = pod_from_manifest({"metadata": {"name": "pod"}, "spec": spec})

    assert scores(running("app:1"), make_node("a").image("model:1", size=1000 * MIB)) == {"a": 0}
    assert scores(pod, make_node("a").image("model:1", size=1000 * MIB)) == {"a": 100}
