"""Hypothesis strategies for API objects.

Objects are made from manifests, so they are valid, have their defaults, and can be shown as YAML. Names, labels and
amounts come from small sets, so that selectors match and amounts compete.

    @given(pods(), nodes())
    def test_something(pod: Pod, node: Node) -> None: ...

This module needs hypothesis: `pip install 'kschedfw[testing]'`.

`pod_manifests` and `node_manifests` generate the manifests, to which more fields can be added; `clusters` generates
nodes, bound pods and pending pods. A failing test prints manifests. `damaged` draws copies of any JSON data
in which a few values are wrong.

Strategies that are drawn from often are constants: hypothesis checks every new strategy, which takes longer than
drawing from it. The smallest draw must be the plainest object: hypothesis shrinks by making numbers small and lists
short, and all draws for one part must be consecutive, so that the part can be removed at once.
"""

from kschedfw.api.extensions import how_to_install
from kschedfw.scheduler.errors import MissingExtraError

try:
    import hypothesis as _hypothesis  # noqa: F401  # tried here, before a module below fails for want of it
except ImportError as error:
    raise MissingExtraError(
        f"generated clusters need hypothesis; install it with: {how_to_install('kschedfw', 'testing')}"
    ) from error

from kschedfw.testing.strategies.clusters import DrawnCluster, clusters, node_manifests, nodes
from kschedfw.testing.strategies.damage import RUBBISH, damaged
from kschedfw.testing.strategies.parts import (
    EFFECTS,
    GPU,
    LABELS,
    NAMESPACES,
    ZONES,
    Manifest,
    label_selectors,
    labels,
    node_selector_terms,
    quantities,
    quantity_texts,
    requirements,
    resources,
)
from kschedfw.testing.strategies.pods import pod_manifests, pods, tolerations

__all__ = [
    "EFFECTS",
    "GPU",
    "LABELS",
    "NAMESPACES",
    "RUBBISH",
    "ZONES",
    "DrawnCluster",
    "Manifest",
    "clusters",
    "damaged",
    "label_selectors",
    "labels",
    "node_manifests",
    "node_selector_terms",
    "nodes",
    "pod_manifests",
    "pods",
    "quantities",
    "quantity_texts",
    "requirements",
    "resources",
    "tolerations",
]
