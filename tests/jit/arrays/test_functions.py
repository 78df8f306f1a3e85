"""Functions of arrays, creation, reductions, traits and constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
import luxgrad.llvm as plain
import luxgrad.scalar as scalar
from luxgrad.llvm.ad import (
    Array2f,
    Array3f,
    Array3i,
    Array33f,
    Bool,
    Float,
    Float16,
    Float64,
    Int,
    Matrix3f,
    TensorXf,
    UInt,
    UInt8,
)


@dataclass
class Ray:
    o: Array3f
    t: Float


class Old:
    DRJIT_STRUCT = {"x": Float, "v": Array2f}
    x: Any
    v: Any


def test_arguments_of_any_kind() -> None:
    assert math.isclose(dr.sin(0.5), math.sin(0.5), rel_tol=1e-12) and dr.maximum(2, 3) == 3
    assert list(dr.fma(Float(1, 2), 2, 1)) == [3, 5]
    assert np.allclose(dr.sqrt(Array2f(4, 9)).numpy()[:, 0], [2, 3])
    assert type(dr.select(Bool(True), 1, 2)) is Int and type(dr.select(Bool(True), 1.0, 2)) is Float
    assert list(dr.select(Float(1, 2) > 1, Float(5), 6)) == [6, 5] and dr.select(True, 1, 2) == 1
    with pytest.raises(TypeError, match="expected 1 arguments"):
        dr.sin(1.0, 2.0)
    with pytest.raises(TypeError):
        dr.sin(Int(1))


def test_extremes_and_nan() -> None:
    x = Float(float("nan"), 1)
    assert np.isnan(dr.maximum(x, 0.0)[0]) and dr.fmax(x, 0.0)[0] == 0
    assert dr.max(x)[0] == 1 and dr.min(x)[0] == 1
    assert dr.max(Float())[0] == -math.inf and dr.min(Float())[0] == math.inf and np.isnan(dr.mean(Float())[0])
    assert list(dr.max(Float(1, 5), 3.0)) == [3, 5]


def test_powers() -> None:
    assert list(Int(2, -3) ** 3) == [8, -27] and list(Int(5) ** 0) == [1]
    assert np.allclose(list(Float(2, 4) ** -2), [0.25, 0.0625]) and np.allclose(list(2 ** Float(1, 3)), [2, 8])
    assert np.allclose(list(dr.power(Float(2), 0.5)), math.sqrt(2))
    for bad in (lambda: Int(2) ** -1, lambda: Int(2) ** 0.5):
        with pytest.raises(TypeError, match="integer >= 0"):
            bad()


def test_rounding_and_signs() -> None:
    assert list(dr.round(Float(0.5, 1.5, 2.5, -0.5))) == [0, 2, 2, 0]
    assert list(dr.sign(Float(0.0, -2, 3))) == [1, -1, 1]
    assert list(dr.clip(Float(-1, 0.5, 2), 0, 1)) == [0, 0.5, 1] and np.allclose(list(dr.lerp(Float(1), 3, 0.25)), 1.5)
    assert np.allclose(dr.hypot(Float(3e30), Float(4e30))[0], 5e30)
    assert list(dr.isnan(Float(math.nan, 1))) == [True, False] and list(dr.isinf(Float(-math.inf, 1))) == [True, False]
    assert list(dr.isfinite(Float(math.nan, math.inf, 1))) == [False, False, True]


def test_functions_at_the_edge_of_their_domain_have_finite_derivatives() -> None:
    for fn in (dr.safe_sqrt, dr.safe_acos, dr.safe_asin):
        x = Float(-2, 0, 0.25, 1, 2)
        dr.enable_grad(x)
        y = fn(x)
        dr.backward(y)
        assert dr.all(dr.isfinite(y))[0] and dr.all(dr.isfinite(dr.grad(x)))[0]
        assert math.isclose(fn(0.25), fn(Float(0.25))[0], rel_tol=1e-6)
    assert np.isclose(dr.grad(x)[2], 1 / math.sqrt(1 - 0.0625))


def test_angles_and_bits() -> None:
    sine, cosine = dr.sincos(Float(0.3))
    assert np.allclose([sine[0], cosine[0]], [math.sin(0.3), math.cos(0.3)])
    assert np.isclose(dr.deg2rad(180.0), math.pi) and np.isclose(dr.rad2deg(Float(math.pi))[0], 180)
    assert np.allclose(dr.sphdir(Float(0.5), Float(1.0)).numpy()[:, 0], list(dr.sphdir(0.5, 1.0)), atol=1e-6)
    assert list(dr.reinterpret_array(UInt, Float(1.0))) == [0x3F800000]
    assert list(dr.log2i(UInt(1, 2, 3, 1 << 31))) == [0, 1, 1, 31] and dr.log2i(9) == 3
    with pytest.raises(TypeError, match="width"):
        dr.reinterpret_array(UInt8, Float(1))


def test_default_axes_of_reductions() -> None:
    v = Array3f(Float(1, 2), 3, 4)
    assert list(dr.sum(v)) == [8, 9] and list(dr.sum(v, axis=None)) == [17] and list(dr.prod(v)) == [12, 24]
    assert list(dr.sum(v, axis=1).x) == [3] and list(dr.sum(Float(1, 2, 3))) == [6]
    assert dr.sum([1, 2, 3]) == 6 and dr.sum(scalar.Array3f(1, 2, 3)) == 6
    assert list(dr.count(Bool(True, False, True))) == [2] and list(dr.none(Bool(False))) == [True]
    assert list(dr.any(v > 3)) == [True, True] and list(dr.all(v > 2)) == [False, False]
    assert list(dr.mean(Float(1, 2, 6))) == [3] and np.allclose(list(dr.mean(v)), [8 / 3, 3])
    for bad in (lambda: dr.sum(Bool(True)), lambda: dr.mean(Int(1)), lambda: dr.all(Float(1))):
        with pytest.raises(TypeError):
            bad()


def test_long_sums_are_exact_enough() -> None:
    assert dr.sum(dr.opaque(Float16, 1, 5000))[0] == 5000
    assert abs(dr.sum(dr.opaque(Float, 0.1, 10_000_000))[0] - 1e6) < 0.1
    assert dr.sum(dr.ones(Float, 100)).state == dr.VarState.Literal
    assert dr.prod(dr.full(UInt, 3, 40))[0] == 3**40 % 2**32


def test_creation() -> None:
    assert list(dr.arange(Int, 2, 8, 3)) == [2, 5] and list(dr.arange(Float, 3)) == [0, 1, 2]
    assert np.allclose(dr.linspace(Float, 0, 1, 5).numpy(), np.linspace(0, 1, 5))
    assert np.allclose(dr.linspace(Float, 0, 1, 4, endpoint=False).numpy(), np.linspace(0, 1, 4, endpoint=False))
    assert dr.zeros(Array3f, 4).shape == (3, 4) and dr.ones(Array3f, (3, 4)).shape == (3, 4)
    assert dr.full(Array33f, 2, (3, 3, 5)).shape == (3, 3, 5) and dr.full(float, 2) == 2.0
    assert dr.zeros(scalar.Array3f).z == 0
    ray, old = dr.zeros(Ray, 3), dr.ones(Old, 2)
    assert ray.o.shape == (3, 3) and len(ray.t) == 3 and list(old.v.y) == [1, 1]
    like = dr.ones_like(ray)
    assert list(like.o.z) == [1, 1, 1]
    assert dr.zeros_like(TensorXf(np.ones((2, 3)))).shape == (2, 3)
    with pytest.raises(TypeError, match=r"asked for \(2, 4\)"):
        dr.zeros(Array3f, (2, 4))
    with pytest.raises(TypeError, match="floating-point"):
        dr.linspace(Int, 0, 1, 3)
    with pytest.raises(ValueError, match="step"):
        dr.arange(Int, 0, 3, 0)


def test_creation_takes_no_memory_until_used() -> None:
    dr.flush_malloc_cache()
    before = dr.launch_stats()
    x = dr.linspace(Float, 0, 1, 1_000_000)
    assert x.state == dr.VarState.Unevaluated and dr.launch_stats() == before
    y = dr.opaque(x[:0].__class__, 3.0, 2)
    assert y.state == dr.VarState.Evaluated and list(y) == [3, 3]


def test_allclose() -> None:
    assert dr.allclose(Array3f(1, 2, 3), [1, 2, 3]) and not dr.allclose(Float(1, 2), Float(1, 2.1))
    assert dr.allclose([Float(1), 2], [1, 2]) and not dr.allclose([1], [1, 2])
    assert dr.allclose({"a": 1}, {"a": Float(1)})
    assert not dr.allclose(math.nan, math.nan) and dr.allclose(Float(math.nan), math.nan, equal_nan=True)
    assert not dr.allclose(Array3f(1), Array2f(1))
    with pytest.raises(AssertionError, match="tolerance"):
        dr.assert_allclose(Float(1), 2.0)


def test_scheduled_arrays_share_a_kernel() -> None:
    x, y = dr.arange(Float, 100) * 2, dr.arange(Float, 100) * 3
    before = dr.launch_stats()[0]
    assert dr.schedule(x) and dr.eval(y)
    assert dr.launch_stats()[0] == before + 1 and x.state == dr.VarState.Evaluated
    assert not dr.eval(x, y)


def test_format_and_print(capsys: pytest.CaptureFixture[str]) -> None:
    assert dr.format("{} and {name}", Float(1), name=2) == "[1] and 2"
    dr.print("x = {}", Float(1, 2))
    assert capsys.readouterr().out == "x = [1, 2]\n"


def test_traits() -> None:
    assert dr.is_array_v(Float(1)) and not dr.is_array_v(1.0)
    assert dr.is_jit_v(Array3f) and not dr.is_jit_v(scalar.Array3f)
    assert dr.is_float_v(Float) and dr.is_integral_v(3) and dr.is_mask_v(True)
    assert dr.is_signed_v(Int) and dr.is_unsigned_v(UInt) and not dr.is_unsigned_v(Float)
    assert dr.is_diff_v(Float) and not dr.is_diff_v(plain.Float) and dr.is_half_v(Float16)
    assert dr.is_matrix_v(Matrix3f) and dr.is_tensor_v(TensorXf)
    assert dr.is_vector_v(Array3f) and not dr.is_vector_v(Matrix3f)
    assert dr.is_struct_v(Ray) and dr.is_struct_v(Old) and not dr.is_struct_v(Float)
    assert (dr.size_v(Float), dr.size_v(Array3f), dr.depth_v(Array33f), dr.depth_v(3)) == (-1, 3, 3, 0)
    assert dr.itemsize_v(Float64) == 8
    assert dr.value_t(Array33f) is Array3f and dr.value_t(Float) is float and dr.scalar_t(Array3i) is int
    assert dr.mask_t(Array3f).__name__ == "Array3b" and dr.leaf_t(Array33f) is Float
    assert dr.detached_t(Array3f) is plain.Array3f and dr.diff_array_t(plain.Float) is Float
    assert dr.array_t(Matrix3f) is Array33f and dr.array_t(TensorXf) is Float and dr.tensor_t(Float) is TensorXf
    assert dr.uint32_array_t(Array3f).__name__ == "Array3u" and dr.int_array_t(Float) is Int
    assert dr.float64_array_t(Matrix3f).__name__ == "Matrix3f64" and dr.expr_t(Int, Float) is Float


def test_constants() -> None:
    for kind, numpy in ((Float, np.float32), (Float64, np.float64), (Float16, np.float16), (Array3f, np.float32)):
        info = np.finfo(numpy)
        assert dr.largest(kind) == float(info.max) and dr.smallest(kind) == float(info.smallest_normal)
        assert dr.epsilon(kind) == float(info.eps) / 2
        assert dr.one_minus_epsilon(kind) == float(np.nextafter(numpy(1), numpy(0)))
    assert dr.pi == math.pi and dr.isnan(dr.nan)
    with pytest.raises(TypeError, match="Int"):
        dr.epsilon(Int)
