"""What the operations of torch 2.13.0 do: written by tools/torch_ops.py, not by hand.

Lint reads this file instead of torch. What schemas and derivatives cannot say is added in source/knowledge.py.
"""

# fmt: off
from __future__ import annotations

TORCH = "2.13.0"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Every operation of native_functions.yaml that gives back a tensor, and every function of torch.nn.functional.
OPERATIONS = _words(
    """
    _powsum abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
    adaptive_max_pool3d_with_indices add addbmm addcdiv addcmul addmm addmv addr adjoint affine_grid
    affine_grid_generator airy_ai alias alias_copy all alpha_dropout amax amin aminmax angle any arange arccos
    arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided as_strided_copy
    as_strided_scatter asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d
    baddbmm bartlett_window batch_norm bernoulli bessel_j0 bessel_j1 bessel_y0 bessel_y1 bilinear
    binary_cross_entropy binary_cross_entropy_with_logits bincount binomial bitwise_and bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm broadcast_tensors
    broadcast_to bucketize cartesian_prod cat cauchy ccol_indices ccol_indices_copy cdist ceil celu chain_matmul
    chalf channel_shuffle chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w cholesky cholesky_ex cholesky_inverse cholesky_solve choose_qparams_optimized chunk clamp
    clamp_max clamp_min clip clone coalesce col2im col_indices col_indices_copy column_stack combinations complex
    concat concatenate cond conj conj_physical constant_pad_nd contiguous conv1d conv2d conv3d conv_depthwise3d
    conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution convolution_backward_overrideable
    convolution_overrideable copy copy_sparse_to_sparse copysign corrcoef cos cosh cosine_embedding_loss
    cosine_similarity count_nonzero cov cross cross_entropy cross_entropy_loss crow_indices crow_indices_copy
    ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid data deg2rad dequantize det detach detach_copy diag
    diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff digamma dist div divide dot dropout dropout1d
    dropout2d dropout3d dsplit dstack eig eigh eigvals eigvalsh einsum elu embedding embedding_bag embedding_renorm
    empty empty_like empty_permuted empty_quantized empty_strided entr eq erf erfc erfcx erfinv exp exp2 expand
    expand_as expand_copy expit expm1 exponential eye fake_quantize_per_channel_affine
    fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine
    fake_quantize_per_tensor_affine_cachemask feature_alpha_dropout feature_dropout fft fft2 fftfreq fftn fftshift
    fill fill_diagonal fix flatten flatten_dense_tensors flip fliplr flipud float_power floor floor_divide fmax fmin
    fmod fold frac fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices frexp frobenius_norm from_file full full_like fused_moving_avg_obs_fake_quant
    gammainc gammaincc gammaln gather gaussian_nll_loss gcd ge gelu geometric geqrf ger glu glu_backward_jvp glu_jvp
    gradient greater greater_equal grid_sample grid_sampler grid_sampler_2d grid_sampler_3d group_norm grouped_mm
    gru gru_cell gt gumbel_softmax hamming_window hann_window hardshrink hardsigmoid hardswish hardtanh hash_tensor
    heaviside hermite_polynomial_h hermite_polynomial_he hfft hfft2 hfftn hinge_embedding_loss histc histogram
    histogramdd householder_product hsplit hspmm hstack huber_loss hypot i0 i0e i1 i1e ifft ifft2 ifftn ifftshift
    igamma igammac ihfft ihfft2 ihfftn im2col imag index index_add index_copy index_fill index_put index_reduce
    index_select indices indices_copy inner instance_norm int_repr interpolate inv inv_ex inverse irfft irfft2
    irfftn isclose isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue
    l1_loss laguerre_polynomial_l layer_norm lcm ldexp ldl_factor ldl_factor_ex ldl_solve le leaky_relu
    legendre_polynomial_p lerp less less_equal lgamma lift lift_fresh lift_fresh_copy linear linear_cross_entropy
    linspace local_response_norm log log10 log1p log2 log_ndtr log_normal log_sigmoid log_softmax logaddexp
    logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsigmoid logspace
    logsumexp lp_pool1d lp_pool2d lp_pool3d lstm lstm_cell lstsq lt lu lu_factor lu_factor_ex lu_solve lu_unpack mH
    mT margin_ranking_loss masked_fill masked_scatter masked_select matmul matrix_H matrix_exp matrix_norm
    matrix_power matrix_rank max max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
    max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d maximum mean median meshgrid min minimum mish mm
    mode modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 moveaxis movedim mse_loss msort
    mul multi_dot multi_head_attention_forward multi_margin_loss multigammaln multilabel_margin_loss
    multilabel_soft_margin_loss multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum
    narrow narrow_copy native_batch_norm native_channel_shuffle native_dropout native_group_norm native_layer_norm
    native_norm ndtr ndtri ne neg negative nested_to_padded_tensor new_empty new_empty_strided new_full new_ones
    new_zeros nextafter nll_loss nll_loss2d nll_loss_nd nonzero nonzero_numpy nonzero_static norm norm_except_dim
    normal normal_functional normalize not_equal nuclear_norm numpy_T one_hot ones ones_like orgqr ormqr outer pad
    pad_sequence pairwise_distance pdist permute permute_copy pin_memory pinv pinverse pixel_shuffle pixel_unshuffle
    poisson poisson_nll_loss polar polygamma positive pow prelu prod psi put q_per_channel_scales
    q_per_channel_zero_points qr quantile quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
    rad2deg rand rand_like randint randint_like randn randn_like random randperm range ravel real reciprocal
    reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 remainder renorm repeat repeat_interleave
    replication_pad1d replication_pad2d replication_pad3d requires_grad reshape reshape_as resize resize_as
    resize_as_sparse resolve_conj resolve_neg rfft rfft2 rfftfreq rfftn rms_norm rnn_relu rnn_relu_cell rnn_tanh
    rnn_tanh_cell roll rot90 round row_indices row_indices_copy row_stack rrelu rrelu_with_noise rsqrt rsub
    scalar_tensor scaled_dot_product_attention scaled_grouped_mm scaled_mm scaled_modified_bessel_k0
    scaled_modified_bessel_k1 scatter scatter_add scatter_reduce searchsorted segment_reduce select select_copy
    select_scatter selu set sgn shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
    shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sigmoid sign signbit silu sin sinc sinh slice
    slice_copy slice_inverse slice_scatter slogdet slow_conv3d slow_conv_dilated2d slow_conv_dilated3d
    slow_conv_transpose2d slow_conv_transpose3d smm smooth_l1_loss soft_margin_loss softmax softmin softplus
    softshrink softsign solve solve_ex solve_triangular sort spherical_bessel_j0 split split_copy split_with_sizes
    split_with_sizes_copy sqrt square squeeze squeeze_copy sspaddmm stack std std_mean stft sub subtract sum
    sum_to_size svd svdvals swapaxes swapdims t t_copy take take_along_dim tan tanh tanhshrink tensor_split
    tensordot tensorinv tensorsolve thnn_conv2d threshold tile to to_dense to_mkldnn to_padded_tensor to_sparse
    to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr topk trace transpose transpose_copy trapezoid trapz
    triangular_solve tril tril_indices triplet_margin_loss triplet_margin_with_distance_loss triu triu_indices
    true_divide trunc type_as unbind unbind_copy unflatten unflatten_dense_tensors unfold unfold_copy uniform
    unique_consecutive unique_dim unique_dim_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze
    unsqueeze_copy upsample upsample_bicubic2d upsample_bilinear upsample_bilinear2d upsample_linear1d
    upsample_nearest upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d values
    values_copy vander var var_mean vdot vecdot vector_norm view view_as view_as_complex view_as_complex_copy
    view_as_real view_as_real_copy view_copy vsplit vstack where xlog1py xlogy zero zeros zeros_like zeta
    """
)

# Operations that are functions of torch itself; the others are in torch.nn.functional, torch.linalg, ...
IN_TORCH = _words(
    """
    abs absolute acos acosh adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addr
    adjoint affine_grid_generator alias_copy all alpha_dropout amax amin aminmax angle any arange arccos arccosh
    arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided as_strided_copy
    as_strided_scatter asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d baddbmm
    bartlett_window batch_norm bernoulli bilinear binary_cross_entropy_with_logits bincount binomial bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm
    broadcast_tensors broadcast_to bucketize cartesian_prod cat ccol_indices_copy cdist ceil celu chain_matmul
    channel_shuffle cholesky cholesky_inverse cholesky_solve choose_qparams_optimized chunk clamp clamp_max
    clamp_min clip clone col_indices_copy column_stack combinations complex concat concatenate cond conj
    conj_physical constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    convolution copysign corrcoef cos cosh cosine_embedding_loss cosine_similarity count_nonzero cov cross
    crow_indices_copy ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad dequantize det detach
    detach_copy diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff digamma dist div divide dot
    dropout dsplit dstack eig einsum embedding embedding_bag empty empty_like empty_permuted empty_quantized
    empty_strided eq erf erfc erfinv exp exp2 expand_copy expm1 eye fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine feature_alpha_dropout feature_dropout fill fix flatten flip fliplr flipud
    float_power floor floor_divide fmax fmin fmod frac frexp frobenius_norm from_file full full_like
    fused_moving_avg_obs_fake_quant gather gcd ge geqrf ger gradient greater greater_equal grid_sampler
    grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt hamming_window hann_window hardshrink hash_tensor
    heaviside hinge_embedding_loss histc histogram histogramdd hsplit hspmm hstack hypot i0 igamma igammac imag
    index_add index_copy index_fill index_put index_reduce index_select indices_copy inner instance_norm int_repr
    inverse isclose isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue
    layer_norm lcm ldexp le lerp less less_equal lgamma linspace log log10 log1p log2 log_softmax logaddexp
    logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logspace logsumexp lstm
    lstm_cell lstsq lt lu lu_solve lu_unpack margin_ranking_loss masked_fill masked_scatter masked_select matmul
    matrix_exp matrix_power matrix_rank max max_pool1d max_pool1d_with_indices max_pool2d max_pool3d maximum mean
    median meshgrid min minimum mm mode moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num
    nanmean nanmedian nanquantile nansum narrow narrow_copy native_batch_norm native_channel_shuffle native_dropout
    native_group_norm native_layer_norm native_norm ne neg negative nextafter nonzero nonzero_static norm
    norm_except_dim normal not_equal nuclear_norm ones ones_like orgqr ormqr outer pairwise_distance pdist permute
    permute_copy pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow prelu
    prod put q_per_channel_scales q_per_channel_zero_points qr quantile quantize_per_channel quantize_per_tensor
    quantize_per_tensor_dynamic rad2deg rand rand_like randint randint_like randn randn_like randperm range ravel
    real reciprocal relu remainder renorm repeat_interleave reshape resolve_conj resolve_neg rms_norm rnn_relu
    rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round row_indices_copy row_stack rrelu rsqrt rsub scalar_tensor
    scatter scatter_add scatter_reduce searchsorted segment_reduce select select_copy select_scatter selu sgn
    sigmoid sign signbit sin sinc sinh slice_copy slice_inverse slice_scatter slogdet smm softmax solve sort split
    split_copy split_with_sizes split_with_sizes_copy sqrt square squeeze squeeze_copy sspaddmm stack std std_mean
    stft sub subtract sum svd swapaxes swapdims t t_copy take take_along_dim tan tanh tensor_split tensordot
    threshold tile topk trace transpose transpose_copy trapezoid trapz triangular_solve tril tril_indices
    triplet_margin_loss triu triu_indices true_divide trunc unbind unbind_copy unflatten unfold_copy
    unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_copy values_copy vander
    var var_mean vdot view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy vsplit vstack
    where xlogy zeros zeros_like
    """
)

# What tensors have as a method, their in-place variants among them.
METHODS = _words(
    """
    abs abs_ absolute absolute_ acos acos_ acosh acosh_ add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_
    addmm addmm_ addmv addmv_ addr addr_ adjoint all allclose amax amin aminmax angle any apply_ arccos arccos_
    arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_ argmax argmin
    argsort argwhere as_strided as_strided_ as_strided_scatter as_subclass asin asin_ asinh asinh_ atan atan2 atan2_
    atan_ atanh atanh_ backward baddbmm baddbmm_ bernoulli bernoulli_ bfloat16 bincount bitwise_and bitwise_and_
    bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift
    bitwise_right_shift_ bitwise_xor bitwise_xor_ bmm bool broadcast_to byte cauchy_ ccol_indices cdouble ceil ceil_
    cfloat chalf char cholesky cholesky_inverse cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min
    clamp_min_ clip clip_ clone coalesce col_indices conj conj_physical conj_physical_ const_data_ptr contiguous
    copy_ copysign copysign_ corrcoef cos cos_ cosh cosh_ count_nonzero cov cpu cross crow_indices cuda cummax
    cummin cumprod cumprod_ cumsum cumsum_ data_ptr deg2rad deg2rad_ dense_dim dequantize det detach detach_ diag
    diag_embed diagflat diagonal diagonal_scatter diff digamma digamma_ dim dim_order dist div div_ divide divide_
    dot double dsplit eig element_size eq eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expand
    expand_as expm1 expm1_ exponential_ fill_ fill_diagonal_ fix fix_ flatten flip fliplr flipud float float_power
    float_power_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_ frexp gather gcd gcd_ ge
    ge_ geometric_ geqrf ger get_device greater greater_ greater_equal greater_equal_ gt gt_ half hardshrink
    hash_tensor heaviside heaviside_ histc histogram hsplit hypot hypot_ i0 i0_ igamma igamma_ igammac igammac_
    index index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce
    index_reduce_ index_select indices inner int int_repr inverse ipu is_coalesced is_complex is_conj is_contiguous
    is_distributed is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared
    is_signed isclose isfinite isinf isnan isneginf isposinf isreal istft item kron kthvalue lcm lcm_ ldexp ldexp_
    le le_ lerp lerp_ less less_ less_equal less_equal_ lgamma lgamma_ log log10 log10_ log1p log1p_ log2 log2_ log_
    log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not
    logical_not_ logical_or logical_or_ logical_xor logical_xor_ logit logit_ logsumexp long lstsq lt lt_ lu
    lu_solve map2_ map_ masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select matmul matrix_exp
    matrix_power max maximum mean median min minimum mm mode module_load moveaxis movedim msort mtia mul mul_
    multinomial multiply multiply_ mv mvlgamma mvlgamma_ nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum
    narrow narrow_copy ndimension ne ne_ neg neg_ negative negative_ nelement new new_empty new_empty_strided
    new_full new_ones new_tensor new_zeros nextafter nextafter_ nonzero nonzero_static norm normal_ not_equal
    not_equal_ numel numpy orgqr ormqr outer permute pin_memory pinverse polygamma polygamma_ positive pow pow_
    prelu prod put put_ q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr
    qscheme quantile rad2deg rad2deg_ random_ ravel reciprocal reciprocal_ record_stream register_hook
    register_post_accumulate_grad_hook reinforce relu relu_ remainder remainder_ renorm renorm_ repeat
    repeat_interleave requires_grad_ reshape reshape_as resize resize_ resize_as resize_as_ resize_as_sparse_
    resolve_conj resolve_neg retain_grad roll rot90 round round_ row_indices rsqrt rsqrt_ scatter scatter_
    scatter_add scatter_add_ scatter_reduce scatter_reduce_ select select_scatter set_ sgn sgn_ share_memory_ short
    sigmoid sigmoid_ sign sign_ signbit sin sin_ sinc sinc_ sinh sinh_ size slice_inverse slice_scatter slogdet smm
    softmax solve sort sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ split split_with_sizes sqrt
    sqrt_ square square_ squeeze squeeze_ sspaddmm std stft storage storage_offset storage_type stride sub sub_
    subtract subtract_ sum sum_to_size svd swapaxes swapaxes_ swapdims swapdims_ symeig t t_ take take_along_dim tan
    tan_ tanh tanh_ tensor_split tile to to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr
    to_sparse_coo to_sparse_csc to_sparse_csr tolist topk trace transpose transpose_ triangular_solve tril tril_
    triu triu_ true_divide true_divide_ trunc trunc_ type type_as unbind unflatten unfold uniform_ unique
    unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ untyped_storage values
    var vdot view view_as vsplit where xlogy xlogy_ xpu zero_
    """
)

# Methods that cannot be called without an argument: `x.take()` is no tensor's.
NEEDS_ARGUMENT = _words(
    """
    add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv addmv_ addr addr_ allclose arctan2
    arctan2_ as_strided as_strided_ as_strided_scatter atan2 atan2_ baddbmm baddbmm_ bitwise_and bitwise_and_
    bitwise_left_shift bitwise_left_shift_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_
    bitwise_xor bitwise_xor_ bmm broadcast_to cholesky_solve chunk clamp_max clamp_max_ clamp_min clamp_min_ copy_
    copysign copysign_ cross cummax cummin cumprod cumprod_ cumsum cumsum_ diagonal_scatter dist div div_ divide
    divide_ dot dsplit eq eq_ equal expand expand_as fill_ fill_diagonal_ flip float_power float_power_ floor_divide
    floor_divide_ fmax fmin fmod fmod_ gather gcd gcd_ ge ge_ geometric_ ger greater greater_ greater_equal
    greater_equal_ gt gt_ heaviside heaviside_ hsplit hypot hypot_ igamma igamma_ igammac igammac_ index index_add
    index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce index_reduce_
    index_select inner is_same_size is_set_to isclose istft kron kthvalue lcm lcm_ ldexp ldexp_ le le_ lerp lerp_
    less less_ less_equal less_equal_ log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_and_
    logical_or logical_or_ logical_xor logical_xor_ logsumexp lstsq lt lt_ lu lu_solve masked_fill masked_fill_
    masked_scatter masked_scatter_ masked_select matmul matrix_power maximum minimum mm moveaxis movedim mul mul_
    multinomial multiply multiply_ mv mvlgamma mvlgamma_ nanquantile narrow narrow_copy ne ne_ new_empty
    new_empty_strided new_full new_ones new_zeros nextafter nextafter_ nonzero_static not_equal not_equal_ orgqr
    ormqr outer permute polygamma polygamma_ pow pow_ prelu put put_ quantile record_stream remainder remainder_
    renorm renorm_ repeat repeat_interleave reshape reshape_as resize resize_ resize_as resize_as_ resize_as_sparse_
    roll scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ select select_scatter
    slice_inverse slice_scatter smm softmax solve sparse_mask sparse_resize_ sparse_resize_and_clear_
    split_with_sizes sspaddmm stft sub sub_ subtract subtract_ sum_to_size swapaxes swapaxes_ swapdims swapdims_
    take take_along_dim tensor_split tile to_padded_tensor to_sparse_bsc to_sparse_bsr topk transpose transpose_
    triangular_solve true_divide true_divide_ type_as unflatten unfold unsafe_chunk unsafe_split
    unsafe_split_with_sizes unsqueeze unsqueeze_ vdot view view_as vsplit where xlogy xlogy_
    """
)

# The result shares memory with an operand; for some of them only where nothing has to be done.
ALIASES = _words(
    """
    adjoint alias as_strided broadcast_to ccol_indices chunk coalesce col_indices conj contiguous copy crow_indices
    detach diagonal dsplit expand expand_as flatten hsplit imag indices lift_fresh mH mT matrix_H moveaxis movedim
    narrow numpy_T permute pin_memory positive ravel real reshape reshape_as resolve_conj resolve_neg row_indices
    select slice slice_inverse split split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose unbind
    unflatten unfold unsqueeze values view view_as view_as_complex view_as_real vsplit
    """
)

# Draws from the generator.
RANDOM = _words(
    """
    alpha_dropout bernoulli binomial cauchy dropout exponential feature_alpha_dropout feature_dropout geometric gru
    log_normal lstm multinomial native_dropout normal normal_functional poisson rand rand_like randint randint_like
    randn randn_like random randperm rnn_relu rnn_tanh rrelu rrelu_with_noise scaled_dot_product_attention uniform
    """
)

# Makes a tensor out of sizes and numbers, or of the size of another.
CREATION = _words(
    """
    arange bartlett_window blackman_window empty empty_like empty_permuted empty_strided eye fftfreq from_file full
    full_like hamming_window hann_window kaiser_window linspace logspace new_empty new_empty_strided new_full
    new_ones new_zeros ones ones_like range rfftfreq scalar_tensor tril_indices triu_indices zeros zeros_like
    """
)

# Fewer elements than before.
REDUCTIONS = _words(
    """
    _powsum all amax amin aminmax any argmax argmin count_nonzero logsumexp max mean min nansum norm prod std
    std_mean sum var var_mean vector_norm
    """
)

# Element by element.
POINTWISE = _words(
    """
    abs acos acosh add addcdiv addcmul airy_ai angle asin asinh atan atan2 atanh bessel_j0 bessel_j1 bessel_y0
    bessel_y1 bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w clamp clamp_max
    clamp_min clip clone conj_physical copysign cos cosh deg2rad digamma div elu entr eq erf erfc erfcx erfinv exp
    exp2 expm1 float_power floor fmax fmin fmod frac frexp gcd ge gelu gt hardshrink hardsigmoid hardtanh heaviside
    hermite_polynomial_h hermite_polynomial_he hypot i0 i0e i1 i1e igamma igammac isfinite isinf isnan isneginf
    isposinf laguerre_polynomial_l lcm ldexp le leaky_relu legendre_polynomial_p lerp lgamma log log10 log1p log2
    log_ndtr logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt masked_fill max maximum
    min minimum mish modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 mul mvlgamma
    nan_to_num ndtri ne neg nextafter polygamma positive pow rad2deg reciprocal relu relu6 remainder round rrelu
    rsqrt rsub scaled_modified_bessel_k0 scaled_modified_bessel_k1 selu sgn shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sigmoid sign
    signbit silu sin sinc sinh softplus softshrink spherical_bessel_j0 sqrt square sub tan tanh threshold
    true_divide trunc where xlog1py xlogy zeta
    """
)

# Gives back several tensors, whatever the arguments.
SEVERAL = _words(
    """
    aminmax broadcast_tensors cholesky_ex choose_qparams_optimized chunk convolution_backward_overrideable cummax
    cummin dsplit eig eigh fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine_cachemask
    frexp geqrf gradient gru histogram histogramdd hsplit inv_ex kthvalue ldl_factor ldl_factor_ex lstm lstm_cell
    lstsq lu lu_factor lu_factor_ex lu_unpack meshgrid mode native_batch_norm native_dropout native_group_norm
    native_layer_norm nonzero_numpy qr rnn_relu rnn_tanh slogdet solve_ex sort split split_copy split_with_sizes
    split_with_sizes_copy std_mean svd tensor_split topk triangular_solve unbind unbind_copy unflatten_dense_tensors
    unique_consecutive unique_dim unique_dim_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes var_mean
    vsplit
    """
)

# Gives back several tensors for some arguments (`max` with a dimension).
SOMETIMES_SEVERAL = _words(
    """
    atleast_1d atleast_2d atleast_3d dequantize max median min nanmedian quantize_per_tensor where
    """
)

# Constant wherever it has a derivative.
STEPS = _words(
    """
    angle ceil fix floor floor_divide heaviside round sgn sign trunc
    """
)

# Continuous, and its slope jumps somewhere.
CORNERS = _words(
    """
    abs absolute clamp clamp_max clamp_min clip copysign fmax fmin hardsigmoid hardswish hardtanh
    hinge_embedding_loss i0e leaky_relu maximum minimum norm_except_dim relu relu6 selu softshrink
    """
)

# Gives back integers for floating numbers.
INTEGERS = _words(
    """
    argmax argmin argsort argwhere count_nonzero hash_tensor matrix_rank nonzero searchsorted
    """
)

# Gives back bools for floating numbers.
BOOLS = _words(
    """
    all any eq ge greater greater_equal gt isclose isfinite isin isinf isnan isneginf isposinf isreal le less
    less_equal logical_and logical_not logical_or logical_xor lt ne not_equal signbit
    """
)

# No output has a derivative.
UNDIFFERENTIABLE = _words(
    """
    airy_ai all any bessel_j0 bessel_j1 bessel_y0 bessel_y1 ccol_indices chebyshev_polynomial_t
    chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w col_indices count_nonzero crow_indices eq
    ge gt hash_tensor hermite_polynomial_h hermite_polynomial_he histc indices isnan laguerre_polynomial_l le
    legendre_polynomial_p lt modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multinomial
    ne nonzero one_hot row_indices scaled_modified_bessel_k0 scaled_modified_bessel_k1
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w spherical_bessel_j0
    """
)

# Differentiable, and keeps no tensor for backward.
SAVES_NOTHING = _words(
    """
    _powsum add adjoint alias_copy alpha_dropout atleast_1d atleast_2d atleast_3d bernoulli binomial block_diag
    broadcast_tensors ceil chain_matmul chalf clone conj conj_physical contiguous cumulative_trapezoid deg2rad
    dequantize detach_copy diag diag_embed diagflat diagonal diagonal_copy diff expand_as feature_alpha_dropout fill
    fix flatten fliplr flipud floor floor_divide frac geqrf gradient heaviside histogram ldl_factor ldl_factor_ex
    mean neg negative normal poisson positive rad2deg ravel real reshape_as resize_as resolve_conj resolve_neg rot90
    round rsub sign slice_copy slice_inverse slice_scatter squeeze squeeze_copy sub subtract sum t t_copy to
    to_dense to_sparse to_sparse_csc to_sparse_csr trace trapezoid trapz tril triu trunc type_as unbind unbind_copy
    unique_consecutive view_as view_as_complex
    """
)

# Keeps a tensor for backward.
SAVES = _words(
    """
    abs absolute acos acosh amax amin aminmax angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh
    atan atan2 atanh binary_cross_entropy_with_logits cdist celu cholesky cholesky_ex cholesky_inverse
    cholesky_solve clamp clamp_max clamp_min clip complex cond copysign corrcoef cos cosh cosine_similarity cov
    cross_entropy det digamma dist div divide dropout dropout1d dropout2d dropout3d eig eigh eigvals eigvalsh elu
    entr erf erfc erfcx erfinv exp exp2 expit expm1 float_power fmax fmin fmod frexp gammainc gammaincc gammaln gelu
    glu gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss hypot i0 i0e i1 i1e
    igamma igammac inner inv inv_ex inverse kl_div kron l1_loss ldexp leaky_relu lgamma linear log log10 log1p log2
    log_ndtr log_softmax logaddexp logaddexp2 logdet logit logsigmoid lstsq lu lu_factor lu_factor_ex matmul
    matrix_exp matrix_norm max maximum median min minimum mish mm mode mse_loss msort mul
    multilabel_soft_margin_loss multiply nan_to_num nanmean nanmedian nanquantile nansum ndtr ndtri nextafter norm
    norm_except_dim normalize nuclear_norm pairwise_distance pdist pinv pinverse poisson_nll_loss polar pow prod psi
    qr quantile reciprocal relu relu6 remainder rrelu rsqrt selu sgn sigmoid silu sin sinc sinh slogdet
    smooth_l1_loss softmax softmin softplus softshrink softsign solve solve_ex sort sqrt square std std_mean svd
    svdvals tan tanh tanhshrink tensordot triangular_solve true_divide vander var var_mean vecdot vector_norm
    xlog1py xlogy zeta
    """
)
