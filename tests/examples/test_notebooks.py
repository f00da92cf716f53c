"""Every cell of the notebooks runs, from the first to the last, and no outputs are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.examples.running import REPOSITORY

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((REPOSITORY / "examples" / "notebooks").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    document = json.loads(notebook.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["metadata"]["kernelspec"]["name"]) == (4, "python3")
    found: list[dict[str, Any]] = document["cells"]
    return found


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(notebook.parent)
    # The notebooks add directories of other examples.
    monkeypatch.syspath_prepend(str(notebook.parent))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(cells(notebook)):
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec")
            exec(code, namespace)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_stored(notebook: Path) -> None:
    assert not [cell for cell in cells(notebook) if cell.get("outputs") or cell.get("execution_count")]


def test_the_readme_lists_all() -> None:
    text = (NOTEBOOKS[0].parent / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS if f"]({path.name})" not in text] == []
