"""Write the sample cluster's manifests: 200 nodes in three zones, and 2,000 pods that want to run on them.

    python generate.py [DIRECTORY]

The default is the directory of this script. The same script writes the same bytes every time: to change the
sample, change this file and run it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Manifest = dict[str, Any]

SEED = 2026
REGION = "north"
ZONES = ("north-a", "north-b", "north-c")
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
POOL = "example.com/pool"
GPU = "nvidia.com/gpu"
SPOT = "example.com/spot"


# --- Nodes --------------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    instance_type: str
    cpu: int
    memory: int  # Gi
    disk: int  # Gi
    nodes: tuple[int, int, int]  # in each zone
    images: tuple[str, ...]  # those that its nodes are likely to have pulled
    gpus: int = 0
    taint: Manifest | None = None


IMAGES = {  # size in MB; an image that is not here is on no node yet
    "monitor:3.2": 48,
    "cart:5.0": 210,
    "catalog:7.3": 340,
    "cassandra:5.0": 390,
    "clickhouse:26.3": 710,
    "etl:12.1": 930,
    "kafka:4.1": 610,
    "ml-serving:2.9": 4_800,
    "ml-training:2.9": 7_400,
    "postgres:18.1": 440,
    "redis:8.2": 140,
    "search:9.4": 870,
    "spark:4.0": 1_150,
    "storefront:8.8": 260,
    "transcode:3.0": 540,
}

POOLS = {
    "general": Pool(
        "general-8", 8, 32, 100, (36, 36, 36), ("cart:5.0", "catalog:7.3", "storefront:8.8", "redis:8.2")
    ),
    "compute": Pool("compute-32", 32, 64, 200, (10, 10, 10), ("etl:12.1", "spark:4.0", "transcode:3.0")),
    "memory": Pool(
        "memory-16",
        16,
        128,
        400,
        (8, 8, 8),
        ("cassandra:5.0", "clickhouse:26.3", "kafka:4.1", "postgres:18.1", "search:9.4"),
    ),
    "gpu": Pool(
        "gpu-32x4",
        32,
        256,
        800,
        (4, 4, 4),
        ("ml-serving:2.9", "ml-training:2.9"),
        gpus=4,
        taint={"key": GPU, "value": "present", "effect": "NoSchedule"},
    ),
    "spot": Pool(
        "general-8",
        8,
        32,
        100,
        (9, 9, 8),
        ("etl:12.1", "spark:4.0"),
        taint={"key": SPOT, "value": "true", "effect": "PreferNoSchedule"},
    ),
}

CORDONED = {"general-a-07", "general-c-21", "compute-b-04"}
NOT_READY = "general-b-13"


def image(name: str) -> str:
    return f"registry.example/{name}"


def node(name: str, pool_name: str, zone: str, rng: random.Random) -> Manifest:
    pool = POOLS[pool_name]
    capacity = {
        "cpu": str(pool.cpu),
        "memory": f"{pool.memory}Gi",
        "ephemeral-storage": f"{pool.disk}Gi",
        "pods": "110",
    }
    # The kubelet keeps something back for the system.
    allocatable = capacity | {
        "cpu": f"{pool.cpu * 1000 - 60 - 5 * pool.cpu}m",
        "memory": f"{pool.memory * 1024 - 1024 - 16 * pool.memory}Mi",
        "ephemeral-storage": f"{pool.disk * 9 // 10}Gi",
    }
    if pool.gpus:
        capacity[GPU] = allocatable[GPU] = str(pool.gpus)

    taints = [pool.taint] if pool.taint else []
    spec: Manifest = {}
    if name in CORDONED:
        spec["unschedulable"] = True
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if name == NOT_READY:
        taints += [
            {"key": "node.kubernetes.io/not-ready", "effect": effect}
            for effect in ("NoSchedule", "NoExecute")
        ]
    if taints:
        spec["taints"] = taints

    pulled = ["monitor:3.2", *sorted(rng.sample(pool.images, min(2, len(pool.images))))]
    labels = {
        "kubernetes.io/arch": "amd64",
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        INSTANCE_TYPE: pool.instance_type,
        "topology.kubernetes.io/region": REGION,
        ZONE: zone,
        POOL: pool_name,
    }
    ready = {"type": "Ready", "status": "False" if name == NOT_READY else "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        **({"spec": spec} if spec else {}),
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [ready],
            "images": [{"names": [image(i)], "sizeBytes": IMAGES[i] * 1_000_000} for i in pulled],
        },
    }


def nodes(rng: random.Random) -> Iterator[Manifest]:
    for pool_name, pool in POOLS.items():
        for zone, count in zip(ZONES, pool.nodes, strict=True):
            for i in range(1, count + 1):
                yield node(f"{pool_name}-{zone[-1]}-{i:02}", pool_name, zone, rng)


# --- Building blocks ----------------------------------------------------------------------------------------


def container(name: str, image_name: str, requests: Mapping[str, str], **more: Any) -> Manifest:
    resources: Manifest = {}
    if requests:
        resources["requests"] = dict(requests)
    # Extended resources must be limited to what they request.
    if GPU in requests:
        resources["limits"] = {GPU: requests[GPU]}
    return {
        "name": name,
        "image": image(image_name),
        **({"resources": resources} if resources else {}),
        **more,
    }


def size(cpu: str, memory: str, **more: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": memory} | {name.replace("_", "-"): amount for name, amount in more.items()}


def metadata(namespace: str, name: str, app: str | None = None) -> Manifest:
    return {"namespace": namespace, "name": name, **({"labels": {"app": app}} if app else {})}


def selector(app: str) -> Manifest:
    return {"matchLabels": {"app": app}}


def workload(
    kind: str,
    namespace: str,
    name: str,
    spec: Mapping[str, Any],
    pod: Manifest,
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata(namespace, name, name),
        "spec": {
            **spec,
            "selector": selector(name),
            "template": {"metadata": {"labels": {"app": name, **(labels or {})}}, "spec": pod},
        },
    }


def deployment(
    namespace: str, name: str, replicas: int, pod: Manifest, labels: Mapping[str, str] | None = None
) -> Manifest:
    return workload("Deployment", namespace, name, {"replicas": replicas}, pod, labels)


def stateful_set(namespace: str, name: str, replicas: int, pod: Manifest) -> Manifest:
    return workload("StatefulSet", namespace, name, {"replicas": replicas, "serviceName": name}, pod)


def job(namespace: str, name: str, pods: int, pod: Manifest) -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(namespace, name, name),
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"restartPolicy": "Never", **pod}},
        },
    }


def service(namespace: str, name: str, port: int = 80, *, headless: bool = False) -> Manifest:
    spec: Manifest = {"selector": {"app": name}, "ports": [{"port": port}]}
    if headless:
        spec["clusterIP"] = "None"
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(namespace, name), "spec": spec}


def disruption_budget(namespace: str, name: str, **limit: int | str) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(namespace, name),
        "spec": {**limit, "selector": selector(name)},
    }


def bare_pod(namespace: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(namespace, name, name), "spec": spec}


def spread(app: str, key: str, when: str, max_skew: int = 1, **more: Any) -> Manifest:
    return {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": selector(app),
        **more,
    }


def term(app: str, key: str, **more: Any) -> Manifest:
    """A pod affinity term: together with, or away from, the pods of an app in the same domain of `key`."""
    return {"labelSelector": selector(app), "topologyKey": key, **more}


def required(*terms: Manifest) -> Manifest:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def preferred(weight: int, pod_term: Manifest) -> Manifest:
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": pod_term}]
    }


def pool_in(*pools: str) -> Manifest:
    return {"matchExpressions": [{"key": POOL, "operator": "In", "values": list(pools)}]}


def needs_pool(*pools: str) -> Manifest:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pool_in(*pools)]}}


def likes_pool(weight: int, *pools: str) -> Manifest:
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": pool_in(*pools)}]
    }


TOLERATES_GPU = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
TOLERATES_SPOT = {"key": SPOT, "operator": "Equal", "value": "true", "effect": "PreferNoSchedule"}


# --- Workloads ----------------------------------------------------------------------------------------------


def platform() -> Iterator[Manifest]:
    """Services of every cluster: a monitor on each node, name service, ingress."""
    monitor = {
        "priorityClassName": "platform",
        "tolerations": [{"operator": "Exists"}],
        "containers": [container("monitor", "monitor:3.2", size("150m", "192Mi"))],
    }
    yield workload("DaemonSet", "platform", "node-monitor", {}, monitor)
    device_plugin = {
        "priorityClassName": "platform",
        "nodeSelector": {POOL: "gpu"},
        "tolerations": [TOLERATES_GPU],
        "containers": [container("device-plugin", "gpu-device-plugin:1.19", size("100m", "128Mi"))],
    }
    yield workload("DaemonSet", "platform", "gpu-device-plugin", {}, device_plugin)

    dns = {
        "priorityClassName": "platform",
        "affinity": {"podAntiAffinity": preferred(100, term("dns", HOSTNAME))},
        "topologySpreadConstraints": [spread("dns", ZONE, "DoNotSchedule", minDomains=3)],
        "containers": [container("dns", "dns:1.13", size("250m", "256Mi"))],
    }
    yield deployment("platform", "dns", 9, dns)
    yield service("platform", "dns", 53)
    yield disruption_budget("platform", "dns", maxUnavailable=1)

    ports = [{"containerPort": port, "hostPort": port} for port in (80, 443)]
    ingress = {
        "priorityClassName": "platform",
        "affinity": {"nodeAffinity": needs_pool("general")},
        "topologySpreadConstraints": [spread("ingress", ZONE, "DoNotSchedule")],
        "containers": [container("proxy", "ingress:2.7", size("2", "2Gi"), ports=ports)],
    }
    yield deployment("platform", "ingress", 12, ingress)
    yield service("platform", "ingress", 443)
    yield disruption_budget("platform", "ingress", minAvailable="75%")

    metrics = {
        "priorityClassName": "platform",
        "affinity": {"podAntiAffinity": required(term("metrics", ZONE))},
        "containers": [container("store", "metrics:3.8", size("3", "20Gi", ephemeral_storage="60Gi"))],
    }
    yield stateful_set("platform", "metrics", 3, metrics)
    yield service("platform", "metrics", 9090, headless=True)


class App(NamedTuple):
    name: str
    replicas: int
    cpu: str
    memory: str
    image: str


SHOP = (
    App("storefront", 72, "1", "1536Mi", "storefront:8.8"),
    App("cart", 36, "900m", "1Gi", "cart:5.0"),
    App("catalog", 54, "1200m", "3Gi", "catalog:7.3"),
    App("pricing", 24, "1500m", "1Gi", "pricing:2.2"),
    App("inventory", 30, "700m", "1Gi", "inventory:4.1"),
    App("accounts", 24, "500m", "768Mi", "accounts:6.5"),
    App("wishlists", 42, "400m", "2Gi", "wishlists:1.9"),
    App("reviews", 18, "350m", "512Mi", "reviews:3.3"),
    App("shipping", 15, "600m", "640Mi", "shipping:2.0"),
    App("notifications", 16, "200m", "384Mi", "notifications:1.4"),
    App("media", 30, "1500m", "2Gi", "media:5.6"),
)


def shop() -> Iterator[Manifest]:
    """The services that customers see: spread over zones as far as possible, and over nodes by preference."""
    for app in SHOP:
        pod = {
            "priorityClassName": "serving",
            "affinity": {"podAntiAffinity": preferred(60, term(app.name, HOSTNAME))},
            "topologySpreadConstraints": [spread(app.name, ZONE, "ScheduleAnyway")],
            "containers": [container("app", app.image, size(app.cpu, app.memory))],
        }
        yield deployment("shop", app.name, app.replicas, pod, {"tier": "web"})
        yield service("shop", app.name)
    for name in ("storefront", "cart", "catalog"):
        yield disruption_budget("shop", name, minAvailable="80%")

    # What takes the money may neither share a node nor lean to one zone.
    for name, replicas in (("checkout", 30), ("payments", 18)):
        pod = {
            "priorityClassName": "critical",
            "affinity": {"podAntiAffinity": required(term(name, HOSTNAME))},
            "topologySpreadConstraints": [spread(name, ZONE, "DoNotSchedule")],
            # The migration needs more than the service: it sets what the pod requests.
            "initContainers": [
                container("migrate", f"{name}:4.4", size("1500m", "512Mi")),
                container("mesh", "mesh:1.30", size("150m", "128Mi"), restartPolicy="Always"),
            ],
            "containers": [container("app", f"{name}:4.4", size("1", "1Gi"))],
        }
        yield deployment("shop", name, replicas, pod, {"tier": "money"})
        yield service("shop", name)
        yield disruption_budget("shop", name, maxUnavailable=1)

    # A fraud check sits next to payments, and away from everything that the web tier runs.
    near = term("payments", ZONE)
    far = {"labelSelector": {"matchLabels": {"tier": "web"}}, "topologyKey": HOSTNAME}
    fraud = {
        "priorityClassName": "critical",
        "affinity": {
            "podAffinity": required(near),
            "podAntiAffinity": preferred(40, far),
        },
        "containers": [container("app", "fraud:1.1", size("800m", "4Gi"))],
    }
    yield deployment("shop", "fraud", 12, fraud)


def search() -> Iterator[Manifest]:
    index = {
        "priorityClassName": "serving",
        "affinity": {
            "nodeAffinity": needs_pool("memory"),
            "podAntiAffinity": required(term("search-index", HOSTNAME)),
        },
        "containers": [container("index", "search:9.4", size("4", "40Gi", ephemeral_storage="120Gi"))],
    }
    yield stateful_set("search", "search-index", 18, index)
    yield service("search", "search-index", 9200, headless=True)
    yield disruption_budget("search", "search-index", maxUnavailable=1)
    query = {
        "priorityClassName": "serving",
        "affinity": {"podAffinity": preferred(50, term("search-index", ZONE))},
        "topologySpreadConstraints": [
            spread("search-query", ZONE, "DoNotSchedule", max_skew=2),
            spread("search-query", HOSTNAME, "ScheduleAnyway", max_skew=2),
        ],
        "containers": [container("query", "search:9.4", size("1800m", "3Gi"))],
    }
    yield deployment("search", "search-query", 42, query, {"tier": "web"})
    yield service("search", "search-query")


STORES = (
    App("kafka", 9, "3", "22Gi", "kafka:4.1"),
    App("cassandra", 15, "5", "36Gi", "cassandra:5.0"),
    App("postgres", 9, "3", "24Gi", "postgres:18.1"),
    App("clickhouse", 6, "7", "48Gi", "clickhouse:26.3"),
)


def data() -> Iterator[Manifest]:
    """Stores: one of a kind on a node, on nodes with much memory where possible."""
    for app in STORES:
        pod = {
            "priorityClassName": "critical",
            "affinity": {
                "nodeAffinity": likes_pool(80, "memory"),
                "podAntiAffinity": required(term(app.name, HOSTNAME)),
            },
            "topologySpreadConstraints": [spread(app.name, ZONE, "DoNotSchedule")],
            "containers": [
                container("store", app.image, size(app.cpu, app.memory, ephemeral_storage="50Gi"))
            ],
        }
        yield stateful_set("data", app.name, app.replicas, pod)
        yield service("data", app.name, headless=True)
        yield disruption_budget("data", app.name, maxUnavailable=1)
    redis = {
        "priorityClassName": "serving",
        "affinity": {"podAntiAffinity": preferred(100, term("redis", HOSTNAME))},
        "containers": [container("redis", "redis:8.2", size("1", "8Gi"))],
    }
    yield stateful_set("data", "redis", 24, redis)
    yield service("data", "redis", 6379, headless=True)
    # One warmer beside each cache; the caches are in another namespace, found by its label.
    beside = term("redis", HOSTNAME, namespaceSelector={"matchLabels": {"team": "data"}})
    alone = term("cache-warmer", HOSTNAME)
    warmer = {
        "priorityClassName": "serving",
        "affinity": {"podAffinity": required(beside), "podAntiAffinity": required(alone)},
        "containers": [container("warmer", "cache-warmer:1.0", size("100m", "128Mi"))],
    }
    yield deployment("shop", "cache-warmer", 20, warmer)


def batch() -> Iterator[Manifest]:
    """Work that can wait: cheap nodes first."""
    for name, pods, image_name, requests, affinity in (
        ("etl-orders", 90, "etl:12.1", size("2", "4Gi"), likes_pool(100, "spot")),
        ("etl-clicks", 70, "etl:12.1", size("1500m", "6Gi"), likes_pool(100, "spot")),
        ("transcode", 66, "transcode:3.0", size("5", "5Gi", ephemeral_storage="10Gi"), needs_pool("compute")),
        ("spark-forecast", 72, "spark:4.0", size("3", "9Gi"), likes_pool(70, "compute", "spot")),
        ("reports", 148, "reports:2.1", size("500m", "1Gi"), likes_pool(100, "spot")),
    ):
        pod = {
            "priorityClassName": "batch",
            "affinity": {"nodeAffinity": affinity},
            "tolerations": [TOLERATES_SPOT],
            "containers": [container("work", image_name, requests)],
        }
        yield job("batch", name, pods, pod)


def learning() -> Iterator[Manifest]:
    for name, pods, gpus, cpu, memory in (
        ("train-ranking", 4, 4, "24", "160Gi"),
        ("train-vision", 5, 2, "12", "80Gi"),
        ("tune-embeddings", 8, 1, "5", "28Gi"),
    ):
        pod = {
            "priorityClassName": "batch",
            "tolerations": [TOLERATES_GPU],
            "containers": [container("train", "ml-training:2.9", {**size(cpu, memory), GPU: str(gpus)})],
        }
        yield job("ml", name, pods, pod)
    serving = {
        "priorityClassName": "serving",
        "tolerations": [TOLERATES_GPU],
        "containers": [container("model", "ml-serving:2.9", {**size("3", "16Gi"), GPU: "1"})],
    }
    yield deployment("ml", "recommend", 9, serving, {"tier": "web"})
    yield service("ml", "recommend")
    notebook = {
        "tolerations": [TOLERATES_SPOT],
        "containers": [container("notebook", "notebook:7.4", size("500m", "4Gi"))],
    }
    yield stateful_set("ml", "notebook", 24, notebook)
    yield service("ml", "notebook", 8888, headless=True)


def internal(rng: random.Random) -> Iterator[Manifest]:
    """The long tail: many small services, most of which ask for nothing special."""
    for i in range(1, 41):
        name = f"tool-{i:02}"
        requests = size(f"{rng.randrange(1, 9) * 50}m", f"{rng.randrange(1, 9) * 128}Mi")
        pod: Manifest = {"containers": [container("app", f"{name}:1", requests)]}
        yield deployment("internal", name, rng.randint(3, 10), pod)
        yield service("internal", name)
    for i in range(1, 26):
        name = f"preview-{i:02}"
        # Previews of a branch: nobody measured what they need, and some request nothing at all.
        requests = {} if rng.random() < 0.3 else size(f"{rng.randrange(2, 7) * 50}m", "256Mi")
        pod = {
            "priorityClassName": "batch",
            "tolerations": [TOLERATES_SPOT],
            "containers": [container("app", "preview:latest", requests)],
        }
        yield deployment("preview", name, rng.randint(6, 24), pod)


def odd_pods() -> Iterator[Manifest]:
    """Pods without a controller; the last one is not ready to be scheduled."""
    yield bare_pod(
        "platform",
        "static-proxy",
        {
            "nodeName": "general-a-01",  # a pod that a kubelet runs from a file is bound when it appears
            "priorityClassName": "platform",
            "containers": [container("proxy", "proxy:1.0", size("100m", "64Mi"))],
        },
    )
    yield bare_pod(
        "platform",
        "disk-check",
        {
            "nodeSelector": {HOSTNAME: "memory-b-03"},
            "containers": [container("check", "disk-check:1.0", size("50m", "32Mi"))],
        },
    )
    yield bare_pod("platform", "debug-shell", {"containers": [container("shell", "shell:1.0", {})]})
    yield bare_pod(
        "batch",
        "waits-for-quota",
        {
            "schedulingGates": [{"name": "example.com/quota"}],
            "containers": [container("work", "etl:12.1", size("1", "1Gi"))],
        },
    )


def hopeless() -> Iterator[Manifest]:
    """Pods that can't run here, each for a reason of its own."""
    no_gpus = [container("train", "ml-training:2.9", {**size("16", "64Gi"), GPU: "16"})]
    yield bare_pod("ml", "giant-training", {"tolerations": [TOLERATES_GPU], "containers": no_gpus})
    yield bare_pod(
        "batch", "in-memory-join", {"containers": [container("join", "spark:4.0", size("4", "512Gi"))]}
    )
    yield bare_pod(
        "batch", "single-big-build", {"containers": [container("build", "build:1.0", size("48", "32Gi"))]}
    )
    archive = {
        "nodeSelector": {"example.com/disk": "tape"},
        "containers": [container("archive", "archive:1.0", size("500m", "1Gi"))],
    }
    yield deployment("data", "archive", 2, archive)
    # More replicas than zones, and none may share a zone.
    quorum = {
        "affinity": {"podAntiAffinity": required(term("quorum", ZONE))},
        "containers": [container("quorum", "quorum:1.0", size("200m", "256Mi"))],
    }
    yield stateful_set("data", "quorum", 5, quorum)
    yield service("data", "quorum", headless=True)
    # The nodes that it wants are tainted, and it doesn't tolerate that.
    probe = {
        "affinity": {"nodeAffinity": needs_pool("gpu")},
        "containers": [container("probe", "gpu-probe:1.0", size("100m", "64Mi"))],
    }
    yield deployment("ml", "gpu-probe", 2, probe)


def workloads(rng: random.Random) -> Iterator[Manifest]:
    yield from platform()
    yield from shop()
    yield from search()
    yield from data()
    yield from batch()
    yield from learning()
    yield from internal(rng)
    yield from odd_pods()
    yield from hopeless()


# --- The rest -----------------------------------------------------------------------------------------------


def namespaces() -> Iterator[Manifest]:
    for name, team in (
        ("batch", "data"),
        ("data", "data"),
        ("internal", "platform"),
        ("ml", "ml"),
        ("platform", "platform"),
        ("preview", "shop"),
        ("search", "search"),
        ("shop", "shop"),
    ):
        labels = {"kubernetes.io/metadata.name": name, "team": team}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def priority_classes() -> Iterator[Manifest]:
    for name, value, more in (
        ("platform", 1_000_000, {}),
        ("critical", 100_000, {}),
        ("serving", 10_000, {}),
        ("standard", 1_000, {"globalDefault": True}),
        ("batch", 100, {"preemptionPolicy": "Never"}),
    ):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            **more,
        }


class Dumper(yaml.SafeDumper):
    """Writes what has no inner structure on one line, and never an alias."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 (PyYAML's signature)
        return True


def dump(manifest: object) -> str:
    text: str = yaml.dump(manifest, Dumper=Dumper, sort_keys=False, default_flow_style=None, width=1000)
    return text


def documents(manifests: Iterable[Manifest]) -> str:
    return "---\n".join(map(dump, manifests))


def files() -> dict[str, str]:
    """The text of each file by name."""
    rng = random.Random(SEED)
    header = "# Written by generate.py.\n"
    return {
        "namespaces.yaml": header + documents(namespaces()),
        "nodes.yaml": header + dump({"apiVersion": "v1", "kind": "List", "items": list(nodes(rng))}),
        "priorityclasses.yaml": header + documents(priority_classes()),
        "workloads.yaml": header + documents(workloads(rng)),
    }


def main(arguments: list[str]) -> None:
    directory = Path(arguments[0]) if arguments else Path(__file__).parent
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (directory / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
