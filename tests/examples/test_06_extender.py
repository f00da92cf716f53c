"""The extender answers as the README shows, and waits where kube-scheduler.yaml looks for it."""

from __future__ import annotations

import runpy

import pytest
import uvicorn

from kschedfw import load_configuration
from tests.examples.running import REPOSITORY, output_as_shown

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "examples" / "06-extender"


def test_the_plugin_decides_through_http() -> None:
    lines = output_as_shown("06-extender", "ask.py")
    assert "  Nodes: cad, both" in lines
    assert [line.strip() for line in lines[-4:-1]] == ["drawing: cad", "simulation: both", "web: plain"]
    assert "3 node(s) had no licence for render" in lines[-1]


def test_the_server_is_where_the_configuration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[str, int]] = []

    def run(app: object, *, host: str, port: int) -> None:
        served.append((host, port))

    monkeypatch.setattr(uvicorn, "run", run)
    script = runpy.run_path(str(EXAMPLE / "extender.py"), run_name="__main__")
    ((host, port),) = served
    (config,) = load_configuration(EXAMPLE / "kube-scheduler.yaml").extenders
    assert config.url_prefix == f"http://{host}:{port}"
    assert (config.filter_verb, config.prioritize_verb) == ("filter", "prioritize")
    script["make_app"]().close()
