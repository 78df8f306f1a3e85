"""Refractive indices by name, and colours of spectra: CIE 1931 matching functions, D65, linear Rec. 709.

The constants are in `data/optics.json`, whose field `source` says where they come from.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..jit.errors import FileFormatError, SceneError
from .registry import nearest

__all__ = [
    "conductor", "conductor_names", "dielectric_names", "equal_energy_rgb", "ior", "read_spd", "spectrum_to_rgb",
    "xyz_to_rgb",
]

Array = NDArray[np.float64]
_STEPS = 1000
# The integral of the matching function y over nm by which Mitsuba 3.9 normalises; D65 in the table is scaled to it.
_LUMINOUS = 106.7502593994140625
_XYZ_TO_RGB = np.array([  # ITU-R BT.709 primaries, white point D65
    [3.240479, -1.537150, -0.498535],
    [-0.969256, 1.875991, 0.041556],
    [0.055648, -0.204043, 1.057311],
])


@functools.cache
def _tables() -> dict[str, Any]:
    """Return the contents of the data file, read once."""
    text = (Path(__file__).parent / "data" / "optics.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def dielectric_names() -> list[str]:
    """Return the materials that `ior` knows."""
    return list(_tables()["dielectrics"])


def conductor_names() -> list[str]:
    """Return the materials that `conductor` knows, without "none"."""
    return list(_tables()["conductors"])


def ior(value: float | str) -> float:
    """Return an index of refraction, given as a number or as the name of a material (any case)."""
    if not isinstance(value, str):
        return float(value)
    table = _tables()["dielectrics"]
    found = table.get(value.strip().lower())
    if found is None:
        hint = nearest(value.lower(), list(table))
        raise SceneError(f'no index of refraction is known for "{value}"{"; " + hint if hint else ""}. '
                         f"Known materials: {', '.join(table)}")
    return float(found)


def conductor(name: str) -> tuple[Array, Array]:
    """Return (eta, k) of a metal in linear RGB, each of shape (3,); "none" is the perfect mirror (0, 1)."""
    table = _tables()["conductors"]
    folded = {key.lower(): key for key in table}
    if name.lower() == "none":
        return np.zeros(3), np.ones(3)
    key = name if name in table else folded.get(name.lower())
    if key is None:
        hint = nearest(name, list(table))
        raise SceneError(f'no optical constants are known for the material "{name}"{"; " + hint if hint else ""}. '
                         f"Known materials: none, {', '.join(table)}")
    return np.array(table[key]["eta"], dtype=np.float64), np.array(table[key]["k"], dtype=np.float64)


def xyz_to_rgb(xyz: Any) -> Array:
    """Return linear RGB (..., 3) of CIE 1931 tristimulus values (..., 3)."""
    return np.asarray(np.asarray(xyz, dtype=np.float64) @ _XYZ_TO_RGB.T)


def equal_energy_rgb() -> Array:
    """Return the RGB of a spectrum that is 1 everywhere, by its tristimulus values (1, 1, 1)."""
    return xyz_to_rgb(np.ones(3))


@functools.cache
def _weights(emissive: bool) -> tuple[Array, Array]:
    """Return wavelengths (n,) in nm and their weights (n, 3) in XYZ; reflectances are seen under D65."""
    cie, d65 = _tables()["cie1931"], _tables()["d65"]
    nm = np.linspace(360.0, 830.0, _STEPS)
    xyz = np.stack([np.interp(nm, cie["nm"], cie[axis]) for axis in "xyz"], axis=1)
    if not emissive:
        xyz = xyz * np.interp(nm, d65["nm"], d65["relative"])[:, None]
    return nm, xyz * ((830.0 - 360.0) / _STEPS / _LUMINOUS)


def spectrum_to_rgb(pairs: Iterable[tuple[float, float]], emissive: bool) -> Array:
    """Return linear RGB, shape (3,), of a spectrum given as (wavelength in nm, value) in increasing order.

    Linear between the pairs and 0 outside. A reflectance is weighted with D65, so that 1 everywhere is white; an
    emission is not. The result is not clamped: saturated spectra have negative components.
    """
    table = np.array(list(pairs), dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] != 2:
        raise SceneError("a spectrum needs pairs of wavelength and value")
    if np.any(np.diff(table[:, 0]) <= 0.0):
        raise SceneError("the wavelengths of a spectrum must be specified in increasing order")
    nm, weights = _weights(emissive)
    values = np.interp(nm, table[:, 0], table[:, 1], left=0.0, right=0.0)
    return xyz_to_rgb(values @ weights)


def read_spd(path: Path) -> tuple[tuple[float, float], ...]:
    """Return the pairs of an .spd file: a wavelength in nm and a value per line, # starts a comment."""
    pairs: list[tuple[float, float]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        fields = re.split(r"[\s,:]+", line.partition("#")[0].strip())
        if fields == [""]:
            continue
        try:
            wavelength, value = (float(field) for field in fields)
        except ValueError:
            found = line.strip()
            raise FileFormatError(f'{path}:{number}: expected a wavelength and a value, found "{found}"') from None
        if pairs and wavelength <= pairs[-1][0]:
            raise FileFormatError(f"{path}:{number}: wavelengths must be specified in increasing order, "
                                  f"found {wavelength:g} after {pairs[-1][0]:g}")
        pairs.append((wavelength, value))
    if not pairs:
        raise FileFormatError(f"{path}: no pairs of wavelength and value found")
    return tuple(pairs)
