"""What a candidate may name, as data. Everything of torch and Triton that is not listed is refused."""

ENTRY_POINT, MODEL_ENTRY_POINT = "kernel_function", "ModelNew"

#: Modules that may be imported; a name taken from one is judged like an attribute of it.
IMPORTS = frozenset({
    "__future__", "collections.abc", "dataclasses", "enum", "functools", "itertools", "math", "typing",
    "torch", "torch.nn", "torch.nn.functional",
    "triton", "triton.language", "triton.language.extra", "triton.language.extra.cuda",
    "triton.language.extra.cuda.libdevice", "triton.language.extra.libdevice", "triton.language.math",
    "triton.language.standard", "triton.tools.tensor_descriptor",
})  # fmt: skip

DTYPES = frozenset({
    "float32", "float", "float16", "half", "bfloat16", "float64", "double", "int8", "uint8", "int16", "short",
    "int32", "int", "int64", "long", "bool", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64",
})  # fmt: skip

_ALLOCATES = frozenset({
    "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like",
    "arange", "tensor", "scalar_tensor",
})  # fmt: skip
_VIEWS = frozenset({
    "as_strided", "reshape", "transpose", "permute", "movedim", "swapaxes", "squeeze", "unsqueeze", "flatten", "ravel",
    "unflatten", "narrow", "select", "split", "chunk", "unbind", "broadcast_to", "t", "diagonal", "view_as_real",
    "view_as_complex",
})  # fmt: skip
_ASKS = frozenset({
    "Tensor", "Size", "dtype", "device", "finfo", "iinfo", "is_tensor", "is_floating_point", "numel",
    "promote_types", "result_type", "broadcast_shapes", "no_grad", "inference_mode", "contiguous_format",
    "channels_last", "channels_last_3d", "preserve_format", "strided", "get_default_dtype",
    "cuda.get_device_properties", "cuda.get_device_capability", "cuda.current_device", "cuda.device",
    "cuda.is_available", "cuda.device_count", "cuda.get_device_name", "version.cuda", "autograd.Function",
})  # fmt: skip
_MODULES = frozenset({
    "Module", "Parameter", "ParameterList", "ParameterDict", "ModuleList", "Linear", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm1d",
    "BatchNorm2d", "BatchNorm3d", "InstanceNorm2d", "Embedding", "Identity", "Sequential",
})  # fmt: skip

#: Names below ``torch``.
TORCH = frozenset(
    DTYPES | _ALLOCATES | _VIEWS | _ASKS | {f"nn.{name}" for name in _MODULES} | {"nn.parameter.Parameter"}
)

#: Names below ``triton``; ``triton.language`` is allowed as a whole, for it runs nowhere but in kernels.
TRITON = frozenset({
    "jit", "autotune", "heuristics", "Config", "cdiv", "next_power_of_2", "constexpr_function", "set_allocator",
    "tools.tensor_descriptor.TensorDescriptor", "tools.tensor_descriptor.TensorDescriptor.from_tensor",
    "runtime.driver.active.utils.get_device_properties", "runtime.driver.active.get_current_device",
    "runtime.driver.active.get_active_torch_device", "runtime.driver.active.get_current_target",
})  # fmt: skip
TRITON_WHOLE = ("triton.language",)

#: Names below torch and Triton that are also modules of the standard library.
NOT_THE_STANDARD_LIBRARYS = frozenset({"math", "random", "abc", "select"})

BUILTINS_REFUSED = frozenset({
    "open", "exec", "eval", "compile", "__import__", "globals", "locals", "vars", "setattr", "delattr", "input",
    "breakpoint", "memoryview", "dir", "id", "__builtins__", "__loader__", "__spec__", "object", "help", "exit", "quit",
})  # fmt: skip

#: Attributes of any object that lead out of the candidate.
ATTRIBUTES_REFUSED = frozenset({
    "f_back", "f_globals", "f_locals", "f_builtins", "f_code", "gi_frame", "gi_code", "cr_frame", "ag_frame",
    "tb_frame", "tb_next", "func_globals", "co_code", "cache_clear", "fn", "src", "run", "device_caches",
    "pre_run_hooks", "add_pre_run_hook", "used_global_vals", "format_map",
})  # fmt: skip
DUNDERS_ALLOWED = frozenset({"__init__", "__name__", "__doc__", "__call__", "__future__", "__all__", "__file__"})

#: Methods of tensors that compute. Python's own containers share none of these names.
METHODS_COMPUTE = frozenset({
    "abs", "addmm", "addmv", "addbmm", "baddbmm", "bmm", "mm", "mv", "matmul", "dot", "vdot", "inner", "outer",
    "einsum", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square", "reciprocal",
    "sum", "mean", "prod", "std", "var", "norm", "amax", "amin", "max", "min", "argmax", "argmin", "aminmax",
    "logsumexp", "softmax", "log_softmax", "sigmoid", "tanh", "relu", "gelu", "erf", "sin", "cos", "cumsum",
    "cumprod", "clamp", "clip", "where", "masked_fill", "gather", "scatter", "scatter_add", "scatter_reduce",
    "index_select", "index_add", "index_put", "topk", "kthvalue", "median", "nonzero", "unique", "sub", "mul", "div",
    "true_divide", "floor_divide", "addcmul", "addcdiv", "lerp", "neg", "negative", "pow", "fmod", "remainder",
    "multiply", "divide", "subtract", "apply_", "map_", "bernoulli", "normal_", "uniform_", "random_", "all", "any",
    "eq", "ne", "lt", "le", "gt", "ge", "equal", "allclose", "isclose", "logical_and", "logical_or",
    "absolute", "acos", "acosh", "addr", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argsort", "argwhere", "as_strided_scatter", "asin", "asinh", "atan", "atan2", "atanh", "bincount",
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "cauchy", "ceil", "cholesky", "cholesky_inverse", "cholesky_solve", "clamp_max", "clamp_min", "conj_physical",
    "copysign", "corrcoef", "cosh", "count_nonzero", "cov", "cross", "cummax", "cummin", "deg2rad", "dequantize",
    "det", "diag", "diag_embed", "diagflat", "diagonal_scatter", "diff", "digamma", "dist", "erfc", "erfinv",
    "exponential", "fill_diagonal", "fix", "flip", "fliplr", "flipud", "float_power", "floor", "fmax", "fmin",
    "frac", "frexp", "gcd", "geometric", "geqrf", "ger", "greater", "greater_equal", "hardshrink", "hash_tensor",
    "heaviside", "histc", "histogram", "hypot", "i0", "igamma", "igammac", "index_copy", "index_fill",
    "index_reduce", "inverse", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "istft", "kron",
    "lcm", "ldexp", "less", "less_equal", "lgamma", "log_normal", "logaddexp", "logaddexp2", "logcumsumexp",
    "logdet", "logical_not", "logical_xor", "logit", "lu", "lu_solve", "map2", "masked_scatter", "masked_select",
    "matrix_exp", "matrix_power", "maximum", "minimum", "mode", "msort", "multinomial", "mvlgamma", "nan_to_num",
    "nanmean", "nanmedian", "nanquantile", "nansum", "nextafter", "nonzero_static", "not_equal", "orgqr", "ormqr",
    "pinverse", "polygamma", "prelu", "put", "qr", "quantile", "rad2deg", "reinforce", "renorm",
    "repeat_interleave", "roll", "rot90", "round", "select_scatter", "sgn", "sign", "signbit", "sinc", "sinh",
    "slice_inverse", "slice_scatter", "slogdet", "smm", "sparse_mask", "sspaddmm", "stft", "sum_to_size", "svd",
    "take", "take_along_dim", "tan", "to_mkldnn", "to_padded_tensor", "to_sparse", "to_sparse_bsc",
    "to_sparse_bsr", "to_sparse_coo", "to_sparse_csc", "to_sparse_csr", "trace", "triangular_solve", "tril",
    "triu", "trunc", "unique_consecutive", "xlogy", "cdist",
})  # fmt: skip
#: Methods that bring values to the host, write files or escape to other memory.
METHODS_LEAVE = frozenset({
    "item", "tolist", "numpy", "cpu", "to_dense", "backward", "register_hook", "share_memory_", "storage",
    "untyped_storage", "set_", "pin_memory", "is_pinned", "record_stream", "__dlpack__", "as_subclass",
})  # fmt: skip
