"""ElasticQuota manifests, read as the cluster reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kschedfw_capacity import ElasticQuota
from kschedfw_capacity.amounts import Amounts

from kschedfw import InMemoryCluster, KschedfwError, read_manifests

MANIFEST = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {{name: quota, namespace: team}}
spec: {spec}
"""


def read(path: Path, spec: str) -> ElasticQuota:
    file = path / "quota.yaml"
    file.write_text(MANIFEST.format(spec=spec), encoding="utf-8")
    cluster = InMemoryCluster(read_manifests(file).objects())
    quota = cluster.get(ElasticQuota, "team/quota")
    assert quota is not None
    return quota


def test_amounts_are_those_that_scheduling_counts_in(tmp_path: Path) -> None:
    spec = '{min: {cpu: 1500m, memory: 1Ki, nvidia.com/gpu: "2"}, max: {cpu: 4}}'
    bounds = read(tmp_path, spec).spec.bounds
    assert bounds.min == Amounts({"cpu": 1500, "memory": 1024, "nvidia.com/gpu": 2})
    assert bounds.max == {"cpu": 4000}


def test_of_a_min_above_the_max_the_max_is_guaranteed(tmp_path: Path) -> None:
    bounds = read(tmp_path, "{min: {cpu: 7, memory: 1Ki}, max: {cpu: 5}}").spec.bounds
    assert bounds.min == Amounts({"cpu": 5000, "memory": 1024})


def test_neither_min_nor_max_has_to_be_there(tmp_path: Path) -> None:
    bounds = read(tmp_path, "{}").spec.bounds
    assert bounds.min == Amounts()
    assert bounds.max == {}


def test_what_a_controller_has_written_is_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, "{min: {cpu: 1}}\nstatus: {used: {cpu: 3}}").spec.bounds.min == Amounts(
        {"cpu": 1000}
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("{min: {cpu: lots}}", "spec.min"),
        ("{max: {cpu: -1}}", 'spec.max[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, spec: str, problem: str) -> None:
    with pytest.raises(KschedfwError) as raised:
        read(tmp_path, spec)
    assert str(raised.value).startswith("ElasticQuota team/quota: ")
    assert problem in str(raised.value)
