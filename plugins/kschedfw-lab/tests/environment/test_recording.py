"""Episodes of an environment become results."""

from __future__ import annotations

from pathlib import Path

from environment.test_environment import REGISTRY, day
from kschedfw_lab import Environment, RecordedEpisodes, ResultsWriter, analyse, read_results


def test_each_finished_episode_is_a_run(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, RecordedEpisodes.FACTORS) as results:
        for agent in ("first", "scheduler"):
            environment = RecordedEpisodes(Environment(day, registry=REGISTRY), results, agent=agent)
            for seed in (1, 2, 1):
                environment.reset(seed=seed)
                ended, total = False, 0.0
                while not ended:
                    mask = environment.action_masks()
                    action = mask.argmax() if agent == "first" else environment.scheduler_action()
                    _, reward, terminated, truncated, info = environment.step(action)
                    ended, total = terminated or truncated, total + reward
                added = results.done
                assert f"{agent}/{seed}/{1 + (f'{agent}/{seed}/2' in added)}" in added
                assert total == info["bound"]
            environment.reset(seed=3)  # never ended, so it isn't there
            environment.step(environment.scheduler_action())
            environment.close()
        results.finish()
    found = read_results(tmp_path)
    assert found.factors == ("agent", "seed", "episode")
    runs = found.runs()
    assert [run.run for run in runs if run.factors["agent"] == "first"] == [
        "first/1/1",
        "first/2/1",
        "first/1/2",
    ]
    assert len(runs) == 6
    for run in runs:
        assert run.metrics["bound"] == run.metrics["steps"] == run.metrics["reward"]
        assert run.metrics["bound"] + run.metrics["unbound"] == 12
        assert run.metrics["illegal"] == run.metrics["victims"] == run.metrics["truncated"] == 0
    assert runs[0].metrics == runs[2].metrics
    (table,) = analyse(found, {"agent": "scheduler"}, metrics=["bound"]).tables
    assert len(table.overall) == 2


def test_illegal_steps_and_the_horizon_are_counted(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, RecordedEpisodes.FACTORS) as results:
        environment = RecordedEpisodes(Environment(day, registry=REGISTRY), results, agent="blind")
        environment.reset(seed=1)
        illegal, ended = 0, False
        while not ended:
            blocked = (~environment.action_masks()).argmax()
            _, _, ended, _, info = environment.step(blocked)
            illegal += info["illegal"]
        results.finish()
    assert illegal > 0
    (run,) = read_results(tmp_path).runs()
    assert run.metrics["illegal"] == illegal
