# ruff: noqa: E741 - names as in the formulas
"""Liger cases: name -> (module, class, make_args(dtype), reference(*args) or None, float_arg_indices)."""

import math

import torch
import torch.nn.functional as F


def R(*s, dt=torch.float32, rg=True, sc=1.0):
    return (torch.randn(*s, dtype=torch.float64) * sc).to(dt).requires_grad_(rg)


C = {}


def case(name, mod, cls, args, ref=None):
    C[name] = (("liger_kernel.ops." + mod), cls, args, ref)


def rms(x, w, eps, offset=0.0, *_):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * (offset + w)


case(
    "rms_norm",
    "rms_norm",
    "LigerRMSNormFunction",
    lambda dt: (R(3, 5, 37, dt=dt), R(37, dt=dt), 1e-6, 0.0, "llama", False),
    rms,
)
case(
    "rms_norm_gemma",
    "rms_norm",
    "LigerRMSNormFunction",
    lambda dt: (R(3, 5, 37, dt=dt), R(37, dt=dt), 1e-6, 1.0, "gemma", False),
    rms,
)
case(
    "rms_norm_inplace",
    "rms_norm",
    "LigerRMSNormFunction",
    lambda dt: (R(3, 5, 37, dt=dt), R(37, dt=dt), 1e-6, 0.0, "llama", True),
    rms,
)
case(
    "layer_norm",
    "layer_norm",
    "LigerLayerNormFunction",
    lambda dt: (R(7, 37, dt=dt), R(37, dt=dt), R(37, dt=dt), 1e-5),
    lambda x, w, b, e: F.layer_norm(x, (37,), w, b, e),
)
case(
    "group_norm",
    "group_norm",
    "LigerGroupNormFunction",
    lambda dt: (R(3, 6, 37, dt=dt), R(6, dt=dt), R(6, dt=dt), 6, 2, 1e-5),
    lambda x, w, b, c, g, e: F.group_norm(x, g, w, b, e),
)
case(
    "group_norm_4d",
    "group_norm",
    "LigerGroupNormFunction",
    lambda dt: (R(2, 6, 5, 7, dt=dt), R(6, dt=dt), R(6, dt=dt), 6, 2, 1e-5),
    lambda x, w, b, c, g, e: F.group_norm(x, g, w, b, e),
)
case(
    "fused_add_rms_norm",
    "fused_add_rms_norm",
    "LigerFusedAddRMSNormFunction",
    lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt), R(37, dt=dt), 1e-6, 0.0, "llama", False),
    lambda x, r, w, e, o, *_: (rms(x + r, w, e, o), x + r),
)
case(
    "modulated_rms_norm",
    "modulated_rms_norm",
    "LigerModulatedRMSNormFunction",
    lambda dt: (R(2, 5, 37, dt=dt), R(37, dt=dt), R(2, 37, dt=dt), R(2, 37, dt=dt), 1e-6, 0.0, "llama", False),
    lambda x, w, s, h, e, o, *_: (1 + s[:, None]) * rms(x, w, e, o) + h[:, None],
)
case(
    "poly_norm",
    "poly_norm",
    "LigerPolyNormFunction",
    lambda dt: (R(5, 37, dt=dt), R(3, dt=dt), torch.tensor(0.3, dtype=dt, requires_grad=True), 1e-6, False),
    lambda x, w, b, e, i: (
        sum(
            w[k] * n
            for k, n in enumerate([p * torch.rsqrt((p * p).mean(-1, keepdim=True) + e) for p in (x**3, x**2, x)])
        )
        + b
    ),
)
case(
    "dyt",
    "dyt",
    "LigerDyTFunction",
    lambda dt: (R(5, 37, dt=dt), R(1, dt=dt), R(37, dt=dt), R(37, dt=dt)),
    lambda x, a, g, b: g * torch.tanh(a * x) + b,
)
case(
    "swiglu",
    "swiglu",
    "LigerSiLUMulFunction",
    lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt)),
    lambda a, b: F.silu(a) * b,
)
case(
    "swiglu_mult",
    "swiglu",
    "LigerSiLUMulFunction",
    lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt), 1.5, 0.7),
    lambda a, b, g, d: F.silu(a * g) * b * d,
)
case(
    "fused_gate_up",
    "swiglu",
    "LigerFusedGateUpSiLUMulFunction",
    lambda dt: (R(5, 74, dt=dt),),
    lambda y: F.silu(y[..., :37]) * y[..., 37:],
)
case(
    "geglu",
    "geglu",
    "LigerGELUMulFunction",
    lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt)),
    lambda a, b: F.gelu(a, approximate="tanh") * b,
)
case(
    "relu_squared", "relu_squared", "LigerReLUSquaredFunction", lambda dt: (R(5, 37, dt=dt),), lambda x: F.relu(x) ** 2
)
case("softmax", "softmax", "LigerSoftmaxFunction", lambda dt: (R(5, 37, dt=dt),), lambda x: x.softmax(-1))
case("sparsemax", "sparsemax", "LigerSparsemaxFunction", lambda dt: (R(5, 37, dt=dt), -1), None)
case(
    "embedding",
    "experimental.embedding",
    "LigerEmbeddingFunction",
    lambda dt: (R(11, 37, dt=dt), torch.tensor([[0, 3, 3], [10, 1, 0]])),
    lambda e, i: F.embedding(i, e),
)
case(
    "cross_entropy",
    "cross_entropy",
    "LigerCrossEntropyFunction",
    lambda dt: (R(5, 37, dt=dt), torch.tensor([1, 36, -100, 7, 7]), None),
    lambda x, t, w: (F.cross_entropy(x, t), None, None, None),
)
case(
    "cross_entropy_all",
    "cross_entropy",
    "LigerCrossEntropyFunction",
    lambda dt: (
        R(5, 37, dt=dt),
        torch.tensor([1, 36, -100, 7, 7]),
        (torch.rand(37) + 0.5).to(dt),
        -100,
        0.0,
        0.1,
        "mean",
        None,
    ),
    lambda x, t, w, i, l, s, r, c: (F.cross_entropy(x, t, w.to(x.dtype), label_smoothing=s), None, None, None),
)
case(
    "cross_entropy_softcap",
    "cross_entropy",
    "LigerCrossEntropyFunction",
    lambda dt: (R(5, 37, dt=dt), torch.tensor([1, 36, -100, 7, 7]), None, -100, 1e-2, 0.1, "sum", 5.0),
    lambda x, t, w, i, l, s, r, c: (
        (
            lambda y: (
                F.cross_entropy(y, t, label_smoothing=s, reduction="sum")
                + l * ((y.logsumexp(-1) ** 2)[t != -100]).sum()
            )
        )(c * torch.tanh(x / c)),
        None,
        None,
        None,
    ),
)
case(
    "jsd",
    "jsd",
    "LigerJSDFunction",
    lambda dt: (
        R(5, 37, dt=dt).log_softmax(-1).detach().requires_grad_(),
        R(5, 37, dt=dt, rg=False).log_softmax(-1),
        None,
        0.3,
    ),
    lambda x, y, s, b: (
        lambda q, p: (
            (
                b * (p * (y - (b * p + (1 - b) * q).log())).sum()
                + (1 - b) * (q * (x - (b * p + (1 - b) * q).log())).sum()
            )
            / 5
        )
    )(x.exp(), y.exp()),
)
case(
    "kl_div",
    "kl_div",
    "LigerKLDivLossFunction",
    lambda dt: (
        R(5, 37, dt=dt).log_softmax(-1).detach().requires_grad_(),
        R(5, 37, dt=dt, rg=False).softmax(-1),
        "batchmean",
        False,
        1e-10,
    ),
    lambda x, y, r, l, e: F.kl_div(x, y, reduction=r),
)
case(
    "tvd",
    "tvd",
    "LigerTVDLossFunction",
    lambda dt: (
        R(5, 37, dt=dt).softmax(-1).detach().requires_grad_(),
        R(5, 37, dt=dt, rg=False).softmax(-1),
        None,
        "batchmean",
    ),
    lambda p, q, s, r: 0.5 * (p - q).abs().sum() / 5,
)
case(
    "fused_ce_tvd",
    "fused_ce_tvd",
    "LigerFusedCETVDFunction",
    lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt, rg=False), torch.tensor([1, 36, -100, 7, 7])),
    lambda s, t, y: (
        F.cross_entropy(s, y, reduction="none"),
        0.5 * (s.softmax(-1) - t.softmax(-1)).abs().sum(-1) * (y != -100),
    ),
)
case(
    "fused_linear_ce",
    "fused_linear_cross_entropy",
    "LigerFusedLinearCrossEntropyFunction",
    lambda dt: (R(5, 9, dt=dt), R(37, 9, dt=dt), torch.tensor([1, 36, -100, 7, 7]), R(37, dt=dt)),
    lambda x, w, t, b: (F.cross_entropy(x @ w.T + b, t), None, None, None),
)
case(
    "fused_linear_jsd",
    "fused_linear_jsd",
    "LigerFusedLinearJSDFunction",
    lambda dt: (R(5, 9, dt=dt), R(37, 9, dt=dt), R(5, 9, dt=dt, rg=False), R(37, 9, dt=dt, rg=False), None, 0.3),
    lambda x, w, tx, tw, s, b: C["jsd"][3]((x @ w.T).log_softmax(-1), (tx @ tw.T).log_softmax(-1), None, b),
)
case(
    "fused_linear_kl",
    "fused_linear_kl_div",
    "LigerFusedLinearKLDivFunction",
    lambda dt: (R(5, 9, dt=dt), R(37, 9, dt=dt), R(5, 37, dt=dt, rg=False).softmax(-1)),
    lambda x, w, t: F.kl_div((x @ w.T).log_softmax(-1), t, reduction="batchmean"),
)
case(
    "fused_linear_ppo_fallback",
    "fused_linear_scaled_cross_entropy",
    "_FusedLinearPPOFallbackFunction",
    lambda dt: (R(5, 9, dt=dt), R(37, 9, dt=dt), torch.tensor([1, 36, 3, 7, 7]), 1.3, -100, False),
    lambda x, w, t, T, i, r: F.cross_entropy(x @ w.T / T, t, reduction="none"),
)


def rope(q, k, cos, sin, *_):
    def rot(x):
        h = x.shape[-1] // 2
        return torch.cat([-x[..., h:], x[..., :h]], -1)

    c, s = cos[:, None], sin[:, None]
    return q * c + rot(q) * s, k * c + rot(k) * s


def rope_args(dt):
    f = torch.outer(torch.arange(5.0), 1 / 10 ** (torch.arange(0, 8, 2) / 8))
    f = torch.cat([f, f], -1)[None]
    return R(2, 3, 5, 8, dt=dt), R(2, 1, 5, 8, dt=dt), f.cos().to(dt), f.sin().to(dt)


case("rope", "rope", "LigerRopeFunction", rope_args, rope)


def l4_args(dt):
    f = torch.polar(torch.ones(5, 4), torch.outer(torch.arange(5.0), 1 / 10 ** (torch.arange(0, 8, 2) / 8)))
    return R(2, 5, 3, 8, dt=dt), R(2, 5, 1, 8, dt=dt), f


def l4(q, k, f):
    f = f.to(torch.complex128 if q.dtype == torch.float64 else torch.complex64)

    def go(x):
        c = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * f[None, :, None]
        return torch.view_as_real(c).flatten(-2)

    return go(q), go(k)


case("llama4_rope", "llama4_rope", "LigerLlama4RopeFunction", l4_args, l4)


def mrope_args(dt):
    ang = torch.rand(3, 2, 5, 4)
    ang = torch.cat([ang, ang], -1)
    return R(2, 3, 5, 8, dt=dt), R(2, 1, 5, 8, dt=dt), ang.cos().to(dt), ang.sin().to(dt), [1, 1, 2]


def mrope(q, k, cos, sin, sec):
    sec = list(sec) * 2
    c = torch.cat([m[i % 3] for i, m in enumerate(cos.split(sec, dim=-1))], dim=-1)
    s = torch.cat([m[i % 3] for i, m in enumerate(sin.split(sec, dim=-1))], dim=-1)
    return rope(q, k, c, s)


case("qwen2vl_mrope", "qwen2vl_mrope", "LigerQwen2VLMRopeFunction", mrope_args, mrope)


def attn_res(V, q, w, eps):
    k = V * torch.rsqrt((V * V).mean(-1, keepdim=True) + eps) * w
    a = (k @ q).softmax(0)
    return (a[..., None] * V).sum(0)


case(
    "attn_res",
    "attn_res",
    "LigerAttnResFunction",
    lambda dt: (R(3, 2, 5, 37, dt=dt), R(37, dt=dt, sc=0.3), R(37, dt=dt), 1e-6),
    attn_res,
)


def moe(x, gu, d, i, w):
    I = d.shape[-1]
    out = 0
    for k in range(i.shape[1]):
        h = torch.einsum("th,tnh->tn", x, gu[i[:, k].long()])
        a = F.silu(h[:, :I]) * h[:, I:]
        out = out + w[:, k : k + 1] * torch.einsum("ti,thi->th", a, d[i[:, k].long()])
    return out


case(
    "fused_moe",
    "fused_moe",
    "LigerFusedMoEFunction",
    lambda dt: (
        R(5, 9, dt=dt),
        R(4, 14, 9, dt=dt, sc=0.5),
        R(4, 9, 7, dt=dt, sc=0.5),
        torch.tensor([[0, 3], [1, 2], [3, 1], [0, 1], [2, 0]], dtype=torch.int32),
        torch.rand(5, 2).to(dt).requires_grad_(),
    ),
    moe,
)


def na(q, k, v, ks, *_):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    L = s.shape[-1]
    i = torch.arange(L)
    m = (i[:, None] - i[None]).abs() <= ks // 2
    return s.masked_fill(~m, -torch.inf).softmax(-1) @ v


case(
    "neighborhood_attn",
    "fused_neighborhood_attention",
    "LigerFusedNeighborhoodAttentionFunction",
    lambda dt: (R(2, 1, 11, 8, dt=dt), R(2, 1, 11, 8, dt=dt), R(2, 1, 11, 8, dt=dt), 5, 1),
    na,
)


def mta(s, w, b, st, pad, *_):
    L = s.shape[-1]
    m = torch.ones(L, L, dtype=torch.bool).tril()
    p = s.masked_fill(~m, -torch.inf).softmax(-1)
    return F.conv2d(p, w, b, st, pad).masked_fill(~m, 0.0)


case(
    "multi_token_attn",
    "multi_token_attention",
    "LigerMultiTokenAttentionFunction",
    lambda dt: (R(2, 2, 9, 9, dt=dt), R(2, 2, 3, 3, dt=dt), R(2, dt=dt), 1, 1),
    mta,
)
case(
    "mhc_pre",
    "mhc",
    "LigerMHCPreFunction",
    lambda dt: (R(5, 4, 37, dt=dt), R(5, 4, dt=dt)),
    lambda x, h: (x * h[..., None]).sum(-2),
)
case(
    "mhc_post_res",
    "mhc",
    "LigerMHCPostResFunction",
    lambda dt: (R(5, 4, 37, dt=dt), R(5, 37, dt=dt), R(5, 4, dt=dt), R(5, 4, 4, dt=dt)),
    lambda x, f, p, r: torch.einsum("noi,nic->noc", r, x) + p[..., None] * f[:, None],
)
case(
    "mhc_coeffs",
    "mhc",
    "LigerMHCCoeffsFunction",
    lambda dt: (
        R(5, 4, 9, dt=dt),
        R(36, 24, dt=dt, sc=0.2),
        R(24, dt=dt),
        *(torch.tensor(v, dtype=dt, requires_grad=True) for v in (0.5, 0.7, 0.9)),
        True,
        3,
        1e-6,
        1e-4,
        1e-6,
        2.0,
    ),
    None,
)
case(
    "mlp",
    "mlp",
    "LigerMLPFunction",
    lambda dt: (R(1, 5, 16, dt=dt), R(32, 16, dt=dt, sc=0.3), R(32, 16, dt=dt, sc=0.3), R(16, 32, dt=dt, sc=0.3)),
    lambda x, g, u, d: (F.silu(x @ g.T) * (x @ u.T)) @ d.T,
)
case(
    "vocab_parallel_ce",
    "vocab_parallel_cross_entropy",
    "LigerVocabParallelCEFunction",
    lambda dt: (R(3, 2, 37, dt=dt), torch.tensor([[1, 36], [0, 7], [7, 2]]), None, -100, 0.0, "megatron", "mean"),
    lambda x, t, *_: F.cross_entropy(x.flatten(0, 1), t.flatten(), reduction="none").view(3, 2),
)


def grpo(logits, old, ref, ids, adv, mask, T, beta, lo, hi, *_):
    lp = (logits[:, :-1] / T).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    r = torch.exp(lp - old)
    a = adv[:, None]
    l = -torch.min(r * a, r.clamp(1 - lo, 1 + hi) * a)
    d = ref - lp
    l = l + beta * (d.exp() - d - 1)
    m = mask.to(l.dtype)
    return ((l * m).sum(-1) / m.sum(-1)).mean(), None, None


def grpo_args(dt):
    lg = R(2, 5, 37, dt=dt)
    ids = torch.tensor([[1, 36, 3, 7], [0, 2, 9, 7]])
    lp = lg.detach()[:, :-1].log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    return (
        lg,
        (lp + 0.1 * torch.randn(2, 4)).to(dt),
        (lp + 0.2 * torch.randn(2, 4)).to(dt),
        ids,
        torch.tensor([1.3, -0.7], dtype=dt),
        torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
        0.9,
        0.04,
        0.2,
        0.4,
        False,
    )


case("grpo_loss", "grpo_loss", "GrpoLossFunction", grpo_args, grpo)


class Lin(torch.nn.Module):
    def __init__(s, dt):
        super().__init__()
        s.l = torch.nn.Linear(9, 9, dtype=dt)

    def forward(s, x):
        return torch.tanh(s.l(x))


def tiled_args(dt):
    m = Lin(dt)
    return (lambda mod, x: mod(x)), m, R(6, 9, dt=dt), 3, list(m.parameters())


case("tiled_mlp", "tiled_mlp", "LigerTiledMLPFunction", tiled_args, lambda f, m, x, s, p: m(x))
