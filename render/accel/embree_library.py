"""The Embree 4 library that comes in the `embreex` wheel, bound through ctypes."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ...jit.errors import LuxgradError
from ...jit.once import once

P = ctypes.c_void_p
U = ctypes.c_uint
INT = ctypes.c_int
SIZE = ctypes.c_size_t

# name: (result, arguments), as in Embree 4's rtcore_*.h
_PROTOTYPES: dict[str, tuple[object, list[object]]] = {
    "rtcNewDevice": (P, [ctypes.c_char_p]),
    "rtcReleaseDevice": (None, [P]),
    "rtcGetDeviceError": (INT, [P]),
    "rtcGetDeviceProperty": (ctypes.c_ssize_t, [P, INT]),
    "rtcNewScene": (P, [P]),
    "rtcReleaseScene": (None, [P]),
    "rtcSetSceneFlags": (None, [P, INT]),
    "rtcSetSceneBuildQuality": (None, [P, INT]),
    "rtcCommitScene": (None, [P]),
    "rtcNewGeometry": (P, [P, INT]),
    "rtcReleaseGeometry": (None, [P]),
    "rtcCommitGeometry": (None, [P]),
    "rtcAttachGeometryByID": (None, [P, P, U]),
    "rtcSetSharedGeometryBuffer": (None, [P, INT, U, INT, P, SIZE, SIZE, SIZE]),
    "rtcUpdateGeometryBuffer": (None, [P, INT, U]),
    "rtcSetGeometryUserPrimitiveCount": (None, [P, U]),
    "rtcSetGeometryUserData": (None, [P, P]),
    "rtcSetGeometryBoundsFunction": (None, [P, P, P]),
    "rtcSetGeometryIntersectFunction": (None, [P, P]),
    "rtcSetGeometryOccludedFunction": (None, [P, P]),
}

GEOMETRY_TRIANGLE, GEOMETRY_USER = 0, 120
BUFFER_INDEX, BUFFER_VERTEX = 0, 1
FORMAT_UINT3, FORMAT_FLOAT3 = 0x5003, 0x9003
SCENE_ROBUST = 1 << 2
QUERY_COHERENT = 1 << 16
PROPERTY_VERSION, PROPERTY_NATIVE16 = 0, 34

_ERRORS = {
    1: "unknown error",
    2: "invalid argument",
    3: "invalid operation",
    4: "out of memory",
    5: "unsupported processor",
    6: "build cancelled",
}


class EmbreeError(LuxgradError, RuntimeError):
    """Embree is not there, or refused what it was asked for; the message names the step and Embree's reason."""


def _candidates() -> Iterator[Path]:
    """Yield the places of the library inside the installed `embreex` package, best first."""
    spec = importlib.util.find_spec("embreex")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        package = Path(folder)
        # auditwheel and delvewheel put libraries beside the package, delocate inside it.
        for place in (package.parent / "embreex.libs", package / ".dylibs", package / "lib", package):
            for pattern in ("libembree4*.so*", "libembree4*.dylib", "embree4*.dll"):
                yield from sorted(place.glob(pattern))


def available() -> bool:
    """Return whether the `embreex` package is installed with an Embree 4 library inside; loads nothing."""
    return next(_candidates(), None) is not None


@once
def library() -> ctypes.CDLL:
    """Return the loaded library with its prototypes set; raises EmbreeError if it is not installed or does not load."""
    path = next(_candidates(), None)
    if path is None:
        raise EmbreeError(
            "the ray library Embree was asked for, but the package 'embreex' with libembree4 inside is not installed: "
            "install embreex (wheels exist for Linux x86-64, macOS and Windows x86-64) or build with kind='bvh'"
        )
    try:
        if sys.platform == "win32":
            os.add_dll_directory(str(path.parent))
        else:
            # Embree finds its thread library by the wheel's run path; loading it first also serves moved folders.
            for helper in (*path.parent.glob("libtbb*.so*"), *path.parent.glob("libtbb*.dylib")):
                ctypes.CDLL(str(helper), mode=ctypes.RTLD_GLOBAL)
        loaded = ctypes.CDLL(str(path))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise EmbreeError(f"the Embree library {path} does not load: {error}; reinstall the package embreex") from error
    return loaded


def address(name: str) -> int:
    """Return the address of one of Embree's functions, for generated code to call."""
    return int(ctypes.cast(getattr(library(), name), P).value or 0)


def check(device: int | None, step: str) -> None:
    """Raise EmbreeError with the device's pending error, if there is one; `step` says what was being done."""
    code = library().rtcGetDeviceError(device)
    if code:
        raise EmbreeError(f"Embree failed to {step}: {_ERRORS.get(code, f'error code {code}')}")


@once
def device() -> int:
    """Return Embree's device of this process, made when first asked for and kept until the process ends."""
    handle = library().rtcNewDevice(None)
    if not handle:
        check(None, "start")
        raise EmbreeError("Embree failed to start and gave no reason")
    return int(handle)


def version() -> tuple[int, int, int]:
    """Return Embree's version; raises EmbreeError if it is not installed."""
    number = int(library().rtcGetDeviceProperty(device(), PROPERTY_VERSION))
    return number // 10000, number // 100 % 100, number % 100
