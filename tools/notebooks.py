#!/usr/bin/env python3
"""Execute the notebooks: each `notebooks/NAME.py` becomes `NAME.ipynb` with its results (extra `notebooks`)."""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def main() -> None:
    """Execute all notebooks, or those named on the command line."""
    for path in sorted(FOLDER.glob("*.py")):
        if len(sys.argv) > 1 and path.stem not in sys.argv[1:]:
            continue
        notebook = jupytext.read(path)
        client = NotebookClient(notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": FOLDER}})
        client.execute()
        for number, cell in enumerate(notebook.cells):
            cell.id = f"cell-{number}"  # random by default: a new run would change every cell
            cell.metadata.pop("execution", None)
        notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
        nbformat.write(notebook, path.with_suffix(".ipynb"))
        print(f"{path.stem}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
