#!/usr/bin/env python3
"""Make `.link/luxgrad`, a view of the source tree with the folders under their import names.

The mapping is read from `[tool.setuptools.package-dir]`, so it is written down once. `PYTHONPATH=.link` then runs
the code without an install, and type checkers see one package. Run it again when a facade file is added.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write the tree of links afresh."""
    package_dir: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"][
        "package-dir"
    ]
    target = ROOT / ".link"
    if target.exists():
        shutil.rmtree(target)
    base = target / "luxgrad"
    base.mkdir(parents=True)
    for name, folder in package_dir.items():
        if name == "luxgrad":
            for item in sorted((ROOT / folder).iterdir()):
                if item.name != "__pycache__":
                    (base / item.name).symlink_to(Path("..", "..", folder, item.name))
        else:
            (base / name.removeprefix("luxgrad.")).symlink_to(Path("..", "..", folder), target_is_directory=True)
    print(f"linked {len(package_dir)} folders under {base.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
