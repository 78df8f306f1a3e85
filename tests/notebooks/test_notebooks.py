"""The notebooks run from start to end, and the stored ones belong to their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jupytext
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
SMALL = {"quickstart": "SIZE, SPP, STEPS = 16, 16, 8"}


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def cells(notebook: Any) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


@pytest.mark.parametrize("name", names())
def test_it_runs_at_small_size(name: str) -> None:
    notebook = jupytext.read(FOLDER / f"{name}.py")
    marked = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(marked) == 1
    marked[0].source = SMALL[name]
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": FOLDER}}).execute()
    text = "".join(o.get("text", "") for c in notebook.cells if c.cell_type == "code" for o in c.outputs)
    assert "largest colour error" in text


@pytest.mark.parametrize("name", names())
def test_the_stored_notebook_has_the_cells_of_its_source_and_their_results(name: str) -> None:
    stored = jupytext.read(FOLDER / f"{name}.ipynb")
    assert cells(stored) == cells(jupytext.read(FOLDER / f"{name}.py"))
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code) and any(cell.outputs for cell in code)
    assert not any(o.output_type == "error" for cell in code for o in cell.outputs)
