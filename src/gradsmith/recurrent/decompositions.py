"""Composite operations, taken apart into the pointwise maps, row sums and matrix products that loops are made of."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

# Kept whole although torch would take them apart: one C expression each, or a form the splitter knows.
_KEEP = (
    "sigmoid", "silu", "leaky_relu", "hardtanh", "embedding_dense_backward", "embedding",
)  # fmt: skip
_ALSO = (
    "addmm", "baddbmm", "addcmul", "addcdiv", "sigmoid_backward", "tanh_backward", "native_layer_norm_backward",
    "_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data", "gelu", "gelu_backward",
    "slice_backward", "select_backward", "stack", "silu_backward", "threshold_backward", "elu", "elu_backward",
    "softplus", "softplus_backward", "leaky_relu_backward", "hardtanh_backward", "hardsigmoid",
    "hardsigmoid_backward", "hardswish", "hardswish_backward", "log_sigmoid_forward", "log_sigmoid_backward",
    "native_group_norm", "native_group_norm_backward", "_unsafe_view", "rsub", "mish", "mish_backward", "prelu",
    "_prelu_kernel", "_prelu_kernel_backward", "logit", "frac", "split", "unsafe_split", "unsafe_chunk",
    "masked_fill", "fill", "new_zeros", "new_ones", "zeros_like", "ones_like", "new_full", "new_empty", "heaviside",
    "xlogy", "sinc", "addmv", "mv", "dot", "outer", "ger", "norm", "linalg_vector_norm", "clamp_min", "clamp_max",
    "glu", "glu_backward", "celu", "selu", "rrelu_with_noise", "narrow", "diagonal_backward", "std", "std_mean",
    "logsumexp", "logaddexp", "_fused_rms_norm", "_safe_softmax",
)  # fmt: skip


def _count(x: Tensor, dims: Sequence[int]) -> int:
    return math.prod(x.shape[d] for d in dims)


def _dims(x: Tensor, dim: Sequence[int] | None) -> list[int]:
    return [d % x.dim() for d in dim] if dim else list(range(x.dim()))


def _mean(
    x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    dims = _dims(x, dim)
    total: Tensor = aten.sum.dim_IntList(x, dims, keepdim)
    return total * (1.0 / max(1, _count(x, dims)))


def _var_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = _dims(x, dim)
    mean = _mean(x, dims, True)
    centred = x - mean
    scale = 1.0 / max(0.0, _count(x, dims) - (1.0 if correction is None else correction))
    variance = aten.sum.dim_IntList(centred * centred, dims, keepdim) * scale
    return variance, mean if keepdim else aten.sum.dim_IntList(mean, dims, False)


def _var(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def _native_layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    variance, mean = _var_mean(x, dims, correction=0.0, keepdim=True)
    rstd = aten.rsqrt.default(variance + eps)
    out = (x - mean) * rstd
    out = out * weight if weight is not None else out
    return (out + bias if bias is not None else out), mean, rstd


def _addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product: Tensor = aten.mm.default(a, b)
    product = product if alpha == 1 else product * alpha
    return product + (bias if beta == 1 else bias * beta)


def _lerp(start: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    return start + weight * (end - start)


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """Torch's own decompositions without those kept whole, and ours where torch would leave the aten vocabulary."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    chosen: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    # Names, because an operator that a release lacks is then merely not taken apart.
    chosen.update(get_decompositions([getattr(aten, name) for name in _ALSO if hasattr(aten, name)]))
    packets = [getattr(aten, name) for name in _KEEP if hasattr(aten, name)]
    kept = {getattr(packet, name) for packet in packets for name in packet.overloads()}
    chosen = {op: rule for op, rule in chosen.items() if op not in kept}
    chosen[aten.mean.default] = _mean
    chosen[aten.mean.dim] = _mean
    chosen[aten.var_mean.correction] = _var_mean
    chosen[aten.var.correction] = _var
    chosen[aten.native_layer_norm.default] = _native_layer_norm
    chosen[aten.addmm.default] = _addmm
    chosen[aten.lerp.Tensor] = chosen[aten.lerp.Scalar] = _lerp
    for whole in (aten._to_copy.default, aten.unsqueeze.default, aten.squeeze.dims, aten.squeeze.dim):
        chosen.pop(whole, None)
    return chosen
