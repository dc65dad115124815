"""What gradsmith knows about torch's operations without importing torch: names, by what they do with memory."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Methods and functions whose result shares memory with their first operand.
VIEWS = _words(
    """
    view view_as t transpose swapaxes swapdims permute movedim moveaxis expand expand_as broadcast_to squeeze
    unsqueeze select narrow diagonal unfold as_strided detach adjoint view_as_real view_as_complex unflatten
    unbind split chunk tensor_split hsplit vsplit dsplit split_with_sizes numpy from_numpy detach_ alias
    """
)
VIEW_ATTRIBUTES = _words("T mT H mH data real imag")
# Those that return the operand itself (or a view) when nothing has to be done, and a copy otherwise.
MAYBE_SAME = _words(
    """
    contiguous reshape reshape_as flatten ravel to float double half bfloat16 type type_as cuda cpu as_tensor
    asarray requires_grad_ rename refine_names resolve_conj resolve_neg conj atleast_1d atleast_2d atleast_3d
    """
)
# The operand itself, always.
SAME = _words("requires_grad_ retain_grad_ share_memory_ pin_memory_")

TO_INTEGER = _words(
    """
    argmax argmin argsort argwhere nonzero searchsorted bucketize bincount randint randint_like randperm
    count_nonzero long int short char byte multinomial one_hot bitwise_and bitwise_or bitwise_xor bitwise_not
    tril_indices triu_indices
    """
)
TO_BOOL = _words(
    """
    eq ne lt le gt ge equal isnan isinf isfinite isposinf isneginf isreal signbit logical_and logical_or
    logical_xor logical_not bool isin isclose any all greater greater_equal less less_equal not_equal
    """
)
# Constant wherever they have a derivative.
STEPS = _words("sign sgn round floor ceil trunc fix heaviside floor_divide histc")
CREATION = _words(
    """
    zeros ones empty full eye arange linspace logspace tensor zeros_like ones_like empty_like full_like
    new_zeros new_ones new_empty new_full new_tensor empty_strided new_empty_strided scalar_tensor range
    hann_window hamming_window tril_indices triu_indices sparse_coo_tensor
    """
)
RANDOM = _words(
    """
    rand randn randint randperm rand_like randn_like randint_like bernoulli normal multinomial poisson dropout
    dropout1d dropout2d dropout3d alpha_dropout feature_dropout bernoulli_ normal_ uniform_ exponential_
    geometric_ log_normal_ cauchy_ random_ rrelu native_dropout
    """
)
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
# Give back several tensors, or a tensor whose number of parts is not seen in the source.
TUPLES = _words(
    """
    sort topk kthvalue mode split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes svd eigh eig
    qr slogdet std_mean var_mean aminmax cummax cummin frexp meshgrid broadcast_tensors lstsq lu lu_factor
    cholesky_ex triangular_solve unique_consecutive unique native_dropout convolution_backward native_layer_norm
    native_group_norm native_batch_norm
    """
)
# Give back a tuple when called with a dimension.
TUPLES_WITH_DIM = _words("max min median nanmedian")

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

_ELEMENTWISE = _words(
    """
    abs absolute acos acosh add addcdiv addcmul angle arccos arcsin arctan arctan2 asin asinh atan atan2 atanh
    celu clamp clamp_max clamp_min clip copysign cos cosh deg2rad digamma div divide elu erf erfc erfinv exp
    exp2 expm1 float_power fmax fmin fmod frac gelu glu hardshrink hardsigmoid hardswish hardtanh hypot i0 ldexp
    leaky_relu lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logit logsigmoid masked_fill maximum
    minimum mish mul multiply mvlgamma nan_to_num neg negative pow positive prelu rad2deg reciprocal relu relu6
    remainder rsqrt rsub selu sigmoid silu sin sinc sinh softplus softshrink softsign sqrt square sub subtract
    tan tanh tanhshrink threshold true_divide where xlogy
    """
)
_REDUCTIONS = _words(
    """
    sum mean prod std var norm logsumexp amax amin max min median nanmean nansum nanmedian cumsum cumprod
    logcumsumexp dist trace vector_norm matrix_norm softmax log_softmax softmin normalize layer_norm group_norm
    batch_norm instance_norm rms_norm cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy binary_cross_entropy_with_logits kl_div cosine_similarity pairwise_distance sum_to_size
    diff nanquantile quantile renorm
    """
)
_SHUFFLES = _words(
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
TENSOR_OPS = (
    _ELEMENTWISE
    | _REDUCTIONS
    | _SHUFFLES
    | LINEAR_ALGEBRA
    | CREATION
    | RANDOM
    | STEPS
    | TO_BOOL
    | TO_INTEGER
    | (VIEWS - {"numpy"})
    | MAYBE_SAME
) - TUPLES
# Functions of torch that tensors do not have as methods: `self.linear(x)` is a layer, not torch.linear.
NOT_METHODS = _words(
    """
    linear bilinear einsum tensordot cdist cat concat concatenate stack hstack vstack dstack where pad
    interpolate upsample grid_sample affine_grid embedding embedding_bag normalize layer_norm group_norm
    batch_norm instance_norm rms_norm cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy binary_cross_entropy_with_logits kl_div cosine_similarity pairwise_distance
    scaled_dot_product_attention block_diag cartesian_prod combinations complex polar meshgrid broadcast_tensors
    tensor as_tensor asarray from_numpy zeros ones empty full eye arange linspace logspace rand randn randint
    randperm zeros_like ones_like empty_like full_like rand_like randn_like randint_like normal pixel_shuffle
    fold fft rfft ifft irfft fft2 ifft2 gelu silu mish elu celu selu glu hardswish leaky_relu softplus multi_dot
    solve eigh eig vector_norm matrix_norm nested_tensor solve_triangular inv lstsq one_hot tril_indices
    triu_indices range scalar_tensor sparse_coo_tensor hann_window hamming_window empty_strided
    """
) | frozenset(
    name for name in LINEAR_ALGEBRA | RANDOM | _SHUFFLES if "conv" in name or "dropout" in name or "pool" in name
)
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


NOT_A_WRITE = _words(
    """
    requires_grad_ retain_grad_ share_memory_ pin_memory_ rename_ detach_ unsqueeze_ squeeze_ transpose_ t_
    swapaxes_ swapdims_ as_strided_ resize_ resize_as_ set_ names_ coalesced_ to_ record_stream_
    """
)
INPLACE_DUNDERS = _words(
    """
    __iadd__ __isub__ __imul__ __itruediv__ __setitem__ __ipow__ __iand__ __ior__ __ixor__
    """
)
