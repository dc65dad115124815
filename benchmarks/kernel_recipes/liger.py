"""liger-kernel 0.8.5: every Function that runs on one GPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_recipes import Made, Recipes, ids, normal, number, uniform

case = Recipes("liger", "liger_kernel.ops")
ROWS, WEIGHT = normal(5, 37), normal(37)
LABELS = ids(1, 36, -100, 7, 7)
NO_METRICS = (None, None, None)


def log_rows(x):
    return x.log_softmax(-1)


def rows(x):
    return x.softmax(-1)


def tenth(x):
    return 0.3 * x


def scaled_to_one(x, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


@case("rms_norm.LigerRMSNormFunction", normal(3, 5, 37), WEIGHT, 1e-6, 0.0, "llama", False)
@case("rms_norm.LigerRMSNormFunction", normal(3, 5, 37), WEIGHT, 1e-6, 1.0, "gemma", False, name="rms_norm_gemma")
@case("rms_norm.LigerRMSNormFunction", normal(3, 5, 37), WEIGHT, 1e-6, 0.0, "llama", True, name="rms_norm_inplace")
def rms_norm(x, weight, eps, offset, *_):
    return scaled_to_one(x, eps) * (weight + offset)


@case("layer_norm.LigerLayerNormFunction", normal(7, 37), WEIGHT, WEIGHT, 1e-5)
def layer_norm(x, weight, bias, eps):
    return F.layer_norm(x, weight.shape, weight, bias, eps)


@case("group_norm.LigerGroupNormFunction", normal(3, 6, 37), normal(6), normal(6), 6, 2, 1e-5)
@case("group_norm.LigerGroupNormFunction", normal(2, 6, 5, 7), normal(6), normal(6), 6, 2, 1e-5, name="group_norm_4d")
def group_norm(x, weight, bias, channels, groups, eps):
    return F.group_norm(x, groups, weight, bias, eps)


@case("fused_add_rms_norm.LigerFusedAddRMSNormFunction", ROWS, ROWS, WEIGHT, 1e-6, 0.0, "llama", False)
def fused_add_rms_norm(x, residual, weight, eps, offset, *_):
    added = x + residual
    return rms_norm(added, weight, eps, offset), added


@case(
    "modulated_rms_norm.LigerModulatedRMSNormFunction",
    *(normal(2, 5, 37), WEIGHT, normal(2, 37), normal(2, 37), 1e-6, 0.0, "llama", False),
)
def modulated_rms_norm(x, weight, scale, shift, eps, offset, *_):
    return rms_norm(x, weight, eps, offset) * (scale.unsqueeze(1) + 1) + shift.unsqueeze(1)


@case("poly_norm.LigerPolyNormFunction", ROWS, normal(3), number(0.3), 1e-6, False)
def poly_norm(x, weight, bias, eps, _):
    return bias + sum(weight[k] * scaled_to_one(x ** (3 - k), eps) for k in range(3))


@case("dyt.LigerDyTFunction", ROWS, normal(1), WEIGHT, WEIGHT)
def dyt(x, alpha, gamma, beta):
    return (alpha * x).tanh() * gamma + beta


@case("swiglu.LigerSiLUMulFunction", ROWS, ROWS)
@case("swiglu.LigerSiLUMulFunction", ROWS, ROWS, 1.5, 0.7, name="swiglu_mult")
def swiglu(a, b, gate=1.0, down=1.0):
    return down * b * F.silu(gate * a)


@case("swiglu.LigerFusedGateUpSiLUMulFunction", normal(5, 74))
def fused_gate_up(both):
    return swiglu(*both.chunk(2, -1))


@case("geglu.LigerGELUMulFunction", ROWS, ROWS)
def geglu(a, b):
    return b * F.gelu(a, approximate="tanh")


@case("relu_squared.LigerReLUSquaredFunction", ROWS)
def relu_squared(x):
    return x.clamp(min=0).square()


@case("softmax.LigerSoftmaxFunction", ROWS)
def softmax(x):
    return x.softmax(-1)


@case("sparsemax.LigerSparsemaxFunction", ROWS, -1)
def sparsemax(x, dim):
    """The point of the simplex nearest to x (Martins and Astudillo, 2016)."""
    ordered = x.sort(dim, descending=True).values
    above = ordered.cumsum(dim) - 1
    counts = torch.arange(1, x.shape[dim] + 1)
    support = (counts * ordered > above).sum(dim, keepdim=True)
    return (x - above.gather(dim, support - 1) / support).clamp(min=0)


@case("experimental.embedding.LigerEmbeddingFunction", normal(11, 37), ids([0, 3, 3], [10, 1, 0]))
def embedding(table, index):
    return table[index]


@case("cross_entropy.LigerCrossEntropyFunction", ROWS, LABELS, None)
@case(
    "cross_entropy.LigerCrossEntropyFunction",
    *(ROWS, LABELS, uniform(37, through=lambda w: w + 0.5, grad=False), -100, 0.0, 0.1, "mean", None),
    name="cross_entropy_all",
)
@case(
    "cross_entropy.LigerCrossEntropyFunction",
    *(ROWS, LABELS, None, -100, 1e-2, 0.1, "sum", 5.0),
    name="cross_entropy_softcap",
)
def cross_entropy(x, labels, weight, ignored=-100, square=0.0, smoothing=0.0, reduction="mean", cap=None):
    x = cap * (x / cap).tanh() if cap else x
    loss = F.cross_entropy(x, labels, weight, ignore_index=ignored, label_smoothing=smoothing, reduction=reduction)
    return loss + square * x.logsumexp(-1)[labels != ignored].square().sum(), *NO_METRICS


@case("jsd.LigerJSDFunction", normal(5, 37, through=log_rows), normal(5, 37, through=log_rows, grad=False), None, 0.3)
def jsd(log_q, log_p, _, beta):
    log_mean = (beta * log_p.exp() + (1 - beta) * log_q.exp()).log()
    to_p, to_q = (F.kl_div(log_mean, log, reduction="batchmean", log_target=True) for log in (log_p, log_q))
    return beta * to_p + (1 - beta) * to_q


@case(
    "kl_div.LigerKLDivLossFunction",
    *(normal(5, 37, through=log_rows), normal(5, 37, through=rows, grad=False), "batchmean", False, 1e-10),
)
def kl_div(log_q, p, reduction, *_):
    return F.kl_div(log_q, p, reduction=reduction)


@case(
    "tvd.LigerTVDLossFunction",
    *(normal(5, 37, through=rows), normal(5, 37, through=rows, grad=False), None, "batchmean"),
)
def tvd(p, q, *_):
    return (p - q).abs().sum(-1).mean() / 2


@case("fused_ce_tvd.LigerFusedCETVDFunction", ROWS, normal(5, 37, grad=False), LABELS)
def fused_ce_tvd(student, teacher, labels):
    distance = (student.softmax(-1) - teacher.softmax(-1)).abs().sum(-1) / 2
    return F.cross_entropy(student, labels, reduction="none"), distance.where(labels != -100, 0.0)


@case(
    "fused_linear_cross_entropy.LigerFusedLinearCrossEntropyFunction", normal(5, 9), normal(37, 9), LABELS, normal(37)
)
def fused_linear_ce(x, weight, labels, bias):
    return F.cross_entropy(F.linear(x, weight, bias), labels), *NO_METRICS


@case(
    "fused_linear_jsd.LigerFusedLinearJSDFunction",
    *(normal(5, 9), normal(37, 9), normal(5, 9, grad=False), normal(37, 9, grad=False), None, 0.3),
)
def fused_linear_jsd(x, weight, teacher, teachers_weight, _, beta):
    return jsd(log_rows(x @ weight.T), log_rows(teacher @ teachers_weight.T), None, beta)


@case(
    "fused_linear_kl_div.LigerFusedLinearKLDivFunction",
    *(normal(5, 9), normal(37, 9), normal(5, 37, through=rows, grad=False)),
)
def fused_linear_kl(x, weight, p):
    return F.kl_div(log_rows(x @ weight.T), p, reduction="batchmean")


@case(
    "fused_linear_scaled_cross_entropy._FusedLinearPPOFallbackFunction",
    *(normal(5, 9), normal(37, 9), ids(1, 36, 3, 7, 7), 1.3, -100, False),
)
def fused_linear_ppo_fallback(x, weight, labels, temperature, *_):
    return F.cross_entropy(x @ weight.T / temperature, labels, reduction="none")


def turned(x, cos, sin):
    """Every pair (i, i + half) turned by its angle."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def angles(positions: int, half: int):
    return torch.arange(positions)[:, None] * 10.0 ** (-torch.arange(half) / half)


def of_both_halves(angle):
    both = torch.cat([angle, angle], -1).float()
    return both.cos(), both.sin()


@case(
    "rope.LigerRopeFunction", normal(2, 3, 5, 8), normal(2, 1, 5, 8), Made(lambda: of_both_halves(angles(5, 4)[None]))
)
def rope(q, k, cos, sin):
    return tuple(turned(x, cos[:, None], sin[:, None]) for x in (q, k))


@case(
    "llama4_rope.LigerLlama4RopeFunction",
    *(normal(2, 5, 3, 8), normal(2, 5, 1, 8), Made(lambda: (torch.polar(torch.ones(5, 4), angles(5, 4).float()),))),
)
def llama4_rope(q, k, turns):
    pairs = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turns[:, None] for x in (q, k))
    return tuple(torch.view_as_real(x).flatten(-2) for x in pairs)


@case(
    "qwen2vl_mrope.LigerQwen2VLMRopeFunction",
    *(normal(2, 3, 5, 8), normal(2, 1, 5, 8), Made(lambda: of_both_halves(torch.rand(3, 2, 5, 4))), [1, 1, 2]),
)
def qwen2vl_mrope(q, k, cos, sin, sections):
    axis = torch.repeat_interleave(torch.arange(3), torch.tensor(sections)).repeat(2)  # which position turns a column
    columns = torch.arange(len(axis))
    return rope(q, k, *(x[axis, :, :, columns].movedim(0, -1) for x in (cos, sin)))


@case("attn_res.LigerAttnResFunction", normal(3, 2, 5, 37), normal(37, through=tenth), WEIGHT, 1e-6)
def attn_res(values, query, weight, eps):
    shares = (scaled_to_one(values, eps) * weight * query).sum(-1, keepdim=True).softmax(0)
    return (shares * values).sum(0)


@case(
    "fused_moe.LigerFusedMoEFunction",
    *(normal(5, 9), normal(4, 14, 9, through=tenth), normal(4, 9, 7, through=tenth)),
    Made(lambda: (torch.tensor([[0, 3], [1, 2], [3, 1], [0, 1], [2, 0]], dtype=torch.int32),)),
    uniform(5, 2),
)
def fused_moe(x, gate_up, down, experts, shares):
    inner = torch.einsum("th,tknh->tkn", x, gate_up[experts.long()])
    return torch.einsum("tk,tki,tkhi->th", shares, fused_gate_up(inner), down[experts.long()])


@case(
    "fused_neighborhood_attention.LigerFusedNeighborhoodAttentionFunction",
    *(normal(2, 1, 11, 8), normal(2, 1, 11, 8), normal(2, 1, 11, 8), 5, 1),
)
def neighborhood_attn(q, k, v, width, _):
    near = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril(width // 2).triu(-(width // 2))
    return F.scaled_dot_product_attention(q, k, v, near)


@case(
    "multi_token_attention.LigerMultiTokenAttentionFunction",
    *(normal(2, 2, 9, 9), normal(2, 2, 3, 3), normal(2), 1, 1),
)
def multi_token_attn(scores, weight, bias, stride, padding):
    past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    shares = scores.where(past, -torch.inf).softmax(-1)
    return F.conv2d(shares, weight, bias, stride, padding).where(past, 0.0)


@case("mhc.LigerMHCPreFunction", normal(5, 4, 37), normal(5, 4))
def mhc_pre(x, shares):
    return torch.einsum("nsc,ns->nc", x, shares)


@case("mhc.LigerMHCPostResFunction", normal(5, 4, 37), ROWS, normal(5, 4), normal(5, 4, 4))
def mhc_post_res(x, out, post, mixing):
    return mixing @ x + post.unsqueeze(-1) * out.unsqueeze(1)


case.alone(
    "mhc_coeffs",
    "mhc.LigerMHCCoeffsFunction",
    *(normal(5, 4, 9), normal(36, 24, through=tenth), normal(24), number(0.5), number(0.7), number(0.9)),
    *(True, 3, 1e-6, 1e-4, 1e-6, 2.0),
)


@case("mlp.LigerMLPFunction", normal(1, 5, 16), *[normal(32, 16, through=tenth)] * 2, normal(16, 32, through=tenth))
def mlp(x, gate, up, down):
    return swiglu(x @ gate.T, x @ up.T) @ down.T


@case(
    "vocab_parallel_cross_entropy.LigerVocabParallelCEFunction",
    *(normal(3, 2, 37), ids([1, 36], [0, 7], [7, 2]), None, -100, 0.0, "megatron", "mean"),
)
def vocab_parallel_ce(x, labels, *_):
    return F.cross_entropy(x.movedim(-1, 1), labels, reduction="none")


def chosen(logits, tokens, temperature=1.0):
    """Log-probabilities of the tokens that were taken."""
    return log_rows(logits[:, :-1] / temperature).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def policy():
    logits = torch.randn(2, 5, 37, requires_grad=True)
    tokens = torch.tensor([[1, 36, 3, 7], [0, 2, 9, 7]])
    before, reference = (chosen(logits.detach(), tokens) + s * torch.randn(2, 4) for s in (0.1, 0.2))
    return logits, before, reference, tokens, torch.tensor([1.3, -0.7]), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])


@case(
    "grpo_loss.GrpoLossFunction",
    *(Made(policy), 0.9, 0.04, 0.2, 0.4, False),
    defect="the gradient through kl, the second output, is zero",
)
def grpo_loss(logits, before, reference, tokens, advantage, mask, temperature, beta, low, high, _):
    now = chosen(logits, tokens, temperature)
    ratio, worth = (now - before).exp(), advantage.unsqueeze(-1)
    clipped = torch.minimum(ratio * worth, ratio.clamp(1 - low, 1 + high) * worth)
    loss = beta * (torch.expm1(reference - now) - (reference - now)) - clipped
    return ((loss * mask).sum(-1) / mask.sum(-1)).mean(), None, None


def tile():
    layer = torch.nn.Sequential(torch.nn.Linear(9, 9), torch.nn.Tanh())
    return (lambda module, x: module(x)), layer, torch.randn(6, 9, requires_grad=True), 3, list(layer.parameters())


@case("tiled_mlp.LigerTiledMLPFunction", Made(tile), defect="the gradient of an x that is not contiguous is zero")
def tiled_mlp(call, layer, x, *_):
    return layer(x.to(layer[0].weight.dtype))
