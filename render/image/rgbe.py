"""Radiance pictures (.hdr, .rgbe): three 8-bit mantissas with a common exponent, lines packed by run lengths.

Source of the format: G. Ward, "Real Pixels", Graphics Gems II, 1991, and the file format page of Radiance.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import FileFormatError
from .pixel_format import PixelFormat, Pixels

__all__ = ["read_rgbe", "write_rgbe"]

Bytes = npt.NDArray[np.uint8]

# The packed form stores the width in 15 bits and is not used for very narrow lines.
_PACKED_WIDTHS = range(8, 0x8000)
# All mantissa bits at the largest exponent.
_LARGEST = 255 * 2.0**119


def read_rgbe(data: bytes, path: str) -> Pixels:
    """Return the picture as linear float32 RGB; header variables become metadata."""
    metadata: dict[str, Any] = {}
    cursor = 0
    while True:
        end = data.find(b"\n", cursor)
        if end < 0:
            raise FileFormatError(f"{path}: the header of the Radiance picture ends early")
        line = data[cursor:end].decode("latin-1").strip()
        cursor = end + 1
        size = re.fullmatch(r"([-+])Y\s+(\d+)\s+([-+])X\s+(\d+)", line)
        if size:
            break
        key, found, value = line.partition("=")
        if found:
            metadata[key.strip()] = value.strip()
    if metadata.get("FORMAT", "32-bit_rle_rgbe") != "32-bit_rle_rgbe":
        raise FileFormatError(f"{path}: Radiance pictures of format {metadata['FORMAT']} are not supported, only rgbe")
    metadata.pop("FORMAT", None)
    height, width = int(size[2]), int(size[4])
    # Either form needs several bytes per line: refuse sizes that the file cannot hold before memory is taken.
    if not width or not height or height * 4 > len(data) or width * height > 128 * len(data):
        raise FileFormatError(
            f"{path}: a picture of {width} x {height} pixels does not fit a file of {len(data)} bytes"
        )
    quads = _read_lines(data, cursor, width, height, path)
    if size[1] == "+":
        quads = quads[::-1]
    if size[3] == "-":
        quads = quads[:, ::-1]
    scale = np.ldexp(np.float32(1), quads[..., 3].astype(np.int32) - 136)
    scale[quads[..., 3] == 0] = 0
    rgb = quads[..., :3].astype(np.float32) * scale[..., None]
    return Pixels(np.ascontiguousarray(rgb, dtype=np.float32), PixelFormat.RGB, False, metadata=metadata)


def _read_lines(data: bytes, cursor: int, width: int, height: int, path: str) -> Bytes:
    """Return the bytes (height, width, 4) of packed or plain lines from `cursor` on."""
    lines = np.empty((height, width, 4), dtype=np.uint8)
    for row in range(height):
        mark = data[cursor : cursor + 4]
        if width in _PACKED_WIDTHS and mark == bytes([2, 2, width >> 8, width & 255]):
            cursor += 4
            for channel in range(4):
                line, cursor = _unpack(data, cursor, width, f"{path}: line {row}")
                lines[row, :, channel] = np.frombuffer(line, dtype=np.uint8)
            continue
        plain = data[cursor : cursor + 4 * width]
        if len(plain) < 4 * width:
            raise FileFormatError(f"{path}: the file ends in line {row} of {height}")
        lines[row] = np.frombuffer(plain, dtype=np.uint8).reshape(width, 4)
        if (lines[row, :, :3] == 1).all(axis=1).any():
            raise FileFormatError(
                f"{path}: line {row} is packed in the way of Radiance before 1991, which is not supported"
            )
        cursor += 4 * width
    return lines


def _unpack(data: bytes, cursor: int, width: int, where: str) -> tuple[bytearray, int]:
    """Return one channel of one line and the position after it: counts above 128 repeat a byte, others copy bytes."""
    line = bytearray()
    try:
        while len(line) < width:
            count = data[cursor]
            if count > 128:
                line += data[cursor + 1 : cursor + 2] * (count - 128)
                cursor += 2
            elif count:
                line += data[cursor + 1 : cursor + 1 + count]
                cursor += 1 + count
            else:
                raise FileFormatError(f"{where} holds a run of length 0: the picture is damaged")
    except IndexError:
        cursor = len(data) + 1
    if cursor > len(data):
        raise FileFormatError(f"{where}: the file ends there")
    if len(line) != width:
        raise FileFormatError(f"{where} unpacks to {len(line)} pixels instead of {width}: the picture is damaged")
    return line, cursor


def write_rgbe(pixels: Pixels) -> bytes:
    """Return the file of linear float32 RGB pixels; negative values and NaN become 0, huge ones the largest number."""
    rgb = np.nan_to_num(np.maximum(pixels.array, 0), nan=0.0, posinf=_LARGEST).clip(0, _LARGEST)
    height, width, _ = rgb.shape
    mantissa, exponent = np.frexp(rgb.max(axis=2).astype(np.float32))
    # A largest channel that rounds up to 256 takes the next exponent.
    exponent = exponent + (np.floor(mantissa * 256 + 0.5) >= 256)
    quads = np.zeros((height, width, 4), dtype=np.uint8)
    quads[..., :3] = np.floor(np.ldexp(rgb, 8 - exponent[..., None]) + 0.5).clip(0, 255)
    quads[..., 3] = (exponent + 128).clip(0, 255)
    # Below the smallest exponent there is only 0.
    quads[(exponent < -127) | (mantissa == 0)] = 0
    header = "".join(
        f"{key}={value}\n" for key, value in pixels.metadata.items() if isinstance(value, str | int | float)
    )
    head = f"#?RADIANCE\n{header}FORMAT=32-bit_rle_rgbe\n\n-Y {height} +X {width}\n".encode("latin-1", "replace")
    if width not in _PACKED_WIDTHS:
        return head + quads.tobytes()
    mark = bytes([2, 2, width >> 8, width & 255])
    parts = [head]
    for row in quads:
        parts.append(mark)
        parts.extend(_pack(row[:, channel]) for channel in range(4))
    return b"".join(parts)


def _pack(line: Bytes) -> bytes:
    """Return one channel of one line by run lengths; four or more equal bytes are worth a count of their own."""
    raw = line.tobytes()
    edges = np.flatnonzero(np.diff(line)) + 1
    starts = np.concatenate([[0], edges])
    lengths = np.diff(np.concatenate([starts, [len(raw)]]))
    long = lengths >= 4
    packed = bytearray()
    done = 0
    for start, length in zip(starts[long].tolist(), lengths[long].tolist(), strict=True):
        _pack_literal(packed, raw[done:start])
        for offset in range(0, length, 127):
            packed += bytes([128 + min(127, length - offset), raw[start]])
        done = start + length
    _pack_literal(packed, raw[done:])
    return bytes(packed)


def _pack_literal(packed: bytearray, raw: bytes) -> None:
    for offset in range(0, len(raw), 128):
        piece = raw[offset : offset + 128]
        packed.append(len(piece))
        packed += piece
