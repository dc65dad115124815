"""What gradsmith knows about torch's operations without importing torch: names, by what they do.

The tables of torch_ops.py are generated from torch itself. What is added or taken away here is what they cannot say, each
with its reason.
"""

from __future__ import annotations

from gradsmith.source import torch_ops


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Attributes, not calls.
VIEW_ATTRIBUTES = _words("T mT H mH data real imag")
# Their schemas say that the result may share memory, and it does where nothing has to be done; else it is a copy. Those
# without a schema are shorthands of `to`, or Python's.
MAYBE_SAME = _words(
    """
    contiguous reshape reshape_as flatten ravel to float double half bfloat16 type type_as cuda cpu as_tensor
    asarray requires_grad_ rename refine_names resolve_conj resolve_neg conj atleast_1d atleast_2d atleast_3d
    """
)
# `values` and `indices` of sparse tensors, and `slice`, are what dicts and Python call something else.
_NOT_ONLY_TENSORS = _words(
    "values indices row_indices col_indices crow_indices ccol_indices slice slice_inverse copy coalesce pin_memory"
)
# Methods and functions whose result shares memory with their first operand; NumPy's arrays have no schema.
VIEWS = (
    torch_ops.ALIASES - MAYBE_SAME - VIEW_ATTRIBUTES - _NOT_ONLY_TENSORS - _words("matrix_H numpy_T positive")
) | _words("numpy from_numpy detach_")
# The operand itself, always.
SAME = _words("requires_grad_ retain_grad_ share_memory_ pin_memory_")

# Casts have no operator of their own; the others want integers, or arguments that the script does not try.
CASTS_TO_INTEGER = _words("long int short char byte")
TO_INTEGER = (
    torch_ops.INTEGERS
    | CASTS_TO_INTEGER
    | _words(
        """
        bincount bucketize multinomial one_hot bitwise_and bitwise_or bitwise_xor bitwise_not randint randint_like
        randperm tril_indices triu_indices
        """
    )
)
# `bool` is a cast; `equal` gives back a bool of Python's.
TO_BOOL = torch_ops.BOOLS | _words("bool equal")
# The angle of a complex number is no step; a histogram counts.
STEPS = (torch_ops.STEPS - {"angle"}) | {"histc"}
# Drawing by a probability, and choosing, are steps for who trains through them; quantisers round inside.
STEPS_ON_THE_WAY = STEPS | _words(
    """
    bernoulli multinomial argmax argmin one_hot fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
    """
)
NORMAL_DRAWS = _words("randn randn_like normal")
# What may turn floating numbers into integers.
CASTS = CASTS_TO_INTEGER | _words("to type type_as")
CLAMPS = _words("clamp clip clamp_min clamp_max")
# Read one triangle of a matrix: who calls them means symmetric matrices.
OF_SYMMETRIC = _words("eigh eigvalsh cholesky cholesky_ex cholesky_solve cholesky_inverse")
# Add up what indices point at.
ACCUMULATE = _words("index_add scatter_add scatter_reduce index_reduce segment_reduce bincount")
# Write at what indices point at, and keep one of several.
SCATTERS = _words("scatter index_put index_copy setitem put")
# Give back values, and behind them the indices where they stood.
WITH_INDICES = _words("sort topk max min kthvalue median nanmedian mode cummax cummin")
# Take square matrices.
OF_SQUARE = _words("cholesky eigh eig eigvalsh inverse matrix_exp slogdet logdet")
COMPARISONS = _words("gt ge lt le eq ne greater greater_equal less less_equal not_equal")
# A side is chosen for every element: which one, only the values say.
PIECEWISE = _words(
    "where min max minimum maximum fmin fmax amin amax abs sign sgn heaviside relu relu6 hardtanh hardsigmoid hardswish"
    " threshold softplus leaky_relu elu prelu hardshrink softshrink masked_fill"
)
# So do these, whose side follows from more than the sign of one operand, or which are parts of torch's own layers.
CHOOSES_INSIDE = _words("selu celu rrelu rrelu_with_noise _prelu_kernel signbit huber_loss smooth_l1_loss")
# Of these the sign of the operand chooses the side.
BY_SIGN = PIECEWISE - _words("where masked_fill min max amin amax minimum maximum fmin fmax")
EQUALITIES = _words("eq ne __eq__ __ne__")
# Python's constructors have no operator.
CREATION = (torch_ops.CREATION - {"from_file"}) | _words("tensor new_tensor sparse_coo_tensor range")
# In-place draws are methods of their own; dropout inside a layer of torch's is not the author's draw.
RANDOM = (
    torch_ops.RANDOM - _words("gru lstm rnn_relu rnn_tanh scaled_dot_product_attention random uniform exponential")
) | _words(
    """
    dropout1d dropout2d dropout3d bernoulli_ normal_ uniform_ exponential_ geometric_ log_normal_ cauchy_ random_
    """
)
# Their backward needs what forward saved; that of `x + 1` or `x.view(-1)` does not. Batches, kernels and dimensions are
# arguments that the script does not try.
SAVES = torch_ops.SAVES | _words("bmm conv1d conv2d conv3d layer_norm logsumexp")
SAVES_NOTHING = torch_ops.SAVES_NOTHING
# No tag says so: products and factorisations, whose cost grows faster than their size.
LINEAR_ALGEBRA = _words(
    """
    matmul mm bmm mv addmm addmv addbmm baddbmm einsum linear bilinear tensordot cdist inner chain_matmul
    multi_dot kron conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv1d_input
    conv2d_input conv3d_input conv1d_weight conv2d_weight conv3d_weight convolution convolution_backward
    conv_tbc inverse inv solve solve_triangular triangular_solve cholesky cholesky_solve cholesky_inverse
    cholesky_ex svd eigh eig qr lstsq pinv pinverse lu lu_factor lu_solve matrix_exp matrix_power det logdet
    slogdet scaled_dot_product_attention
    """
)
# Give back several tensors, or a tensor whose number of parts is not seen in the source. `unique` is a Python function.
TUPLES = torch_ops.SEVERAL | _words("unique convolution_backward")
# Give back a tuple when called with a dimension; the others of their kind ask for a list, or for a condition alone.
TUPLES_WITH_DIM = torch_ops.SOMETIMES_SEVERAL - MAYBE_SAME - _words("where dequantize quantize_per_tensor")

# Methods of a tensor whose result is no tensor.
TO_NUMBER = _words("item")
TO_INT = _words(
    """
    dim ndimension numel nelement get_device element_size data_ptr storage_offset sparse_dim dense_dim __len__
    """
)
TO_FLAG = _words(
    """
    is_contiguous is_floating_point is_complex is_signed is_pinned is_shared is_set_to is_same_size is_inference
    is_conj is_neg is_coalesced is_tensor is_grad_enabled is_autocast_enabled is_nonzero has_names
    """
)
TO_SHAPE = _words("size stride broadcast_shapes Size")
SHAPE_ATTRIBUTES = _words("shape")
INT_ATTRIBUTES = _words("ndim itemsize nbytes output_nr _version")
FLAG_ATTRIBUTES = _words(
    """
    requires_grad is_cuda is_sparse is_leaf is_quantized is_meta is_cpu is_mps is_xpu is_nested retains_grad
    """
)
# What can be asked of a tensor without reading a value.
MEASURED = SHAPE_ATTRIBUTES | INT_ATTRIBUTES | FLAG_ATTRIBUTES | {"dtype", "device", "layout"}
OTHER_METHODS = _words(
    """
    tolist storage untyped_storage numpy register_hook register_post_accumulate_grad_hook backward retain_grad
    __dlpack__ dtype device layout names grad grad_fn
    """
)

# Move elements and change none, or mix them in one precision: the dtype stays.
SHUFFLES = _words(
    """
    cat concat concatenate stack hstack vstack dstack gather scatter scatter_add scatter_reduce index_select
    index_add index_copy index_fill index_put masked_select masked_scatter take take_along_dim roll flip fliplr
    flipud rot90 tile repeat repeat_interleave tril triu diag diag_embed diagflat clone pad interpolate upsample
    grid_sample affine_grid avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d embedding embedding_bag pixel_shuffle fold fft rfft ifft irfft fft2
    ifft2 outer ger dot vdot cross complex polar block_diag cartesian_prod combinations bincount index_reduce
    slice_scatter select_scatter diagonal_scatter nested_tensor
    """
)
# Functions of torch that have no operator: written in Python, or in torch.nn.grad.
_WITHOUT_SCHEMA = _words(
    "conv1d_input conv1d_weight conv2d_input conv2d_weight conv3d_input conv3d_weight nested_tensor"
)
TENSOR_OPS = (
    torch_ops.OPERATIONS
    | _WITHOUT_SCHEMA
    | LINEAR_ALGEBRA
    | CREATION
    | RANDOM
    | TO_BOOL
    | TO_INTEGER
    | VIEWS
    | MAYBE_SAME
) - (TUPLES | _NOT_ONLY_TENSORS | {"numpy"})
# Functions of torch that tensors do not have as methods: `self.linear(x)` is a layer, not torch.linear. `eig`, `lstsq`
# and `solve` are methods that only raise; lists, queues and images have an `index`, a `put` and a `resize`, too.
NOT_METHODS = ((TENSOR_OPS | TUPLES) - torch_ops.METHODS) | _words("eig lstsq solve where index put resize")
# Take a list, an equation or a number first.
FIRST_IS_NO_TENSOR = _words(
    """
    as_tensor asarray from_numpy where complex polar pow float_power fmod remainder xlogy copysign cat concat
    concatenate stack hstack vstack dstack block_diag cartesian_prod einsum multi_dot chain_matmul nested_tensor
    """
)
METHODS = TENSOR_OPS - NOT_METHODS
# A receiver of one of these is a tensor, whatever its name: NumPy arrays, modules and configurations have none of them.
TENSOR_ONLY = _words(
    """
    requires_grad requires_grad_ is_cuda grad_fn detach detach_ contiguous is_contiguous unsqueeze masked_fill
    masked_fill_ data_ptr new_zeros new_ones new_empty new_full new_tensor element_size expand_as view_as
    type_as scatter_add scatter_add_ index_select index_add_ addmm addmm_ matmul bmm mm numel masked_select
    storage_offset sigmoid softmax zero_ fill_ mul_ add_ sub_ div_ copy_ clamp_ narrow untyped_storage
    is_floating_point logsumexp rsqrt erf bfloat16 numpy cpu cuda t movedim
    """
)
# Builtins that give back what they are given, or the sum of it.
PASS_ON = _words("abs dict enumerate filter iter list map max min next pow reversed set sorted sum tuple zip")
TORCH_MODULES = (
    "torch.nn.functional",
    "torch.linalg",
    "torch.special",
    "torch.fft",
    "torch.sparse",
    "torch.nn.grad",
    "torch.ops.aten",
    "torch.Tensor",
    "torch._C._nn",
    "torch",
)
CONTAINER_ANNOTATIONS = _words("list List tuple Tuple Sequence Iterable dict Dict Mapping set Set")
FLOAT_DTYPES = _words(
    """
    float32 float64 float16 bfloat16 float double half complex64 complex128 cfloat cdouble
    """
)
INT_DTYPES = _words("int8 int16 int32 int64 uint8 uint16 uint32 uint64 long int short")


def bare_op(dotted: str | None) -> str | None:
    """`torch.nn.functional.relu` -> `relu`; None for names that are not torch functions."""
    if dotted is None or not dotted.startswith("torch."):
        return None
    module, _, name = dotted.rpartition(".")
    if module in TORCH_MODULES or module.startswith("torch.ops.aten"):
        return module.rpartition(".")[2] if module.startswith("torch.ops.aten.") else name
    return None


def is_inplace_name(name: str) -> bool:
    """`add_`, `relu_`; not `__add__`, `_private_`, `requires_grad_`, whose writes change no value."""
    return (
        len(name) > 1
        and name.endswith("_")
        and not name.endswith("__")
        and not name.startswith("_")
        and name not in NOT_A_WRITE
    )


# The same numbers in another shape, in place.
RESHAPES_IN_PLACE = _words("unsqueeze_ squeeze_ transpose_ t_ swapaxes_ swapdims_")
NOT_A_WRITE = RESHAPES_IN_PLACE | _words(
    """
    requires_grad_ retain_grad_ share_memory_ pin_memory_ rename_ detach_ as_strided_ resize_ resize_as_ set_ names_
    coalesced_ to_ record_stream_
    """
)
INPLACE_DUNDERS = _words(
    """
    __iadd__ __isub__ __imul__ __itruediv__ __setitem__ __ipow__ __iand__ __ior__ __ixor__
    """
)

# --- groups by what a rule asks; no schema knows them ---

# What a loop puts together step by step and one operation could do at once (sum, cat, amax).
GATHERING = _words("add add_ sub sub_ cat stack maximum minimum copy_ index_put_ index_add_")
# Leave nothing of what was there before.
OVERWRITES = _words("copy_ fill_ zero_ index_put_ masked_fill_ _index_put_impl_ set_")
# Products, as the profiler meets them.
MATRIX_OPERATORS = _words("mm addmm bmm baddbmm addmv mv convolution linear _addmm_activation")
# Give other values at every call: draws, and memory that nobody has filled.
UNWRITTEN = _words(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided"
)  # memory that nobody wrote
NEVER_THE_SAME = RANDOM | UNWRITTEN
# Exist only because there is a loop: cutting slices out, and putting results together.
LOOP_ONLY = _words(
    """
    copy_ select_backward slice_backward index_put_ stack cat zeros empty new_zeros _local_scalar_dense zeros_like
    lift_fresh scalar_tensor fill_ detach
    """
)
# Quicker to do again than to keep.
CHEAP = _words("mul add sub neg gt lt ge le eq ne abs relu clamp sign square")
# All operands must live on one device.
ON_ONE_DEVICE = LINEAR_ALGEBRA | _words("mul add sub div where maximum minimum index_add scatter_add gather")
# `grad.scatter_(-1, index, g)`: the receiver has to be where its arguments are.
FILLED = _words(
    """
    scatter scatter_add scatter_reduce index_add index_copy masked_scatter addmm
    """
)
# The result lives where the operand does.
SAME_PLACE = _words("float double half long int bool floor round abs neg")
# Copy all that there is so far.
JOINS = _words("cat concat concatenate stack hstack vstack")
# Worth doing once instead of at every step.
WORTH_HOISTING = LINEAR_ALGEBRA | _words(
    """
    t cat stack exp log softmax sigmoid tanh softplus tril triu eye arange diag outer
    """
)
# Take a part out, whose gradient is padded with zeros.
CUTS = _words("select slice index index_select")
# Make a tensor out of numbers or an array.
FROM_ARRAYS = _words("from_numpy tensor as_tensor asarray Tensor FloatTensor")
# NumPy functions whose result is an index, a count or a draw: nothing to differentiate.
NUMPY_WITHOUT_DERIVATIVE = _words(
    """
    argmax argmin argsort argwhere argpartition nonzero searchsorted digitize unique where sign round rint floor
    ceil isnan isfinite histogram bincount choice astype
    """
)
# Choose among elements by an operand that needs no gradient.
# Functions of torch that compute gradients, and have no derivative themselves: differentiating them raises.
WITHOUT_DERIVATIVE = _words(
    """
    torch.batch_norm_backward_elemt torch.batch_norm_backward_reduce torch.batch_norm_elemt torch.batch_norm_stats
    torch.batch_norm_gather_stats torch.batch_norm_gather_stats_with_counts torch.batch_norm_update_stats
    """
)
# Where the index stands among the arguments of a function of torch (one less for the method), and what it is called.
INDEX_PLACES = (
    dict.fromkeys(_words("embedding embedding_bag one_hot"), (0, "input"))
    | dict.fromkeys(_words("gather index_select index_add index_copy index_fill"), (2, "index"))
    | dict.fromkeys(_words("scatter scatter_add scatter_reduce"), (2, "index"))
    | {"take": (1, "index"), "take_along_dim": (1, "indices")}
)
SELECTS = _words("gather index_select embedding where masked_fill scatter take_along_dim")
# Methods that wait for the device, and bring numbers to the host.
TO_HOST = _words("item tolist cpu numpy")
# Operators that wait for the device: what comes next depends on a value.
WAITING = _words("_local_scalar_dense is_nonzero nonzero masked_select equal _unique2")
# Use up a dimension.
SUMMING = _words("sum mean norm linalg_vector_norm amax amin logsumexp max min")
# May stand between a broadcast and its sum.
BETWEEN_BROADCAST_AND_SUM = _words("pow square abs mul neg exp div relu")
# Copy values and change none.
COPIES = _words("clone copy_ _to_copy lift_fresh_copy contiguous")
# Raise on strides that do not suit them.
NEEDS_LAYOUT = _words("view _unsafe_view as_strided view_as_complex view_as_real")
# Filled with one number.
FILLED_NOT_COMPUTED = _words("zeros_like ones_like full_like new_zeros new_ones new_full")
# Made from numbers alone, so nothing tells them where to live. `*_like` and `new_*` take their place from a tensor.
FACTORIES = _words(
    """
    zeros ones empty full eye arange linspace logspace rand randn randint randperm
    """
)
# Say where the result lives, or leave torch.
MOVES = _words("to cuda type_as cpu xpu mps numpy tolist item")
# Random or constant tensors in float32 unless they say otherwise.
FLOAT_FACTORIES = _words("rand randn zeros ones full linspace eye empty")
# The same numbers.
SAME_VALUES = _words("clone contiguous float double to type_as detach")
# Ask how a tensor lies in memory.
LAYOUT = _words("stride strides contiguous is_contiguous")
# Under these nothing gets a graph.
GRAD_MODE_OFF = _words("no_grad inference_mode")
# What reads memory in its own order, whatever the strides are.
READS_MEMORY = _words("as_strided as_strided_ data_ptr storage untyped_storage set_")
# Methods of lists, dicts, sets and deques that change them.
CHANGES_CONTAINER = _words(
    "pop popleft popitem append appendleft extend insert remove clear update setdefault sort reverse rotate add discard"
)
# Whatever has one of these is a tensor, most likely.
TENSOR_SIGNS = MEASURED | _words(
    "size dim numel stride is_cuda is_sparse data T mT new_zeros new_empty unbind transpose permute"
)
# Only look at the outside of a tensor, and keep none of its numbers.
OUTSIDE = _words("shape size numel dtype device")
# No graph goes through there.
OUT_OF_THE_GRAPH = OUTSIDE | _words("detach data item")
# Broadcast two operands.
BROADCASTING = _words("add sub mul div where maximum minimum")
PRODUCTS = _words("matmul mm bmm einsum linear addmm mv")
TRANSPOSES = _words("t T mT transpose")
# Choose a precision, or ask which one is chosen.
ABOUT_PRECISION = _words("to type type_as float half bfloat16 double is_autocast_enabled get_autocast_dtype autocast")
# What somebody asks who chooses by device.
ABOUT_DEVICES = _words("is_cuda cuda device is_cpu")
# NumPy's ways to read what is not an argument.
NUMPY_STATE = _words("load memmap fromfile loadtxt genfromtxt geterr get_printoptions getbufsize")
# Give a shape that is said, whatever the shape was.
SHAPES_ANEW = _words("view view_as reshape reshape_as expand expand_as resize_as")
# Triton: what reduces a block along an axis (`tl.dot` apart), what of it keeps the axis, what is a number and no block.
KERNEL_SCANS = _words("cumsum cumprod associative_scan")
KERNEL_REDUCTIONS = KERNEL_SCANS | _words("sum max min reduce argmax argmin xor_sum")
KERNEL_SCALARS = _words("program_id num_programs cdiv range static_range")
# Triton: what gives every lane where it was; any other call may move lanes.
LANE_BY_LANE = _words(
    "to cast abs ceil clamp cos div_rn erf exp exp2 fdiv floor fma log log2 maximum minimum rsqrt sigmoid sin sqrt sqrt_rn"
)

# Operations of one tensor that reach infinity at a finite number.
GROWING = frozenset({"exp", "exp2", "expm1", "cosh", "sinh", "square"})
