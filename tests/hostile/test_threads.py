"""A short drill of a scheduler with threads, failures and executors that end; see `threads` for long ones."""

from __future__ import annotations

import pytest

from kschedfw.scheduler.binding_cycle import BindingCycle
from kschedfw.scheduler.bindings import Bindings
from tests.hostile import threads
from tests.hostile.threads import Drill

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_and_all_ends(seed: int) -> None:
    Drill(seed).run(
        0.5,
        least={
            "pods": 100,
            "executors shut down": 3,
            "binding cycles cancelled": 1,
            "SystemExit": 1,
            "RuntimeError": 1,
        },
    )


def test_the_long_run_tells_what_happened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(threads.Drill.run, "__defaults__", (0.3, threads.LEAST))
    assert threads.main(["0", "3"]) == 0
    assert "seeds 3–3: " in capsys.readouterr().out


class TestWhatIsFound:
    @pytest.fixture(autouse=True)
    def _soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(threads, "GRACE", 2.0)

    def test_cancelled_binding_cycles_that_do_not_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Bindings, "reap", lambda self: None)
        with pytest.raises(AssertionError, match=r"lost|left over|doesn't end"):
            Drill(1).run(0.7)

    def test_pods_that_are_not_given_back(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(BindingCycle, "give_up", lambda self, attempt, status: None)
        assert threads.main(["0", "1"]) == 1
        assert "FAILED: seed 1: " in capsys.readouterr().out
