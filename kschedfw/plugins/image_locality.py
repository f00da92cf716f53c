"""ImageLocality: prefers nodes that have the pod's images."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence, Set
from functools import cached_property
from types import MappingProxyType

import numpy as np

from kschedfw import (
    MAX_NODE_SCORE,
    Handle,
    ImageStateSummary,
    IntArray,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    Reads,
    hookimpl,
)
from kschedfw.framework.versions.v1_37 import IMAGE_VOLUMES
from kschedfw.plugins._resources import Amounts

_MIB = 1024 * 1024

# Most images lie between these sizes. A smaller sum earns no score, a larger one (per container or volume) no higher
# score.
_LEAST_WORTH = 23 * _MIB
_MOST_WORTH_PER_SOURCE = 1000 * _MIB
_ENOUGH = 1 << 50
"""A sum of image sizes that is large enough for the highest score of any pod."""


class ImageLocality(Plugin):
    """Prefers nodes that already have large images of the pod's containers.

    An image's size counts in proportion to the share of nodes that have it, so that a rare image doesn't draw
    all its pods to one node. A node's image states have the number of nodes with the image, but not the number
    of all nodes; so the signature has it.
    """

    name = "ImageLocality"
    reads = Reads.NODE

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._counts_volumes = handle.feature_gates.follows(IMAGE_VOLUMES)

    def sign(self, pod: Pod) -> Hashable | None:
        """Return the pod's images that any node has. Pods without any share one signature: every node scores 0."""
        known = self._index.names
        present = [name for name in _images(pod) if name in known] if known else []
        return (*sorted(present), self._sources(pod), len(self.handle.snapshot)) if present else ()

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        return frozenset(normalized_image_name(container.image) for container in containers)

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        images = node_info.image_states
        if not images:
            return 0
        present = 0
        for name in _images(pod):
            image = images.get(name)
            if image is not None:
                present += _worth(image, len(self.handle.snapshot))
        return int(_scaled(present, self._sources(pod))) if present else 0

    @hookimpl
    def score_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray:
        present = np.zeros(len(nodes), dtype=np.int64)
        for name in _images(pod):
            for image, where in self._index.rows_of(name).items():
                present[list(where)] += _worth(image, len(nodes))
        scores: IntArray = _scaled(present[rows], self._sources(pod))
        return scores

    def _sources(self, pod: Pod) -> int:
        """Return the number of containers and, since v1.37, image volumes: each raises the best size."""
        spec = pod.spec
        containers = len(spec.init_containers) + len(spec.containers)
        if not self._counts_volumes or not spec.volumes:
            return containers
        return containers + sum(volume.image is not None for volume in spec.volumes)

    @cached_property
    def _index(self) -> ImageIndex:
        return ImageIndex(self.handle.snapshot.table)


def _images(pod: Pod) -> list[str]:
    """Return the images of the pod's containers and image volumes, by the names that nodes report."""
    spec = pod.spec
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    if spec.volumes:
        names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return [normalized_image_name(name) for name in names]


def _worth(image: ImageStateSummary, number_of_nodes: int) -> int:
    # A larger size earns no higher score, and a sum of sizes near 2⁶³ wouldn't fit a column.
    # The share is divided first, as in Go, since floats are rounded at each step.
    return min(int(float(image.size) * (image.num_nodes / number_of_nodes)), _ENOUGH)


def _scaled(size: Amounts, sources: int) -> Amounts:
    """Return the score of so many bytes of images, on one node (int) or on many (array)."""
    most = _MOST_WORTH_PER_SOURCE * sources
    worth = np.maximum(np.minimum(size, most), _LEAST_WORTH) - _LEAST_WORTH
    return MAX_NODE_SCORE * worth // (most - _LEAST_WORTH)


@functools.lru_cache(maxsize=4096)
def normalized_image_name(name: str) -> str:
    """Return the name as nodes report it: with the tag `latest` if it has neither tag nor digest."""
    # A colon before the last slash belongs to the registry's port.
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


_NOWHERE: Mapping[ImageStateSummary, Set[int]] = MappingProxyType({})


class ImageIndex:
    """The rows of the nodes with each image, by image name and the state that the nodes report.

    Sizes and counts are mostly the same on all nodes, so the rows of an image are in few sets. With a score for each
    distinct set of a node's images in its place, a pod took 1.7 ms and not 0.4 on 1,000 nodes with 30 of 300 images
    each. As a pure hook the score would read more than 64 places, one for each image.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_name: dict[str, dict[ImageStateSummary, set[int]]] = {}
        self.names: Set[str] = self._by_name.keys()
        """The images that any node has."""
        self._fill()
        table.listen(self, Reads.NODE)

    def rows_of(self, name: str) -> Mapping[ImageStateSummary, Set[int]]:
        return self._by_name.get(name, _NOWHERE)

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:
        if new.image_states is not old.image_states:
            self._remove(row, old)
            self._add(row, new)

    def rows_moved(
        self,
        moved_from: IntArray,  # noqa: ARG002  # see TableListener
        gone: Sequence[NodeInfo],  # noqa: ARG002  # see TableListener
        added: Sequence[NodeInfo],
    ) -> None:
        # A node that comes or goes changes the counts of its images on all nodes, so the index is built again.
        if self._by_name or any(info.image_states for info in added):
            self.table_rebuilt()

    def table_rebuilt(self) -> None:
        self._by_name.clear()
        self._fill()

    def _fill(self) -> None:
        for row, info in enumerate(self._table.node_infos):
            self._add(row, info)

    def _add(self, row: int, info: NodeInfo) -> None:
        for name, state in info.image_states.items():
            self._by_name.setdefault(name, {}).setdefault(state, set()).add(row)

    def _remove(self, row: int, info: NodeInfo) -> None:
        for name, state in info.image_states.items():
            by_state = self._by_name[name]
            by_state[state].remove(row)
            if not by_state[state]:
                del by_state[state]
            if not by_state:
                del self._by_name[name]
