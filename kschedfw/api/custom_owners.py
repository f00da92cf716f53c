"""Well-known custom kinds whose controllers make pods: what they make, as manifests of Kubernetes' own kinds.

JobSet and LeaderWorkerSet make Jobs and StatefulSets, a Rollout a ReplicaSet; the others make pods. Labels, names and
numbers are those of the controllers. Their webhooks' changes of single pods, such as exclusive topologies, aren't made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from kschedfw.api.custom import CustomObject, custom_manifest
from kschedfw.api.field_errors import FieldError, FieldErrors, join, shown
from kschedfw.api.kinds import KINDS, group_of
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen

Manifest: TypeAlias = dict[str, Any]

_ENDED: Final = frozenset(
    {"Complete", "Completed", "Failed", "Succeeded", "Aborted", "Terminated", "Finished"}
)


@frozen
class Part:
    """Equal objects that the controller of a custom object makes.

    Attributes:
        kind: the kind of the objects: Job, StatefulSet, ReplicaSet or Pod.
        copies: the number of objects.
        path: the place in the custom object of what they are made of.
        replaced: the beginning of paths in the made object that stands for `path`.
        manifest: returns the manifest of the object with this number, without kind and metadata of its owner.
    """

    kind: str
    copies: int
    path: str
    replaced: str
    manifest: Callable[[int], Manifest]

    def place(self, path: str) -> str:
        """Translate a path in an object that was made into the path of the same value in the custom object."""
        if not path.startswith(self.replaced):
            return self.path
        return join(self.path, path.removeprefix(self.replaced).removeprefix("."))


def is_owner(obj: Named) -> bool:
    """Tell whether the object is of a well-known kind whose controller makes pods."""
    return isinstance(obj, CustomObject) and _key(obj) in _OWNERS


def owners_without_pods(objects: Iterable[Named]) -> list[CustomObject]:
    """Return the well-known owners none of whose pods is among the objects. Their pods' names begin with theirs."""
    everything = list(objects)
    owners = [obj for obj in everything if isinstance(obj, CustomObject) and is_owner(obj)]
    if not owners:
        return []
    beginnings = set()
    for pod in (obj for obj in everything if isinstance(obj, Pod)):
        parts = pod.name.split("-")
        beginnings |= {(pod.namespace, "-".join(parts[:count])) for count in range(1, len(parts))}
    return [obj for obj in owners if (obj.namespace or DEFAULT_NAMESPACE, obj.name) not in beginnings]


def hindrance(obj: CustomObject) -> str:
    """Return the reason why the owner's controller makes no pods now; empty if it makes some."""
    spec, status = _map(obj.content.get("spec")), _map(obj.content.get("status"))
    if obj.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if spec.get("suspend") is True or _map(spec.get("runPolicy")).get("suspend") is True:
        return "it is suspended"
    if obj.kind.name.endswith(("Job", "JobSet")):
        ended = {_map(status.get("state")).get("phase"), status.get("terminalState")}
        ended |= {
            _map(each).get("type")
            for each in _items(status.get("conditions"))
            if _map(each).get("status") == "True"
        }
        if any(isinstance(each, str) and each in _ENDED for each in ended):
            return "it has finished"
    return ""


def parts_of(obj: CustomObject) -> list[Part]:
    """Return what the owner's controller makes.

    Raises:
        FieldErrors: a number or an object has the wrong type.
    """
    return list(_OWNERS[_key(obj)](_FieldValue("", custom_manifest(obj)), obj.name))


def made_manifest(part: Part, number: int, owner: CustomObject) -> Manifest:
    """Return the whole manifest of an object of the part."""
    made = part.manifest(number)
    reference = {
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.name,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    metadata = {
        **made["metadata"],
        "namespace": owner.namespace or DEFAULT_NAMESPACE,
        "ownerReferences": [reference],
    }
    version = KINDS[part.kind].api_version
    return {"apiVersion": version, "kind": part.kind, **made, "metadata": metadata}


def _key(obj: CustomObject) -> tuple[str, str]:
    return group_of(obj.kind.api_version), obj.kind.name


# --- Reading -----------------------------------------------------------------------------------------------------


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


@frozen
class _FieldValue:
    """A value in a custom object, with its path."""

    path: str
    value: Any

    def __getitem__(self, key: str) -> _FieldValue:
        """Return the field of an object; None stands for one that is missing."""
        if self.value is not None and not isinstance(self.value, dict):
            raise self._wrong("an object")
        path = f"{self.path}.{key}" if self.path else key
        return _FieldValue(path, (self.value or {}).get(key))

    def items(self) -> list[_FieldValue]:
        """Return the items of a list; none if it is missing."""
        if self.value is not None and not isinstance(self.value, list):
            raise self._wrong("a list")
        return [_FieldValue(f"{self.path}[{index}]", item) for index, item in enumerate(self.value or ())]

    def fields(self) -> list[tuple[str, _FieldValue]]:
        return [(str(key), self[str(key)]) for key in self.map()]

    def map(self) -> Manifest:
        if self.value is not None and not isinstance(self.value, dict):
            raise self._wrong("an object")
        return self.value or {}

    def number(self, default: int) -> int:
        """Return a number of objects, which isn't negative."""
        if self.value is None:
            return default
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self._wrong("a number that is not negative")
        return self.value

    def text(self, default: str = "") -> str:
        if self.value is not None and not isinstance(self.value, str):
            raise self._wrong("a string")
        return self.value or default

    def _wrong(self, expected: str) -> FieldErrors:
        return FieldErrors([FieldError(self.path, f"Invalid value: {shown(self.value)}: must be {expected}")])


def _labelled(template: _FieldValue, labels: Mapping[str, str]) -> Manifest:
    """Return the template of pods with more labels."""
    metadata = template["metadata"]
    return {
        **template.map(),
        "metadata": {**metadata.map(), "labels": {**metadata["labels"].map(), **labels}},
    }


def _pods(
    template: _FieldValue, name: str, copies: int, labels: Mapping[str, str], **spec: object
) -> Iterator[Part]:
    """Yield the part of pods `name-0`, `name-1` …; a template that is missing makes none."""
    if template.value is None:
        return
    labelled = _labelled(template, labels)
    template["spec"].map()

    def manifest(number: int) -> Manifest:
        metadata = {
            key: labelled["metadata"][key] for key in ("labels", "annotations") if key in labelled["metadata"]
        }
        return {
            "metadata": {**metadata, "name": f"{name}-{number}"},
            "spec": {**(labelled.get("spec") or {}), **spec},
        }

    yield Part("Pod", copies, template.path, "", manifest)


# --- The kinds ---------------------------------------------------------------------------------------------------


def _job_set(given: _FieldValue, name: str) -> Iterator[Part]:
    """JobSet: each of `replicatedJobs` stands for Jobs, whose pods are indexed unless it says otherwise."""
    for replicated in given["spec"]["replicatedJobs"].items():
        template, role = replicated["template"], replicated["name"].text()
        copies = replicated["replicas"].number(1)
        spec = template["spec"].map()
        pods = template["spec"]["template"]
        pods["spec"].map()

        def manifest(
            number: int,
            role: str = role,
            copies: int = copies,
            spec: Manifest = spec,
            template: _FieldValue = template,
            pods: _FieldValue = pods,
        ) -> Manifest:
            labels = {
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": role,
                "jobset.sigs.k8s.io/replicatedjob-replicas": str(copies),
                "jobset.sigs.k8s.io/job-index": str(number),
            }
            labelled = _labelled(pods, labels)
            labelled["spec"] = {"restartPolicy": "OnFailure", **(labelled.get("spec") or {})}
            job = {"completionMode": "Indexed", **spec, "template": labelled}
            if job["completionMode"] == "Indexed":
                job.setdefault("completions", job.get("parallelism", 1))
            own = template["metadata"]["labels"].map()
            metadata = {"name": f"{name}-{role}-{number}", "labels": {**own, **labels}}
            return {"metadata": metadata, "spec": job}

        yield Part("Job", copies, template.path, "", manifest)


def _leader_worker_set(given: _FieldValue, name: str) -> Iterator[Part]:
    """LeaderWorkerSet: a StatefulSet of the leaders, and one of the workers of each group."""
    both, replicas = given["spec"]["leaderWorkerTemplate"], given["spec"]["replicas"].number(1)
    worker, leader = both["workerTemplate"], both["leaderTemplate"]
    leader = leader if leader.value is not None else worker
    labels = {"leaderworkerset.sigs.k8s.io/name": name}

    def stateful(template: _FieldValue, name: str, labels: Mapping[str, str], **spec: object) -> Manifest:
        content = {"selector": {"matchLabels": dict(labels)}, "template": _labelled(template, labels), **spec}
        return {"metadata": {"name": name, "labels": dict(labels)}, "spec": content}

    if leader.value is None:
        return
    of_leaders = {**labels, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
    _labelled(leader, {}), _labelled(worker, {})
    yield Part(
        "StatefulSet",
        1,
        leader.path,
        "spec.template",
        lambda _number: stateful(leader, name, of_leaders, replicas=replicas),
    )
    size = both["size"].number(1)
    if size > 1 and worker.value is not None:
        yield Part(
            "StatefulSet",
            replicas,
            worker.path,
            "spec.template",
            lambda number: stateful(
                worker,
                f"{name}-{number}",
                {**labels, "leaderworkerset.sigs.k8s.io/group-index": str(number)},
                replicas=size - 1,
                ordinals={"start": 1},
            ),
        )


def _ray_cluster(given: _FieldValue, name: str) -> Iterator[Part]:
    yield from _ray(given["spec"], name)


def _ray_job(given: _FieldValue, name: str) -> Iterator[Part]:
    yield from _ray(given["spec"]["rayClusterSpec"], name)


def _ray_service(given: _FieldValue, name: str) -> Iterator[Part]:
    yield from _ray(given["spec"]["rayClusterConfig"], name)


def _ray(cluster: _FieldValue, name: str) -> Iterator[Part]:
    """KubeRay: the head, and the workers of each group that isn't suspended, `numOfHosts` for a replica."""
    labels = {"ray.io/cluster": name, "ray.io/is-ray-node": "yes"}
    head = {**labels, "ray.io/node-type": "head", "ray.io/group": "headgroup"}
    yield from _pods(cluster["headGroupSpec"]["template"], f"{name}-head", 1, head)
    for group in cluster["workerGroupSpecs"].items():
        role = group["groupName"].text()
        least = group["minReplicas"].number(0)
        replicas = min(
            max(group["replicas"].number(least), least), group["maxReplicas"].number((1 << 31) - 1)
        )
        if group["suspend"].value is True:
            replicas = 0
        worker = {**labels, "ray.io/node-type": "worker", "ray.io/group": role}
        copies = replicas * group["numOfHosts"].number(1)
        yield from _pods(group["template"], f"{name}-{role}-worker", copies, worker)


def _volcano_job(given: _FieldValue, name: str) -> Iterator[Part]:
    """Volcano's Job: the pods of each task, for the Job's scheduler."""
    spec = given["spec"]
    scheduler = spec["schedulerName"].text("volcano")
    for index, task in enumerate(spec["tasks"].items()):
        role = task["name"].text(f"default{index}")
        labels = {"volcano.sh/job-name": name, "volcano.sh/task-spec": role}
        copies = task["replicas"].number(1)
        yield from _pods(task["template"], f"{name}-{role}", copies, labels, schedulerName=scheduler)


def _training_job(given: _FieldValue, name: str) -> Iterator[Part]:
    """Kubeflow's PyTorchJob, MPIJob and the like: the pods of each entry of `…ReplicaSpecs`."""
    for field, replica_specs in given["spec"].fields():
        if not field.endswith("ReplicaSpecs"):
            continue
        for role, replica_spec in replica_specs.fields():
            labels = {
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/replica-type": role.lower(),
            }
            copies = replica_spec["replicas"].number(1)
            yield from _pods(replica_spec["template"], f"{name}-{role.lower()}", copies, labels)


def _rollout(given: _FieldValue, name: str) -> Iterator[Part]:
    """Argo's Rollout: the ReplicaSet of its present template."""
    spec = given["spec"]
    template, replicas = spec["template"], spec["replicas"].number(1)
    if template.value is None:
        return
    labels = {"rollouts-pod-template-hash": "stable"}
    labelled, matched = _labelled(template, labels), spec["selector"]["matchLabels"].map()
    content = {
        "replicas": replicas,
        "selector": {**spec["selector"].map(), "matchLabels": {**matched, **labels}},
        "template": labelled,
    }
    yield Part(
        "ReplicaSet", 1, "", "", lambda _number: {"metadata": {"name": f"{name}-stable"}, "spec": content}
    )


def _clone_set(given: _FieldValue, name: str) -> Iterator[Part]:
    """OpenKruise's CloneSet: equal pods."""
    spec = given["spec"]
    yield from _pods(spec["template"], name, spec["replicas"].number(1), {})


_TRAINING: Final = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
_OWNERS: Final[Mapping[tuple[str, str], Callable[[_FieldValue, str], Iterator[Part]]]] = {
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("ray.io", "RayCluster"): _ray_cluster,
    ("ray.io", "RayJob"): _ray_job,
    ("ray.io", "RayService"): _ray_service,
    ("batch.volcano.sh", "Job"): _volcano_job,
    ("argoproj.io", "Rollout"): _rollout,
    ("apps.kruise.io", "CloneSet"): _clone_set,
    **{("kubeflow.org", kind): _training_job for kind in _TRAINING},
}
"""Functions that make a controller's pods by API group and name of the kind; all versions have these fields."""
