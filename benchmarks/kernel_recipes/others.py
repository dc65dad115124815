"""Seven further packages with Triton kernels: none of their code was looked at while shims and guard were written."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_recipes import Made, Recipes, ids, normal, uniform
from kernel_recipes.fla import recurrent

scans = Recipes("accelerated_scan", "accelerated_scan")
lightning = Recipes("lightning_attn", "lightning_attn.ops.triton")
baselines = Recipes("mlstm_kernels", "mlstm_kernels.baselines")
mlstm = Recipes("mlstm_kernels", "mlstm_kernels.torch")
indexing = Recipes("xformers", "xformers.ops.indexing")
cce = Recipes("cut_cross_entropy", "cut_cross_entropy.cce")
ROWS = normal(5, 37)


@scans("scalar.Scan", uniform(1, 1, 37), normal(1, 1, 37), defect="loads beyond the end of the last sequence")
@scans(
    "complex.Scan",
    *[Made(lambda: (torch.randn(1, 1, 9, dtype=torch.complex64).mul_(0.7).requires_grad_(),))] * 2,
    name="complex",
)
def scalar(forget, inputs):
    state, states = 0, []
    for kept, new in zip(forget.unbind(-1), inputs.unbind(-1)):
        state = kept * state + new
        states.append(state)
    return torch.stack(states, -1)


@lightning("srmsnorm._SrmsNorm", ROWS, 1e-5)
def srms_norm(x, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def by_head(q, k, v, scale=1.0, decay=None):
    """Linear attention with heads before the sequence."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return recurrent(q, k, v, scale, decay.transpose(1, 2) if decay is not None else None).transpose(1, 2)


def heads(length, many=2, keys=16, values=16):
    return normal(1, many, length, keys), normal(1, many, length, keys), normal(1, many, length, values)


@lightning("lightning_attn2_no_decay.LightningAttention2NoDecay", *heads(70, 1))
def lightning_no_decay(q, k, v):
    return by_head(q, k, v)


@lightning("lightning_attn2.LightningAttention2", *heads(70), uniform(2, 1, 1, grad=False))
@baselines(
    "lightning_attention.lightning_attn2.LightningAttention2",
    *(*heads(70), uniform(2, 1, 1, grad=False)),
    name="lightning_attention",
)
def lightning_decay(q, k, v, rate):
    return by_head(q, k, v, decay=-rate.reshape(1, -1, 1).expand(q.shape[:3]))


def decays(*shape):
    return normal(*shape, through=F.logsigmoid)


GLA = "flash_linear_attention.gla"


@baselines(f"{GLA}.recurrent_fuse.FusedRecurrentGLAFunction", *heads(9), decays(1, 2, 9, 16), None, 0.25, None, False)
def recurrent_gla(q, k, v, decay, of_values, scale, *_):
    return by_head(q, k, v, scale, decay), None


@baselines(f"{GLA}.chunk.ChunkGLAFunction", *heads(70), decays(1, 2, 70, 16), 0.25, None, False, 0)
@baselines(
    f"{GLA}.chunk_fuse.FusedChunkGLAFunction",
    *(*heads(32), decays(1, 2, 32, 16), 0.25, None, False),
    name="fused_chunk_gla",
)
def chunk_gla(q, k, v, decay, scale, *_):
    return by_head(q, k, v, scale, decay), None


@baselines("flash_linear_attention.simple_gla.chunk.SimpleGLAFunction", *heads(64), decays(1, 2, 64), None, False)
def simple_gla(q, k, v, decay, *_):
    return by_head(q, k, v, q.shape[-1] ** -0.5, decay), None


@baselines("flash_linear_attention.fla_utils.CumsumFunction", normal(1, 2, 37, 24), torch.float32)
def cumsum(x, _):
    return x.cumsum(2)


@baselines("flash_linear_attention.fla_utils.ReversedCumsumFunction", normal(1, 2, 37, 24), torch.float32)
def reversed_cumsum(x, _):
    return x.flip(2).cumsum(2).flip(2)


mlstm.alone(
    "mlstm_parallel",
    "parallel.triton_limit_headdim.fwbw._mlstm_parallel_fwbw_float32",
    *(*heads(128, 1, 64, 64), normal(1, 1, 128), normal(1, 1, 128, through=lambda f: f + 3), 1e-6),
)
mlstm.alone(
    "mlstm_chunkwise",
    "chunkwise.triton_limit_chunk.fwbw._mlstm_chunkwise_fwbw_float32",
    *(*heads(64, 1), normal(1, 1, 64), normal(1, 1, 64, through=lambda f: f + 3)),
    *(None, None, None, None, False, True, 32, 1e-6),
)


@indexing("_ScaledIndexAdd", Made(lambda: (torch.randn(7, 5, 8),)), ids(5, 0, 3), normal(3, 5, 8), normal(8), 1.3)
def scaled_index_add(x, index, source, scaling, alpha):
    return x.index_add(0, index, source * scaling, alpha=alpha)


@indexing(
    "_IndexSelectCat",
    *(normal(7, 8), normal(5, 6), ids(5, 0, 3), ids(1, 4)),
    defect="backward raises where grad_output is expanded, as that of a sum is",
)
def index_select_cat(a, b, i, j):
    return torch.cat([a[i].flatten(), b[j].flatten()])


def of_cce():
    from cut_cross_entropy.cce import CCEParams

    labels = torch.tensor([1, 36, 0, 7, 7, 20, 3, 3])
    return (CCEParams(labels, None, None, "mean", None, False, labels.shape),)


def half(*shape):
    return Made(lambda: (torch.randn(shape).bfloat16().requires_grad_(),))


@cce("LinearCrossEntropyFunction", half(8, 32), half(37, 32), Made(of_cce))
def linear_cross_entropy(x, weight, params):
    return F.cross_entropy(x @ weight.T, params.targets)
