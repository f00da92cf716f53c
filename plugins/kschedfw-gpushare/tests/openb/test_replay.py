"""The protocol: how the workload is made, and that the figures come near the published ones."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random

import attrs
import pytest
from kschedfw_gpushare import GpuShare, Policy
from kschedfw_gpushare.openb import OfConfiguration, OfPlugin, OfPolicy, Trace, contenders, replay
from kschedfw_gpushare.openb.__main__ import NODES, PODS
from kschedfw_gpushare.openb.figures import ARRIVED, read_published
from kschedfw_gpushare.openb.trace import tuned

from kschedfw import (
    InMemoryCluster,
    NodeInfo,
    Plugin,
    Pod,
    Registry,
    Scheduler,
    hookimpl,
    load_configuration,
)


def read(directory: Path) -> Trace:
    return Trace.read(directory / NODES, directory / PODS)


def test_copies_are_added_until_the_next_would_ask_for_too_much(small: Path) -> None:
    trace = read(small)
    assert trace.capacity == 4000
    pods = tuned(trace, Random(1), tune=1.3)
    asked = [
        1000 if pod.name.startswith("whole") else 500 if pod.name.startswith("half") else 0 for pod in pods
    ]
    assert 4200 < sum(asked) <= 5200
    assert {pod.name for pod in pods[:3]} == {"half", "whole", "plain"}
    assert len({pod.name for pod in pods}) == len(pods)


def test_pods_are_left_out_where_the_trace_asks_for_too_much(small: Path) -> None:
    assert "whole" not in {pod.name for pod in tuned(read(small), Random(1), tune=0.2)}


@pytest.mark.parametrize("policy", Policy)
def test_a_seed_says_it_all(small: Path, policy: Policy) -> None:
    trace = read(small)
    one, other = (replay(trace, OfPolicy(policy).make_scheduler(trace), 7) for _ in range(2))
    assert one == other


def test_curves_are_shares_by_what_has_arrived(small: Path) -> None:
    trace = read(small)
    runs = [replay(trace, OfPolicy(Policy.FGD).make_scheduler(trace), seed) for seed in range(5)]
    for run in runs:
        assert set(run.allocated) == set(run.fragmented) == set(run.fragmented_idle)
        assert max(run.allocated) > 100, "more is asked for than there is"
        for percent, allocated in run.allocated.items():
            idle = 1 - allocated
            assert 0 <= allocated <= min(percent + 1, 100) / 100
            assert run.fragmented[percent] == pytest.approx(run.fragmented_idle[percent] * idle)
    assert any(any(run.fragmented.values()) for run in runs)


def test_a_contender_can_be_sent_to_another_process(small: Path, profile: Path) -> None:
    trace = read(small)
    for contender in (
        OfPolicy(Policy.GPU_PACKING),
        OfPlugin("NodeResourcesBalancedAllocation"),
        OfConfiguration(load_configuration(profile)),
    ):
        sent = pickle.loads(pickle.dumps(contender))
        assert replay(trace, sent.make_scheduler(trace), 1) == replay(
            trace, contender.make_scheduler(trace), 1
        )


def test_a_configuration_is_measured_as_a_policy_is(small: Path, profile: Path) -> None:
    trace = read(small)
    configured = OfConfiguration(load_configuration(profile)).make_scheduler(trace)
    by_policy = [replay(trace, OfPolicy(Policy.FGD).make_scheduler(trace), seed) for seed in range(5)]
    assert [replay(trace, configured, seed) for seed in range(5)] == by_policy


def test_one_without_gpushare_has_no_books_of_devices(small: Path) -> None:
    trace = read(small)
    runs = [
        replay(trace, lambda cluster, random: Scheduler(cluster, random=random), seed) for seed in range(5)
    ]
    assert any(any(run.allocated.values()) for run in runs)
    assert all(run.fragmented == run.fragmented_idle == {} for run in runs)


class EmptiestFirst(Plugin):
    """Spreads pods over the nodes."""

    name = "EmptiestFirst"

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return 100 - len(node_info.pods)


def test_a_plugins_score_takes_the_policys_place(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def registry() -> Registry:
        known = Registry()
        known.register(EmptiestFirst)
        if "GpuShare" not in known.names():
            known.register(GpuShare)
        return known

    monkeypatch.setattr(contenders, "_registry", registry)
    trace = read(small)
    make_scheduler = OfPlugin("EmptiestFirst").make_scheduler(trace)
    cluster = InMemoryCluster(trace.nodes)
    scheduler = make_scheduler(cluster, Random(0))
    for number in range(4):
        half = trace.pods[0]
        cluster.add(half.with_metadata(attrs.evolve(half.metadata, name=f"half-{number}", uid="")))
        assert scheduler.schedule_one()
    placed = [each.node_name for each in cluster.list(Pod)]
    assert sorted(placed) == ["a", "a", "b", "b"]


@pytest.mark.nightly
def test_fgd_on_the_trace(trace_directory: Path) -> None:
    """Near to what was published, and to the last digit what was measured first, however fast it is made."""
    trace = read(trace_directory)
    run = replay(trace, OfPolicy(Policy.FGD).make_scheduler(trace), 42)
    published = read_published(trace_directory / "anchors.json", Path(PODS).stem)[Policy.FGD]
    for metric, curve in (("allocated", run.allocated), ("fragmented", run.fragmented)):
        for percent in ARRIVED:
            assert 100 * curve[percent] == pytest.approx(published[metric][percent].mean, abs=0.5)
    allocated = [f"{100 * run.allocated[percent]:.2f}" for percent in ARRIVED]
    assert (run.pods, run.placed) == (10771, 8313)
    assert allocated == ["80.01", "90.01", "94.85", "95.00", "95.08", "95.16", "95.20"]
