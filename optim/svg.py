"""Line charts as SVG text."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Curve", "chart"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 26


@dataclass(frozen=True)
class Curve:
    """A named line through the points (x, y), x increasing."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str


def chart(
    curves: Sequence[Curve], *, logarithmic: bool = False, width: int = 480, height: int = 220, label: str = ""
) -> str:
    """Return an `<svg>` element with axes, a grid and all curves; a legend below if there are several.

    Points that are not finite (or not positive on a logarithmic axis) are left out.
    """
    usable = [[(x, y) for x, y in zip(c.x, c.y, strict=True) if _usable(y, logarithmic)] for c in curves]
    points = [p for line in usable for p in line]
    if not points:
        return "<p>no finite numbers to draw</p>"
    x0, x1 = _widened(min(p[0] for p in points), max(p[0] for p in points))
    low, high = (_scaled(v, logarithmic) for v in (min(p[1] for p in points), max(p[1] for p in points)))
    y0, y1 = _widened(low, high)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x0) / (x1 - x0) * (width - _LEFT - _RIGHT)
        up = (_scaled(y, logarithmic) - y0) / (y1 - y0) * (height - _TOP - _BOTTOM)
        return round(_LEFT + across, 2), round(height - _BOTTOM - up, 2)

    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{html.escape(label, quote=True)}" font-family="system-ui, sans-serif" font-size="11">'
    ]
    for tick in _ticks(y0, y1, logarithmic):
        _, y = at(x0, tick)
        parts.append(f'<line x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y}" y2="{y}" stroke="#8884" />')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end" fill="currentColor">{tick:.4g}</text>')
    for tick in _ticks(x0, x1, False):
        x, _ = at(tick, points[0][1])
        parts.append(f'<text x="{x}" y="{height - 8}" text-anchor="middle" fill="currentColor">{tick:.4g}</text>')
    for curve, line in zip(curves, usable, strict=True):
        path = " ".join(f"{x},{y}" for x, y in (at(*p) for p in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="1.6" />')
    parts.append("</svg>")
    return "".join(parts) + (_legend(curves) if len(curves) > 1 else "")


def _legend(curves: Sequence[Curve]) -> str:
    items = [f'<span style="color:{c.colour}">&#9632;</span> {html.escape(c.name)}' for c in curves]
    return f'<div style="font-size:.85rem">{" &nbsp; ".join(items)}</div>'


def _usable(y: float, logarithmic: bool) -> bool:
    return math.isfinite(y) and (y > 0 or not logarithmic)


def _scaled(y: float, logarithmic: bool) -> float:
    return math.log10(y) if logarithmic else y


def _widened(low: float, high: float) -> tuple[float, float]:
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    margin = 0.5 if low == 0 else 0.05 * abs(low)
    return low - margin, high + margin


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Return about five round numbers of an interval (of logarithms: the numbers themselves)."""
    if logarithmic:
        values = [m * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
        inside = [v for v in values if low <= math.log10(v) <= high]
        powers = [v for v in inside if abs(math.log10(v) - round(math.log10(v))) < 1e-9]
        chosen = powers if len(powers) >= 3 else inside
        return chosen[:: max(1, -(-len(chosen) // 6))] or [10.0 ** (0.5 * (low + high))]
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]
