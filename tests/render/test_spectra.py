"""Optical constants and colours of spectra, against values of Mitsuba 3.9.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luxgrad.jit.errors import FileFormatError, SceneError
from luxgrad.render import spectra


@pytest.mark.parametrize(("name", "eta", "k"), [
    ("Au", (0.1430, 0.3753, 1.4421), (3.983, 2.386, 1.603)), ("Cu", (0.2010, 0.9238, 1.1022), (3.913, 2.453, 2.142)),
    ("Al", (1.657, 0.880, 0.521), (9.224, 6.270, 4.837)), ("Ag", (0.155, 0.117, 0.138), (4.828, 3.122, 2.147)),
])
def test_metals(name: str, eta: tuple[float, ...], k: tuple[float, ...]) -> None:
    found = spectra.conductor(name)
    assert np.allclose(found[0], eta, atol=1e-3) and np.allclose(found[1], k, atol=1e-3)


def test_mirror_and_unknown_metal() -> None:
    assert [part.tolist() for part in spectra.conductor("none")] == [[0, 0, 0], [1, 1, 1]]
    with pytest.raises(SceneError, match='"Aul".*did you mean "Au"'):
        spectra.conductor("Aul")
    assert len(spectra.conductor_names()) == 71


@pytest.mark.parametrize(("name", "value"), [
    ("air", 1.000277), ("water", 1.333), ("bk7", 1.5046), ("BK7", 1.5046), ("diamond", 2.419), (1.7, 1.7), (2, 2.0),
])
def test_indices_of_refraction(name: float | str, value: float) -> None:
    assert spectra.ior(name) == pytest.approx(value, abs=1e-6)


def test_unknown_dielectric_lists_the_known_ones() -> None:
    with pytest.raises(SceneError, match='"watre"; did you mean "water"?.*diamond'):
        spectra.ior("watre")
    assert len(spectra.dielectric_names()) == 23


@pytest.mark.parametrize(("pairs", "reflected", "emitted"), [
    ([(360, 1), (830, 1)], (0.998985, 0.998874, 0.998802), (1.204884, 0.948228, 0.909267)),
    ([(400, 0.2), (500, 0.4), (700, 0.9)], (0.753834, 0.505378, 0.277034), (0.886727, 0.481519, 0.245200)),
    ([(360, 0.5), (500, 0.5), (830, 0.7)], (0.587489, 0.523096, 0.495067), (0.703115, 0.496821, 0.450137)),
    ([(500, 2), (600, 4)], (1.208974, 2.936099, -0.283998), (1.414621, 2.854988, -0.286062)),
])
def test_spectra_to_rgb(
    pairs: list[tuple[float, float]], reflected: tuple[float, ...], emitted: tuple[float, ...]
) -> None:
    assert np.allclose(spectra.spectrum_to_rgb(pairs, emissive=False), reflected, atol=2e-6)
    assert np.allclose(spectra.spectrum_to_rgb(pairs, emissive=True), emitted, atol=2e-6)


def test_order_of_wavelengths() -> None:
    with pytest.raises(SceneError, match="increasing order"):
        spectra.spectrum_to_rgb([(500, 1), (400, 1)], emissive=True)


def test_spd_files(tmp_path: Path) -> None:
    path = tmp_path / "a.spd"
    path.write_text("# nm value\n400 0.1\n\n500\t0.2 # middle\n600, 0.3\n")
    assert spectra.read_spd(path) == ((400.0, 0.1), (500.0, 0.2), (600.0, 0.3))
    for text, line in (("400 0.1\n300 0.2\n", 2), ("400\n", 1), ("400 1\na b\n", 2)):
        path.write_text(text)
        with pytest.raises(FileFormatError, match=f"a.spd:{line}: "):
            spectra.read_spd(path)
    path.write_text("# nothing\n")
    with pytest.raises(FileFormatError, match="no pairs"):
        spectra.read_spd(path)
