"""Which public names `luxgrad` has, and where each of them lives: module and name there."""

from __future__ import annotations

_ARRAYS = "luxgrad.jit.arrays"

# Per module: its names; "public=own" where they differ.
_TABLE: dict[str, str] = {
    f"{_ARRAYS}.base": "ArrayBase",
    f"{_ARRAYS}.functions": (
        "abs fma minimum=min maximum=max fmin fmax sqrt cbrt rcp rsqrt ceil floor trunc round sign copysign mulsign "
        "mul_hi sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 log log2 erf popcnt lzcnt "
        "tzcnt brev select power pow=power clip clamp=clip lerp square sqr=square hypot isnan isinf isfinite safe_sqrt"
    ),
    f"{_ARRAYS}.composed": (
        "sincos sincosh deg2rad rad2deg step log2i safe_asin safe_acos sphdir unit_angle reinterpret_array allclose "
        "assert_allclose eval schedule format print"
    ),
    f"{_ARRAYS}.create": (
        "zeros ones full empty arange linspace opaque make_opaque zeros_like ones_like full_like empty_like"
    ),
    f"{_ARRAYS}.reduce": "reduce sum prod min max mean all any none count dot",
    f"{_ARRAYS}.linear": ("abs_dot norm squared_norm normalize cross matmul diag trace frob det inverse identity"),
    f"{_ARRAYS}.memops": "gather scatter scatter_reduce scatter_add scatter_inc",
    f"{_ARRAYS}.shape": ("concat ravel unravel width shape tile repeat take slice=slice_ meshgrid reverse reshape"),
    f"{_ARRAYS}.rearrange": "expand_dims squeeze transpose moveaxis swapaxes stack binary_search",
    f"{_ARRAYS}.scan": "compress prefix_sum cumsum block_sum block_reduce block_prefix_sum",
    "luxgrad.jit.constants": (
        "pi e inf nan two_pi inv_pi inv_two_pi inv_four_pi sqrt_pi inv_sqrt_pi sqrt_two inv_sqrt_two sqrt_two_pi "
        "inv_sqrt_two_pi log_two inv_log_two epsilon one_minus_epsilon largest smallest recip_overflow"
    ),
    "luxgrad.jit.control": "while_loop if_stmt switch",
    "luxgrad.jit.instances": "InstanceArray instances dispatch",
    "luxgrad.jit.syntax": "syntax hint",
    "luxgrad.jit.random": "sample_tea_32 sample_tea_64 sample_tea_float32",
    "luxgrad.jit.sparse.grid": "SparseGrid",
    "luxgrad.jit.sparse.matrix": "CSRMatrix",
    "luxgrad.jit.sparse.exchange": "SparseIndexList=IndexList",
    "luxgrad.jit.modes": "ReduceOp ReduceMode ADMode FilterMode WrapMode VarState",
    "luxgrad.jit.flags": "JitFlag flag set_flag scoped_set_flag",
    "luxgrad.jit.diagnostics": (
        "JitBackend LogLevel KernelType set_log_level log_level kernel_history kernel_history_clear launch_stats "
        "malloc_watermark malloc_clear_statistics memory_stats memory_scope memory_snapshot set_memory_limit set_label "
        "flush_kernel_cache flush_malloc_cache whos "
        "thread_count set_thread_count scoped_thread_count sync_thread"
    ),
    "luxgrad.jit.caches": "cache_stats clear_cache",
    "luxgrad.jit.traits": (
        "Dynamic is_array_v is_mask_v is_float_v is_half_v is_integral_v is_arithmetic_v is_signed_v is_unsigned_v "
        "is_jit_v is_diff_v is_dynamic_v is_matrix_v is_tensor_v is_complex_v is_quaternion_v is_special_v is_vector_v "
        "is_struct_v size_v depth_v itemsize_v backend_v type_v value_t scalar_t leaf_t array_t tensor_t matrix_t "
        "mask_t replace_type_t detached_t diff_array_t expr_t int8_array_t uint8_array_t int32_array_t uint32_array_t "
        "int64_array_t uint64_array_t float16_array_t float32_array_t float64_array_t bool_array_t int_array_t "
        "uint_array_t float_array_t"
    ),
    "luxgrad.jit.errors": (
        "LuxgradError SceneError WrongTypeError FileFormatError MissingFileError CompileError BoundsError "
        "FreezeError MemoryBudgetError NotStreamableError OutOfMemoryError SymbolicError"
    ),
    "luxgrad.ad.api": (
        "enable_grad disable_grad set_grad_enabled grad_enabled grad set_grad accum_grad clear_grad detach "
        "replace_grad enqueue traverse forward forward_from forward_to backward backward_from backward_to "
        "suspend_grad resume_grad isolate_grad ADFlag"
    ),
    "luxgrad.ad.custom": "CustomOp custom",
    "luxgrad.ad.freeze.function": "freeze FrozenFunction",
    "luxgrad.ad.check": "check_grad GradientError GradientReport",
    "luxgrad.auto": "set_backend",
}

SUBMODULES = frozenset({"auto", "detail", "llvm", "mi", "opt", "scalar", "stream"})

NAMES: dict[str, tuple[str, str]] = {}
for _module, _words in _TABLE.items():
    for _word in _words.split():
        _public, _, _own = _word.partition("=")
        NAMES[_public] = (_module, _own or _public)
