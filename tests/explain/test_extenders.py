"""What extenders said is in the explanation: whom they refused, and what they added to totals."""

from __future__ import annotations

from pathlib import Path
from random import Random

from kschedfw import Scheduler, make_node, make_pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import ExplainingScheduler, ExplanationWriter, Verdict, read_explanations
from kschedfw.explain.as_json import as_json
from kschedfw.scheduler import GenericScheduler
from tests.scheduler.test_extender import Helper


def test_refusals_and_priorities_of_extenders_are_told_and_written(tmp_path: Path) -> None:
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi", pods=10).build() for name in ("a", "b", "c")]
    helper = Helper(refuse={"b": "not on b"}, rate=lambda name: 3 if name == "c" else 1)
    pod = make_pod("pod").requests(cpu="1").build()
    scheduler = Scheduler(InMemoryCluster(nodes), extenders=[helper], random=Random(0))
    assert isinstance(scheduler.algorithm, GenericScheduler)
    framework = scheduler.frameworks[pod.spec.scheduler_name]
    explanation = ExplainingScheduler(scheduler.algorithm, beyond=True).explain(framework, pod)

    refused = explanation.of("b")
    assert refused.verdict is Verdict.REFUSED
    assert refused.refusal is not None
    assert refused.refusal.reasons == ("not on b",)
    assert explanation.node == "c"
    assert explanation.feasible == ("a", "c")
    assert explanation.score is not None
    assert explanation.score.extenders.tolist() == [10, 30]
    assert explanation.tied == ("c",)

    path = tmp_path / "file.jsonl"
    with path.open("w", encoding="utf-8") as file:
        ExplanationWriter(file).write(explanation)
    (again,) = read_explanations(path)
    assert as_json(again) == as_json(explanation)
