"""The fifth example prints what its README shows, and replays what the trace says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.examples.running import output_as_shown

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "05-replaying-a-trace"
REPLAY = runpy.run_path(str(EXAMPLE / "replay.py"))


def test_it_prints_what_its_readme_shows() -> None:
    output_as_shown("05-replaying-a-trace", "replay.py")


@pytest.mark.parametrize("name", ["spread", "pack"])
def test_jobs_run_after_their_arrival_and_only_where_there_is_room(name: str) -> None:
    jobs = REPLAY["read_trace"](REPLAY["TRACE"])
    started = REPLAY["start_times"](jobs, REPLAY["PROFILES"][name])
    assert list(started) == jobs
    assert all(start >= job.arrival - jobs[0].arrival for job, start in started.items())
    for time in started.values():
        running = [job for job, start in started.items() if start <= time < start + job.duration]
        assert sum(job.cpu for job in running) <= REPLAY["CPUS"]
        assert sum(job.size == "large" for job in running) <= len(REPLAY["NODES"])


def test_what_is_in_use_is_what_runs_divided_by_the_time() -> None:
    job = REPLAY["Job"](name="large-1", arrival=0, duration=30, cpu=12, memory="1Gi")
    cpus_in_use = REPLAY["cpus_in_use"]
    assert cpus_in_use({job: 10}, 60) == 6
    assert cpus_in_use({job: 10}, 20) == 6, "so far it has run for ten of twenty seconds"
    assert cpus_in_use({job: 10}, 10) == 0
