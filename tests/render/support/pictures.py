"""Comparison of pictures; what differs is saved as PNG, and the failure names the files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy import stats

from luxgrad.render.image.bitmap import Bitmap


def save(folder: Path, **pictures: np.ndarray) -> str:
    """Save linear pictures (H, W, C) as PNG and return their paths."""
    paths = []
    for name, picture in pictures.items():
        channels = picture[..., :3] if picture.shape[2] >= 3 else picture[..., :1]
        path = folder / f"{name}.png"
        image = np.nan_to_num(np.ascontiguousarray(channels, np.float32))
        Bitmap(image).convert(component_format=np.uint8, srgb_gamma=True).write(path)
        paths.append(str(path))
    return ", ".join(paths)


def assert_equal(
    image: np.ndarray, reference: np.ndarray, folder: Path, share: float = 0.99, rel: float = 2e-3
) -> None:
    """Assert that a share of the pixels agrees to rounding."""
    assert image.shape == reference.shape
    assert np.isfinite(image).all()
    same = (np.abs(image - reference) <= rel * (np.abs(reference) + 1e-2)).all(-1)
    if same.mean() < share:
        files = save(folder, image=image, reference=reference, difference=np.abs(image - reference))
        raise AssertionError(f"only {same.mean():.4f} of the pixels agree, {share} should; see {files}")


def assert_same_mean(
    pictures: list[np.ndarray], mean: np.ndarray, sem: np.ndarray, overall: tuple[np.ndarray, np.ndarray], folder: Path
) -> None:
    """Assert that pictures of different seeds have a reference's mean per pixel (99.75 % of them) and over all pixels.

    `mean`, `sem`: per pixel; `overall`: mean over all pixels per channel, and its standard error.
    """
    stack = np.stack(pictures).astype(np.float64)
    count = len(stack)
    ours, error = stack.mean(0), stack.std(0, ddof=1) / math.sqrt(count)
    whole = stack.mean((1, 2))
    whole_error = np.hypot(whole.std(0, ddof=1) / math.sqrt(count), overall[1])
    deviation = np.abs(whole.mean(0) - overall[0]) / whole_error
    # Few seeds estimate their own spread badly: the quantile is Student's, corrected for the number of pixels (Sidak).
    limit = stats.t.isf((1 - (1 - 0.01) ** (1 / mean[..., 0].size)) / 2, count - 1)
    # Half precision of the reference and single precision of the sums.
    tolerance = limit * np.hypot(error, sem) + 2e-3 * np.abs(mean) + 1e-5
    same = (np.abs(ours - mean) <= tolerance).all(-1)
    bound = stats.t.isf(stats.norm.sf(4.0), count - 1)
    if same.mean() < 0.9975 or (deviation > bound).any():
        files = save(folder, mean=ours, reference=mean, difference=np.abs(ours - mean))
        raise AssertionError(
            f"{same.mean():.4f} of the pixels agree (0.9975 should); means {whole.mean(0)} and {overall[0]} are "
            f"{deviation} standard errors apart (at most {bound:.1f}); see {files}"
        )
