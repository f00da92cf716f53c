"""ImageLocality: nodes that have the images already."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from typing import ClassVar

from kschedfw.api.pod import Pod
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.results import MAX_NODE_SCORE

_MIB = 1024 * 1024

# Most images lie between these sizes. Less isn't worth a preference; more (per container) earns no more.
_LEAST_WORTH = 23 * _MIB
_MOST_WORTH_PER_CONTAINER = 1000 * _MIB


class ImageLocality(Plugin):
    """Prefers nodes that already have large images of the pod's containers.

    An image's size counts in proportion to the share of nodes that have it, so that a rare image doesn't draw
    all its pods to one node. That makes the score depend on other nodes, too.
    """

    name: ClassVar[str] = "ImageLocality"
    reads: ClassVar[Reads | None] = Reads.CLUSTER

    def sign(self, pod: Pod) -> Hashable | None:
        return tuple(sorted(_images(pod))), _container_count(pod)

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        images = node_info.image_states
        if not images:
            return 0
        number_of_nodes = len(self.handle.snapshot)
        present = 0
        for name in _images(pod):
            image = images.get(normalized_image_name(name))
            if image is not None:
                present += int(float(image.size) * (image.num_nodes / number_of_nodes))
        return _scaled(present, _container_count(pod))


def _images(pod: Pod) -> Iterator[str]:
    """The images of the pod's containers and image volumes."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield container.image
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield volume.image.reference


def _container_count(pod: Pod) -> int:
    # Volumes count towards what is present, but v1.36 doesn't raise the upper bound for them.
    return len(pod.spec.init_containers) + len(pod.spec.containers)


def _scaled(size: int, containers: int) -> int:
    most = _MOST_WORTH_PER_CONTAINER * containers
    if size <= _LEAST_WORTH:
        return 0
    return MAX_NODE_SCORE * (min(size, most) - _LEAST_WORTH) // (most - _LEAST_WORTH)


@functools.lru_cache(maxsize=4096)
def normalized_image_name(name: str) -> str:
    """The name as nodes report it: with the tag `latest` where it has neither tag nor digest."""
    # A colon before the last slash belongs to the registry's port.
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
