"""Seven further packages, drawn by looking for kernels on the index; shims and guard had been written before they were looked at.

Some of them cannot be imported as a whole without a GPU, or without a hundred other packages: `bare` leaves out their `__init__`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_recipes import Made, Recipes, ids, normal, uniform

splash = Recipes("adasplash", "adasplash")
inf_cl = Recipes("inf_cl", "inf_cl", bare=("inf_cl",))
mamba = Recipes("mamba_ssm", "mamba_ssm.ops.triton", bare=("mamba_ssm",))
hyper = Recipes("hyper_connections", "hyper_connections", bare=("hyper_connections",))
xtuner = Recipes(
    "xtuner",
    "xtuner.model.modules.dispatch.triton_kernels",
    bare=("xtuner", "xtuner.model", "xtuner.model.modules", "xtuner.model.modules.dispatch", "xtuner.utils"),
)
axolotl = Recipes(
    "axolotl",
    "axolotl",
    bare=(
        "axolotl",
        "axolotl.integrations",
        "axolotl.integrations.kernels",
        "axolotl.integrations.kernels.libs",
        "axolotl.integrations.kernels.libs.dsv4",
    ),
)
nemo = Recipes(
    "nemo", "nemo.collections.asr.parts.k2", bare=("nemo", "nemo.collections.asr", "nemo.collections.asr.parts")
)


def one_and_a_half_entmax(x):
    """The numbers p = relu(x / 2 - t) ** 2 of a row, with the one t that makes their sum 1."""
    ordered = (x / 2).sort(-1, descending=True).values
    many = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    mean = ordered.cumsum(-1) / many
    spread = (ordered**2).cumsum(-1) - many * mean**2
    threshold = mean - ((1 - spread) / many).clamp(min=0).sqrt()
    last = (threshold <= ordered).sum(-1, keepdim=True) - 1
    return (x / 2 - threshold.gather(-1, last)).relu() ** 2


@splash("triton_entmax._entmax_triton", normal(3, 37), 1.5, 20, False)
@splash("triton_entmax_v2._entmax_triton", normal(3, 37), 1.5, 20, True, False, name="entmax_v2")
def entmax(x, *_):
    return one_and_a_half_entmax(x)


HEADS = (normal(1, 2, 64, 16), normal(1, 2, 64, 16), normal(1, 2, 64, 16))  # powers of two, it says


SHORT = "loads and stores blocks of 128 rows, however short the context is"


@splash("adasplash_no_block_mask._sparse_attention", *HEADS, 1.5, False, None, 20, defect=SHORT)
@splash(
    "adasplash_no_block_mask._sparse_attention",
    *(*HEADS, 1.5, True, None, 20),
    name="sparse_attention_causal",
    defect=SHORT,
)
@splash(
    "adasplash_block_mask._sparse_attention",
    *(*HEADS, 1.5, False, None, 20),
    name="sparse_attention_blocks",
    defect=SHORT,
)
def sparse_attention(q, k, v, alpha, causal, *_):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        scores = scores + torch.full(scores.shape[-2:], -1e4, dtype=scores.dtype).triu(1)
    return one_and_a_half_entmax(scores) @ v


@inf_cl("flash.FlashProb", normal(37, 2, 16), normal(21, 2, 16))
def flash_prob(q, k):
    return torch.einsum("mhd,nhd->mn", q, k).logsumexp(-1)


@hyper("triton_sinkhorn.TritonSinkhornFunction", normal(2, 5, 5), 60)
def sinkhorn(x, iterations):
    for _ in range(iterations):
        x = x.log_softmax(-2).log_softmax(-1)
    return x.exp()


@xtuner(
    "rms_norm.RMSNorm",
    *(normal(5, 37), normal(37), 1e-6),
    defect="adds up rows of memory that nobody wrote, where there are fewer than 256 rows",
)
def rms_norm(x, weight, eps):
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight


@xtuner("rotary.ApplyRotaryEmb", normal(2, 9, 2, 16), normal(9, 16, grad=False), normal(9, 16, grad=False))
def rotary(x, cos, sin):
    cos, sin = (half[:, None, : x.shape[-1] // 2] for half in (cos, sin))  # it reads the first half of each
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


DSV4 = "integrations.kernels.libs.dsv4"


@axolotl(f"{DSV4}.gated_pool._GatedPool", normal(5, 8, 37), normal(5, 8, 37))
def gated_pool(values, gate):
    return (values * gate.softmax(1)).sum(1)


@axolotl(f"{DSV4}.rope._RoPE", normal(2, 3, 5, 24), normal(2, 5, 8, grad=False), normal(2, 5, 8, grad=False))
def rope(x, cos, sin):
    left, right = x.split([x.shape[-1] - 2 * cos.shape[-1], 2 * cos.shape[-1]], -1)
    a, b = right.unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([left, torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)], -1)


@axolotl(f"{DSV4}.mhc._Collapse", normal(5, 4), normal(5, 4, 37))
def collapse(weights, streams):
    return torch.einsum("mh,mhd->md", weights, streams)


@axolotl(f"{DSV4}.mhc._RMSNormLinear", normal(5, 37), normal(24, 37), 1e-6, 16)
def rms_norm_linear(x, weight, eps, _):
    return (x @ weight.T) * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


@axolotl(f"{DSV4}.mhc._SinkhornMix", normal(5, 24), normal(3), normal(24), 4, 3, 1e-6, 2.0)
def sinkhorn_mix(mixes, scale, base, many, iterations, eps, factor):
    pre, post, comb = (
        m * s + b for m, s, b in zip(mixes.split([many, many, many**2], -1), scale, base.split([many, many, many**2]))
    )
    comb = comb.unflatten(-1, (many, many)).softmax(-1) + eps
    comb = comb / (comb.sum(1, keepdim=True) + eps)
    for _ in range(iterations - 1):
        comb = comb / (comb.sum(2, keepdim=True) + eps)
        comb = comb / (comb.sum(1, keepdim=True) + eps)
    return pre.sigmoid() + eps, factor * post.sigmoid(), comb.flatten(1)


@nemo("rnnt_logprobs_triton.RnntLogProbs", normal(2, 5, 4, 37), ids([3, 9, 1], [0, 3, 7]), 36, None, None)
def rnnt_logprobs(logits, targets, blank, *_):
    logs = logits.log_softmax(-1)
    of_targets = logs[:, :, :-1].gather(-1, targets[:, None, :, None].expand(-1, logs.shape[1], -1, 1))[..., 0]
    return F.pad(of_targets, (0, 1)), logs[..., blank]


@mamba("k_activations.SwiGLU", normal(5, 74))
def swiglu(x):
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


@mamba("layer_norm.LayerNormFn", normal(5, 37), normal(37), normal(37), normal(5, 37))
def layer_norm_residual(x, weight, bias, residual):
    return F.layer_norm(x + residual, x.shape[-1:], weight, bias, 1e-6)


@mamba("layernorm_gated.LayerNormFn", normal(5, 37), normal(37), normal(37), normal(5, 37))
def layer_norm_gated(x, weight, bias, gate):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-6) * F.silu(gate)


def falling(*shape):
    """Sums of what is forgotten, chunk by chunk."""
    return Made(lambda: (torch.rand(shape).neg().cumsum(-1).requires_grad_(),))


IN_CHUNKS = (normal(1, 64, 1, 16), normal(1, 64, 2, 16), uniform(1, 2, 2, 32), falling(1, 2, 2, 32))


@mamba("ssd_chunk_state.ChunkStateFn", *IN_CHUNKS)
def chunk_state(b, x, dt, decay):
    b, x = (y.unflatten(1, dt.shape[2:]) for y in (b.expand(-1, -1, x.shape[2], -1), x))
    return torch.einsum("bclhn,bhcl,bclhp->bchpn", b, (decay[..., -1:] - decay).exp() * dt, x)


@mamba("ssd_state_passing.StatePassingFn", normal(1, 3, 2, 37), falling(1, 2, 3))
def state_passing(states, decay):
    state, before = torch.zeros_like(states[:, 0]), []
    for chunk in range(states.shape[1]):
        before.append(state)
        state = decay[:, :, chunk, None].exp() * state + states[:, chunk]
    return torch.stack(before, 1), state


@mamba("ssd_chunk_scan.ChunkScanFn", *(normal(1, 64, 1, 16), *IN_CHUNKS), normal(1, 2, 2, 16, 16))
def chunk_scan(b, c, x, dt, decay, states):
    b, c = (y.expand(-1, -1, x.shape[2], -1).unflatten(1, dt.shape[2:]) for y in (b, c))
    within = (decay[..., :, None] - decay[..., None, :]).exp().tril()
    inner = torch.einsum("bclhn,bcshn,bhcls,bhcs,bcshp->bclhp", c, b, within, dt, x.unflatten(1, dt.shape[2:]))
    outer = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, decay.exp())
    return (inner + outer).flatten(1, 2)
