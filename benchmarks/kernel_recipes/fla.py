# ruff: noqa: E741 - names as in the formulas
import torch
import torch.nn.functional as F


def R(*s, dt=torch.float32, rg=True, sc=1.0):
    return (torch.randn(*s, dtype=torch.float64) * sc).to(dt).requires_grad_(rg)


C = {}


def case(name, mod, cls, args, ref=None):
    C[name] = ("fla." + mod, cls, args, ref)


def N1(x):
    return F.normalize(x.detach(), dim=-1).requires_grad_()


case("sigmoid", "modules.activations.ops", "SigmoidFunction", lambda dt: (R(5, 37, dt=dt),), torch.sigmoid)
case("elu1", "modules.activations.ops", "ELUPlusOneFunction", lambda dt: (R(5, 37, dt=dt),), lambda x: F.elu(x) + 1)
case(
    "logsigmoid",
    "modules.activations.ops",
    "LogSigmoidFunction",
    lambda dt: (R(5, 37, dt=dt), 2.0),
    lambda x, t: F.logsigmoid(x) / t,
)
case("swish", "modules.activations.ops", "SwishFunction", lambda dt: (R(5, 37, dt=dt),), F.silu)
case(
    "swiglu",
    "modules.activations.ops",
    "SwiGLUFunction",
    lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt)),
    lambda x, y: F.silu(x) * y,
)
case(
    "swiglu_linear",
    "modules.activations.ops",
    "SwiGLULinearFunction",
    lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt), R(7, 37, dt=dt), R(7, dt=dt)),
    lambda x, y, w, b: F.linear(F.silu(x) * y, w, b),
)
case("powglu", "modules.activations.ops", "PowGLUFunction", lambda dt: (R(5, 37, dt=dt), R(5, 37, dt=dt), 3.0), None)
case(
    "l2norm",
    "modules.norm.l2norm",
    "L2NormFunction",
    lambda dt: (R(5, 3, 37, dt=dt), 1e-6),
    lambda x, e: x * torch.rsqrt((x * x).sum(-1, keepdim=True) + e),
)
case(
    "layernorm",
    "modules.norm.layernorm",
    "LayerNormFunction",
    lambda dt: (R(3, 5, 37, dt=dt), R(37, dt=dt), R(37, dt=dt)),
    lambda x, w, b: F.layer_norm(x, (37,), w, b, 1e-5),
)
case(
    "layernorm_linear",
    "modules.norm.layernorm",
    "LayerNormLinearFunction",
    lambda dt: (R(3, 5, 37, dt=dt), R(37, dt=dt), R(37, dt=dt), R(11, 37, dt=dt), R(11, dt=dt)),
    lambda x, w, b, l, c: F.linear(F.layer_norm(x, (37,), w, b, 1e-5), l, c),
)
case(
    "norm_gated",
    "modules.norm.fused_norm_gate",
    "LayerNormGatedFunction",
    lambda dt: (R(3, 5, 37, dt=dt), R(3, 5, 37, dt=dt), R(37, dt=dt), R(37, dt=dt), "swish", None, 1e-6),
    lambda x, g, w, b, a, r, e: F.layer_norm(x, (37,), w, b, e) * F.silu(g),
)


def frope(x, cos, sin, *_):
    h = cos.shape[-1]
    a, b = x[..., :h], x[..., h : 2 * h]
    c, s = cos[: x.shape[1], None], sin[: x.shape[1], None]
    return torch.cat([a * c - b * s, a * s + b * c, x[..., 2 * h :]], -1)


def frope_args(dt):
    t = torch.outer(torch.arange(9.0), 1 / 10 ** (torch.arange(4) / 4))
    return R(2, 9, 3, 10, dt=dt), t.cos().to(dt), t.sin().to(dt)


case("rotary", "modules.rotary.ops", "RotaryEmbeddingFunction", frope_args, frope)
case(
    "cross_entropy",
    "modules.fused_cross_entropy.ops",
    "FusedCrossEntropyFunction",
    lambda dt: (R(5, 37, dt=dt), torch.tensor([1, 36, -100, 7, 7]), 0.1, 1.3, 0.01),
    lambda x, t, s, l, z: (
        F.cross_entropy(l * x, t, reduction="none", label_smoothing=s) + z * ((l * x).logsumexp(-1) ** 2) * (t != -100),
        None,
    ),
)
case(
    "kl_div",
    "modules.fused_kl_div.ops",
    "FusedKLDivLossFunction",
    lambda dt: (
        R(5, 9, dt=dt),
        R(5, 9, dt=dt, rg=False),
        R(37, 9, dt=dt),
        R(37, 9, dt=dt, rg=False),
        "batchmean",
        True,
        True,
    ),
    lambda x, tx, w, tw, r, *_: F.kl_div((x @ w.T).log_softmax(-1), (tx @ tw.T).softmax(-1), reduction=r),
)
case(
    "linear_ce",
    "modules.fused_linear_cross_entropy.ops",
    "FusedLinearCrossEntropyFunction",
    lambda dt: (
        R(5, 9, dt=dt),
        torch.tensor([1, 36, -100, 7, 7]),
        R(37, 9, dt=dt),
        R(37, dt=dt),
        -100,
        0.1,
        1.0,
        None,
        2,
    ),
    lambda x, t, w, b, i, s, *_: F.cross_entropy(x @ w.T + b, t, label_smoothing=s),
)
case(
    "token_shift",
    "modules.token_shift",
    "TokenShift",
    lambda dt: (R(2, 9, 37, dt=dt),),
    lambda x: F.pad(x, (0, 0, 1, 0))[:, :-1] - x,
)


def conv(x, w, b, r, st, fs, act, *_):
    y = F.conv1d(F.pad(x.transpose(1, 2), (w.shape[1] - 1, 0)), w[:, None], b, groups=w.shape[0]).transpose(1, 2)
    y = F.silu(y) if act else y
    return y + r if r is not None else y


case(
    "causal_conv1d",
    "modules.causal_conv1d.ops",
    "CausalConv1dFunction",
    lambda dt: (R(2, 11, 37, dt=dt), R(37, 4, dt=dt), R(37, dt=dt), R(2, 11, 37, dt=dt), None, False, "swish"),
    conv,
)


def gla(q, k, v, g, scale, *_):
    B, T, H, K = q.shape
    S = torch.zeros(B, H, K, v.shape[-1], dtype=q.dtype)
    o = []
    for t in range(T):
        S = (
            S * (g[:, t].exp()[..., None] if g.dim() == 4 else g[:, t].exp()[..., None, None])
            + k[:, t, :, :, None] * v[:, t, :, None]
        )
        o.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * scale, S))
    return torch.stack(o, 1)


def G(*s, dt):
    return F.logsigmoid(torch.randn(*s, dtype=torch.float64)).to(dt).requires_grad_()


case(
    "chunk_gla",
    "ops.gla.chunk",
    "ChunkGLAFunction",
    lambda dt: (
        R(1, 19, 2, 16, dt=dt),
        R(1, 19, 2, 16, dt=dt),
        R(1, 19, 2, 24, dt=dt),
        G(1, 19, 2, 16, dt=dt),
        0.25,
        None,
        False,
        False,
        None,
        None,
    ),
    gla,
)
case(
    "chunk_gla_t70",
    "ops.gla.chunk",
    "ChunkGLAFunction",
    lambda dt: (
        R(1, 70, 1, 16, dt=dt),
        R(1, 70, 1, 16, dt=dt),
        R(1, 70, 1, 24, dt=dt),
        G(1, 70, 1, 16, dt=dt),
        0.25,
        None,
        False,
        False,
        None,
        None,
    ),
    gla,
)
case(
    "chunk_simple_gla",
    "ops.simple_gla.chunk",
    "ChunkSimpleGLAFunction",
    lambda dt: (
        R(1, 70, 2, 16, dt=dt),
        R(1, 70, 2, 16, dt=dt),
        R(1, 70, 2, 24, dt=dt),
        G(1, 70, 2, dt=dt),
        None,
        0.25,
        None,
        False,
        False,
        None,
        None,
    ),
    lambda q, k, v, g, gg, s, *_: gla(q, k, v, g, s),
)
case(
    "fused_recurrent_gla",
    "ops.common.fused_recurrent",
    "FusedRecurrentFunction",
    lambda dt: (
        R(1, 9, 2, 16, dt=dt),
        R(1, 9, 2, 16, dt=dt),
        R(1, 9, 2, 24, dt=dt),
        None,
        None,
        G(1, 9, 2, 16, dt=dt),
        None,
        0.25,
    ),
    lambda q, k, v, a, b, g, c, s: gla(q, k, v, g, s),
)


def delta(q, k, v, beta, scale, g=None):
    B, T, H, K = q.shape
    S = torch.zeros(B, H, K, v.shape[-1], dtype=q.dtype)
    o = []
    for t in range(T):
        if g is not None:
            S = S * g[:, t].exp()[..., None, None]
        u = beta[:, t][..., None] * (v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], S))
        S = S + k[:, t, :, :, None] * u[:, :, None]
        o.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * scale, S))
    return torch.stack(o, 1)


def B_(*s, dt):
    return torch.rand(*s, dtype=torch.float64).to(dt).requires_grad_()


case(
    "delta_rule_rec",
    "ops.delta_rule.fused_recurrent",
    "FusedRecurrentFunction",
    lambda dt: (
        R(1, 9, 2, 16, dt=dt),
        N1(R(1, 9, 2, 16, dt=dt)),
        R(1, 9, 2, 24, dt=dt),
        B_(1, 9, 2, dt=dt),
        0.25,
        None,
        False,
    ),
    lambda q, k, v, b, s, *_: delta(q, k, v, b, s),
)
case(
    "chunk_delta_rule",
    "ops.delta_rule.chunk",
    "ChunkDeltaRuleFunction",
    lambda dt: (
        R(1, 70, 1, 16, dt=dt),
        N1(R(1, 70, 1, 16, dt=dt)),
        R(1, 70, 1, 24, dt=dt),
        B_(1, 70, 1, dt=dt),
        0.25,
        None,
        False,
    ),
    lambda q, k, v, b, s, *_: delta(q, k, v, b, s),
)
case(
    "chunk_gated_delta",
    "ops.gated_delta_rule.chunk",
    "ChunkGatedDeltaRuleFunction",
    lambda dt: (
        R(1, 70, 1, 16, dt=dt),
        N1(R(1, 70, 1, 16, dt=dt)),
        R(1, 70, 1, 24, dt=dt),
        G(1, 70, 1, dt=dt),
        B_(1, 70, 1, dt=dt),
        0.25,
        None,
        False,
    ),
    lambda q, k, v, g, b, s, *_: delta(q, k, v, b, s, g),
)


def hgrn(x, g, *_):
    h = torch.zeros_like(x[:, 0])
    o = []
    for t in range(x.shape[1]):
        h = g[:, t].exp() * h + x[:, t]
        o.append(h)
    return torch.stack(o, 1)


case("chunk_hgrn", "ops.hgrn.chunk", "ChunkHGRNFunction", lambda dt: (R(1, 70, 37, dt=dt), G(1, 70, 37, dt=dt)), hgrn)
case(
    "rec_hgrn",
    "ops.hgrn.fused_recurrent",
    "FusedRecurrentHGRNFunction",
    lambda dt: (R(1, 9, 37, dt=dt), G(1, 9, 37, dt=dt)),
    hgrn,
)
case(
    "rwkv7_addcmul",
    "ops.rwkv7.fused_addcmul",
    "Rwkv7FusedAddcmul",
    lambda dt: (R(2, 5, 37, dt=dt), R(2, 5, 37, dt=dt), *(R(1, 1, 37, dt=dt) for _ in range(6))),
    lambda h, d, *xs: tuple(h + d * x for x in xs),
)
case(
    "rwkv7_kupdate",
    "ops.rwkv7.fused_k_update",
    "KUpdateFunction",
    lambda dt: (R(2, 5, 37, dt=dt), R(2, 5, 37, dt=dt), R(37, dt=dt)),
    lambda k, a, ka: k * (1 + (a - 1) * ka),
)


def attn(q, k, v, g, sb, scale, *_):
    G_ = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(G_, 2), v.repeat_interleave(G_, 2)
    s = torch.einsum("bthd,bshd->bhts", q, k) * scale
    m = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
    return torch.einsum("bhts,bshd->bthd", s.masked_fill(~m, -torch.inf).softmax(-1), v)


case(
    "parallel_attn",
    "ops.attn.parallel",
    "ParallelAttentionFunction",
    lambda dt: (R(1, 40, 2, 16, dt=dt), R(1, 40, 1, 16, dt=dt), R(1, 40, 1, 16, dt=dt), None, None, 0.25, None, None),
    attn,
)


def mp(x, c, *_):
    return torch.stack([x[:, i : i + c].mean(1) for i in range(0, x.shape[1], c)], 1)


case("mean_pooling", "ops.utils.pooling", "MeanPoolingFunction", lambda dt: (R(1, 21, 2, 16, dt=dt), 8), mp)
case(
    "beta_sigmoid",
    "ops.common.gate",
    "BetaSigmoidFunction",
    lambda dt: (R(2, 9, 3, dt=dt), 2.0),
    lambda x, s: s * torch.sigmoid(x),
)
case(
    "gdn_gate",
    "ops.gated_delta_rule.gate",
    "GDNGateFunction",
    lambda dt: (R(2, 9, 3, dt=dt), R(3, dt=dt), R(3, dt=dt)),
    lambda g, A, b: -A.exp() * F.softplus(g + b),
)


def rwkv4(w, u, k, v, st):
    _B, _T, _Cc = k.shape
    _a, _b, _e = st[:, 0, 0], st[:, 0, 1] if False else None, None


case("sinkhorn", "ops.utils.sinkhorn.ops", "SinkhornFunction", lambda dt: (R(5, 4, 4, dt=dt), 3), None)
case(
    "chunk_kda",
    "ops.kda.chunk",
    "ChunkKDAFunction",
    lambda dt: (
        R(1, 70, 1, 16, dt=dt),
        N1(R(1, 70, 1, 16, dt=dt)),
        R(1, 70, 1, 24, dt=dt),
        G(1, 70, 1, 16, dt=dt),
        B_(1, 70, 1, dt=dt),
        None,
        None,
        0.25,
        None,
    ),
    None,
)


def conv_state(x, w, b, r, st, fs, act, *_):
    z = torch.cat([st[..., -(w.shape[1] - 1) :] if st.shape[-1] == w.shape[1] else st, x.transpose(1, 2)], -1)
    y = F.conv1d(z, w[:, None], b, groups=w.shape[0]).transpose(1, 2)
    y = F.silu(y) if act else y
    full = torch.cat([st, x.transpose(1, 2)], -1)
    return y, full[..., -w.shape[1] :]


case(
    "conv1d_short_state",
    "modules.causal_conv1d.ops",
    "CausalConv1dFunction",
    lambda dt: (R(2, 2, 37, dt=dt), R(37, 4, dt=dt), R(37, dt=dt), None, R(2, 37, 4, dt=dt), True, "swish"),
    conv_state,
)
case(
    "conv1d_state",
    "modules.causal_conv1d.ops",
    "CausalConv1dFunction",
    lambda dt: (R(2, 9, 37, dt=dt), R(37, 4, dt=dt), R(37, dt=dt), None, R(2, 37, 4, dt=dt), True, "swish"),
    conv_state,
)
