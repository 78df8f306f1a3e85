"""Configurations of every material that the tests of materials run over; a material without a row is tested as it is
by default."""

from __future__ import annotations

from typing import Any

from luxgrad.render.registry import known

Rgb = dict[str, Any]


def rgb(*values: float) -> Rgb:
    """Return the description of a colour."""
    return {"type": "rgb", "value": list(values)}


_RED = {"type": "diffuse", "reflectance": rgb(0.8, 0.3, 0.1)}
_ROUGH = {"type": "roughconductor", "alpha": 0.3}

ROWS: dict[str, dict[str, dict[str, Any]]] = {
    "diffuse": {"": {}, "red": {"reflectance": rgb(0.9, 0.2, 0.4)}},
    "conductor": {"": {}, "gold": {"material": "Au"}},
    "dielectric": {"": {}, "inverse": {"int_ior": 1.0, "ext_ior": 1.5}},
    "roughconductor": {
        "beckmann": {"alpha": 0.1},
        "beckmann-all": {"alpha": 0.25, "sample_visible": False},
        "beckmann-anisotropic": {"alpha_u": 0.1, "alpha_v": 0.4, "material": "Cu"},
        "beckmann-anisotropic-all": {"alpha_u": 0.15, "alpha_v": 0.4, "sample_visible": False},
        "ggx": {"distribution": "ggx", "alpha": 0.2, "material": "Au"},
        "ggx-rough": {"distribution": "ggx", "alpha": 0.9},
        "ggx-anisotropic": {"distribution": "ggx", "alpha_u": 0.5, "alpha_v": 0.15},
        "ggx-anisotropic-all": {"distribution": "ggx", "alpha_u": 0.5, "alpha_v": 0.2, "sample_visible": False},
    },
    "twosided": {
        "one": {"a": _RED},
        "one-rough": {"a": _ROUGH},
        "two": {"a": _RED, "b": _ROUGH},
        "two-metals": {"a": {**_ROUGH, "material": "Au"}, "b": {**_ROUGH, "distribution": "ggx"}},
    },
    "mask": {"": {"opacity": 0.7, "a": _RED}},
    "blendbsdf": {"": {"weight": 0.3, "a": _RED, "b": _ROUGH}},
    "bumpmap": {"": {"a": _RED, "t": {"type": "uniform", "value": 0.5}}},
    "normalmap": {"": {"normalmap": {"type": "srgb", "color": [0.6, 0.5, 0.9]}, "a": _RED}},
}


def configurations() -> dict[str, dict[str, Any]]:
    """Return descriptions of all registered materials by the names tests show."""
    result = {}
    for name in known("bsdf"):
        for label, values in ROWS.get(name, {"": {}}).items():
            result[f"{name}-{label}" if label else name] = {"type": name, **values}
    return result
