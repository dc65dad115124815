"""Three packages more, looked at after everything else had been measured: their first run is their only one unless docs say so."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_recipes import Recipes, ids, normal

deepspeed = Recipes(
    "deepspeed",
    "deepspeed",
    bare=("deepspeed", "deepspeed.ops", "deepspeed.moe", "deepspeed.runtime", "deepspeed.utils"),
)
flash = Recipes("flash_attn", "flash_attn", bare=("flash_attn",))
openfold = Recipes("openfold3", "openfold3.core.kernels.triton", bare=("openfold3", "openfold3.core"))


@deepspeed("ops.triton_ops.swiglu_triton._SwiGLUFn", normal(5, 37), normal(5, 37))
def swiglu(gate, up):
    return F.silu(gate) * up


@deepspeed("ops.triton_ops.swiglu_triton._SwiGLUPackedFn", normal(5, 74))
def swiglu_packed(both):
    gate, up = both.chunk(2, -1)
    return F.silu(gate) * up


@deepspeed(
    "ops.triton_ops.autoep_fused_token_ops._FusedWeightedRestore",
    *(normal(6, 37), normal(3, 2)),
    ids(4, 0, 5, 1, 3, 2),
    2,
)
def weighted_restore(rows, scores, inverse, top_k):
    return (rows[inverse].unflatten(0, (-1, top_k)) * scores[..., None]).sum(1)


@deepspeed("ops.triton_ops.autoep_fused_token_ops._FusedRowWeighting", normal(5, 37), normal(5))
def row_weighting(rows, weights):
    return rows * weights[:, None]


@deepspeed("ops.triton_ops.group_gemm_triton._GroupGemmFn", normal(10, 19), normal(3, 19, 21), ids(4, 5, 10), False)
@deepspeed(
    "ops.triton_ops.group_gemm_triton._GroupGemmFn",
    *(normal(10, 19), normal(3, 21, 19), ids(4, 5, 10), True),
    name="group_gemm_transposed",
)
def group_gemm(a, b, ends, transposed):
    b = b.mT if transposed else b
    return torch.cat([part @ weight for part, weight in zip(a.tensor_split(ends.tolist()), b)])


@deepspeed("moe.ep_kernels._PermuteRows", normal(4, 37), ids(2, -1, 0, 3, 1, -1), ids(2, 4, 0, 3))
def permute_rows(rows, order, _):
    return torch.where(order[:, None] >= 0, rows[order.clamp(min=0)], 0.0)


@deepspeed("runtime.chunked_cross_entropy._TritonCrossEntropy", normal(5, 37), ids(3, 36, -100, 0, 12), -100)
def cross_entropy(logits, target, ignored):
    return F.cross_entropy(logits, target, ignore_index=ignored, reduction="none")


@flash("ops.triton.cross_entropy.CrossEntropyLoss", normal(5, 37), ids(3, 36, -100, 0, 12), None, 0.1, 1.3, 1e-2)
def cross_entropy_smooth(logits, labels, _, smoothing, scale, square):
    loss = F.cross_entropy(logits * scale, labels, label_smoothing=smoothing, reduction="none")
    of_size = square * (logits * scale).logsumexp(-1).square() * (labels != -100)
    return loss + of_size, of_size.detach()


@flash("ops.triton.layer_norm.LayerNormFn", normal(5, 37), normal(37), normal(37), normal(5, 37))
def layer_norm(x, weight, bias, residual):
    return F.layer_norm(x + residual, x.shape[-1:], weight, bias, 1e-6)


@flash("layers.rotary.ApplyRotaryEmb", normal(2, 9, 3, 24), normal(9, 8, grad=False), normal(9, 8, grad=False))
@flash(
    "layers.rotary.ApplyRotaryEmb",
    *(normal(2, 9, 3, 24), normal(9, 8, grad=False), normal(9, 8, grad=False), True),
    name="rotary_interleaved",
)
def rotary(x, cos, sin, interleaved=False):
    turned, left = x.split([2 * cos.shape[-1], x.shape[-1] - 2 * cos.shape[-1]], -1)
    a, b = turned.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else turned.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    a, b = a * cos - b * sin, a * sin + b * cos
    return torch.cat([torch.stack([a, b], -1).flatten(-2) if interleaved else torch.cat([a, b], -1), left], -1)


@openfold("swiglu.LigerSiLUMulFunction", normal(5, 37), normal(5, 37))
def silu_mul(a, b):
    return F.silu(a) * b


@openfold("fused_softmax.FusedSoftmaxFunc", normal(1, 2, 3, 9, 9), None, normal(1, 1, 3, 9, 9))
def softmax_bias(x, _, bias):
    return (x + bias).softmax(-1)
