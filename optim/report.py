"""A page that shows how a fit went: pictures, loss and parameter curves, in one HTML file without scripts."""

from __future__ import annotations

import base64
import html
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .checkpoint import write_atomically
from .result import FULL_HISTORY, FitResult
from .svg import Curve, chart

__all__ = ["write_report"]

_NAMES_OF = {"loss": "loss function", "spp": "samples per pixel", "lr": "learning rate", "lr_end": "last learning rate"}
_COLOURS = ("#c0392b", "#27ae60", "#2c6fbb", "#8e44ad", "#d98200", "#16a085", "#7f8c8d", "#2c3e50")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 0 0 .3rem; }
.pictures, .charts { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; } figure img { width: 256px; image-rendering: pixelated; display: block; background: #000; }
figcaption { color: #555; font-size: .9rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; } .swatch { display: inline-block; width: 1.2em; height: 1.2em;
vertical-align: -.25em; border: 1px solid #999; margin-right: .4em; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } figcaption { color: #aaa; } }
"""


def write_report(path: str | os.PathLike[str], result: FitResult, *, title: str = "Fit", notes: str = "") -> None:
    """Write the report of a fit as one HTML file; `notes` is a paragraph of plain text under the title."""
    write_atomically(path, report(result, title=title, notes=notes).encode())


def report(result: FitResult, *, title: str = "Fit", notes: str = "") -> str:
    """Return the report of a fit as HTML: pictures embedded, curves as inline SVG, a table of the parameters."""
    name = html.escape(title)
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>',
        f"<h1>{name}</h1>",
        f"<p>{html.escape(notes)}</p>" if notes else "",
        _facts(result), _pictures(result), _loss(result), _parameters(result), "</body></html>\n",
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _facts(result: FitResult) -> str:
    first = result.losses[0] if result.losses else float("nan")
    facts = {
        "steps": result.steps, "loss": f"{first:.4g} to {result.loss:.4g}", "time": f"{result.seconds:.1f} s",
        "speed": f"{result.samples_per_second / 1e6:.3g} million samples per second",
        **{_NAMES_OF.get(k, k): v for k, v in result.settings.items() if k != "steps" and v not in (None, "")},
    }  # fmt: skip
    rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in facts.items())
    return f"<table>{rows}</table>"


def _pictures(result: FitResult) -> str:
    figures = []
    for name, bitmap in result.images.items():
        png = bitmap._repr_png_()
        if png is not None:
            data = base64.b64encode(png).decode()
            label = html.escape(name)
            size = f"{bitmap.width()} x {bitmap.height()}"
            figures.append(
                f'<figure><img src="data:image/png;base64,{data}" alt="{label}">'
                f"<figcaption>{label}, {size}</figcaption></figure>"
            )
    return '<h2>Pictures</h2><div class="pictures">' + "".join(figures) + "</div>" if figures else ""


def _loss(result: FitResult) -> str:
    if not result.losses:
        return ""
    logarithmic = min(result.losses) > 0
    curve = Curve("loss", list(range(1, result.steps + 1)), result.losses, _COLOURS[2])
    return "<h2>Loss</h2>" + chart([curve], logarithmic=logarithmic, width=760, label="loss by step")


def _parameters(result: FitResult) -> str:
    charts, rows = [], []
    for key in result.keys:
        history = np.array(result.history.get(key, []))
        if history.size == 0:
            continue
        names = _names(history.shape[1], result.values.get(key))
        curves = [
            Curve(name, list(range(len(history))), [float(v) for v in history[:, i]], _COLOURS[i % len(_COLOURS)])
            for i, name in enumerate(names)
        ]
        charts.append(f"<div><h3>{html.escape(key)}</h3>{chart(curves, width=370, label=key)}</div>")
        rows.append(
            f"<tr><td>{html.escape(key)}</td><td class=number>{_numbers(history[0])}</td>"
            f"<td class=number>{_numbers(history[-1])}</td></tr>"
        )
    if not charts:
        return ""
    head = "<tr><th>parameter</th><th>start</th><th>fitted</th></tr>"
    return f'<h2>Parameters</h2><table>{head}{"".join(rows)}</table><p></p><div class="charts">{"".join(charts)}</div>'


def _names(columns: int, value: Any) -> list[str]:
    if value is not None and value.size > FULL_HISTORY:
        return ["mean", "least", "greatest"]
    if columns == 3:
        return ["red", "green", "blue"]
    return [""] if columns == 1 else [str(i) for i in range(columns)]


def _numbers(values: Sequence[float]) -> str:
    text = ", ".join(f"{v:.4f}" for v in values)
    if len(values) != 3 or not all(0 <= v <= 1 for v in values):
        return text
    # The swatch shows linear colours as a screen does: through the sRGB curve.
    curve = [12.92 * v if v <= 0.0031308 else 1.055 * math.pow(v, 1 / 2.4) - 0.055 for v in values]
    colour = "#" + "".join(f"{round(255 * v):02x}" for v in curve)
    return f'<span class="swatch" style="background:{colour}"></span>{text}'
