"""fla-core 0.6.0: activations, norms, losses, convolutions, and the linear attentions, chunked and step by step."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_recipes import Made, Recipes, ids, normal, uniform

case = Recipes("fla", "fla")
ROWS, WEIGHT, TOKENS = normal(5, 37), normal(37), normal(3, 5, 37)
LABELS = ids(1, 36, -100, 7, 7)
NO_STATE = (0.25, None, False)  # scale, initial state, no final state


def unit(x):
    return F.normalize(x, dim=-1)


def heads(length, many, *, keys=16, values=24, through=None):
    """q, k and v of one sequence."""
    q, v = normal(1, length, many, keys), normal(1, length, many, values)
    return q, normal(1, length, many, keys, through=through), v


def decays(*shape):
    return normal(*shape, through=F.logsigmoid)


ACTIVATIONS = "modules.activations.ops"


@case(f"{ACTIVATIONS}.SigmoidFunction", ROWS)
def sigmoid(x):
    return torch.sigmoid(x)


@case(f"{ACTIVATIONS}.ELUPlusOneFunction", ROWS)
def elu1(x):
    return F.elu(x) + 1


@case(f"{ACTIVATIONS}.LogSigmoidFunction", ROWS, 2.0)
def logsigmoid(x, temperature):
    return F.logsigmoid(x) / temperature


@case(f"{ACTIVATIONS}.SwishFunction", ROWS)
def swish(x):
    return F.silu(x)


@case(f"{ACTIVATIONS}.SwiGLUFunction", ROWS, ROWS)
def swiglu(x, y):
    return F.silu(x) * y


@case(f"{ACTIVATIONS}.SwiGLULinearFunction", ROWS, ROWS, normal(7, 37), normal(7))
def swiglu_linear(x, y, weight, bias):
    return F.linear(swiglu(x, y), weight, bias)


case.alone("powglu", f"{ACTIVATIONS}.PowGLUFunction", ROWS, ROWS, 3.0)


@case("modules.norm.l2norm.L2NormFunction", normal(5, 3, 37), 1e-6)
def l2norm(x, eps):
    return x / (x.square().sum(-1, keepdim=True) + eps).sqrt()


@case("modules.norm.layernorm.LayerNormFunction", TOKENS, WEIGHT, WEIGHT)
def layernorm(x, weight, bias, eps=1e-5):
    return F.layer_norm(x, weight.shape, weight, bias, eps)


@case("modules.norm.layernorm.LayerNormLinearFunction", TOKENS, WEIGHT, WEIGHT, normal(11, 37), normal(11))
def layernorm_linear(x, weight, bias, matrix, shift):
    return F.linear(layernorm(x, weight, bias), matrix, shift)


@case("modules.norm.fused_norm_gate.LayerNormGatedFunction", TOKENS, TOKENS, WEIGHT, WEIGHT, "swish", None, 1e-6)
def norm_gated(x, gate, weight, bias, activation, residual, eps):
    return layernorm(x, weight, bias, eps) * F.silu(gate)


def turns():
    angle = torch.arange(9)[:, None] * 10.0 ** (-torch.arange(4) / 4)
    return angle.cos(), angle.sin()


@case("modules.rotary.ops.RotaryEmbeddingFunction", normal(2, 9, 3, 10), Made(turns))
def rotary(x, cos, sin):
    a, b, rest = x.split([4, 4, 2], -1)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], -1)


@case("modules.fused_cross_entropy.ops.FusedCrossEntropyFunction", ROWS, LABELS, 0.1, 1.3, 0.01)
def cross_entropy(x, labels, smoothing, scale, square):
    losses = F.cross_entropy(scale * x, labels, reduction="none", label_smoothing=smoothing)
    return losses + square * (scale * x).logsumexp(-1).square().where(labels != -100, 0.0), None


@case(
    "modules.fused_kl_div.ops.FusedKLDivLossFunction",
    *(normal(5, 9), normal(5, 9, grad=False), normal(37, 9), normal(37, 9, grad=False), "batchmean", True, True),
)
def kl_div(x, teacher, weight, teachers_weight, reduction, *_):
    return F.kl_div((x @ weight.T).log_softmax(-1), (teacher @ teachers_weight.T).softmax(-1), reduction=reduction)


@case(
    "modules.fused_linear_cross_entropy.ops.FusedLinearCrossEntropyFunction",
    *(normal(5, 9), LABELS, normal(37, 9), normal(37), -100, 0.1, 1.0, None, 2),
)
def linear_ce(x, labels, weight, bias, ignored, smoothing, *_):
    return F.cross_entropy(F.linear(x, weight, bias), labels, label_smoothing=smoothing)


@case("modules.token_shift.TokenShift", normal(2, 9, 37))
def token_shift(x):
    return F.pad(x, (0, 0, 1, -1)) - x


CONVOLUTION = "modules.causal_conv1d.ops.CausalConv1dFunction"
KERNELS = (normal(37, 4), normal(37))


@case(CONVOLUTION, normal(2, 11, 37), *KERNELS, normal(2, 11, 37), None, False, "swish")
def causal_conv1d(x, weight, bias, residual, *_):
    past = x.new_zeros(len(x), x.shape[2], 4)
    return conv1d_state(x, weight, bias, None, past)[0] + residual


@case(CONVOLUTION, normal(2, 2, 37), *KERNELS, None, normal(2, 37, 4), True, "swish", name="conv1d_short_state")
@case(CONVOLUTION, normal(2, 9, 37), *KERNELS, None, normal(2, 37, 4), True, "swish")
def conv1d_state(x, weight, bias, residual, state, *_):
    """A convolution over the last inputs of the call before, and over x; it returns the last inputs for the next call."""
    width = weight.shape[1]
    line = torch.cat([state, x.transpose(1, 2)], -1)
    return F.silu(F.conv1d(line[..., 1:], weight[:, None], bias, groups=len(weight))).transpose(1, 2), line[
        ..., -width:
    ]


def recurrent(q, k, v, scale, decay=None, beta=None):
    """Linear attention step by step. With `beta`, what the state already knows of k is taken off v (the delta rule)."""
    state = q.new_zeros(*q[:, 0].shape, v.shape[-1])
    outputs = []
    for t in range(q.shape[1]):
        if decay is not None:
            kept = decay[:, t].exp()
            state = state * kept.reshape(*kept.shape, *[1] * (state.dim() - kept.dim()))
        new = v[:, t]
        if beta is not None:
            new = beta[:, t].unsqueeze(-1) * (new - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state = state + k[:, t].unsqueeze(-1) * new.unsqueeze(-2)
        outputs.append(scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    return torch.stack(outputs, 1)


@case("ops.gla.chunk.ChunkGLAFunction", *heads(19, 2), decays(1, 19, 2, 16), *NO_STATE, False, None, None)
@case(
    "ops.gla.chunk.ChunkGLAFunction",
    *(*heads(70, 1), decays(1, 70, 1, 16), *NO_STATE, False, None, None),
    name="chunk_gla_t70",
)
def chunk_gla(q, k, v, decay, scale, *_):
    return recurrent(q, k, v, scale, decay)


@case(
    "ops.simple_gla.chunk.ChunkSimpleGLAFunction",
    *(*heads(70, 2), decays(1, 70, 2), None, *NO_STATE, False, None, None),
)
def chunk_simple_gla(q, k, v, decay, _, scale, *__):
    return recurrent(q, k, v, scale, decay)


@case(
    "ops.common.fused_recurrent.FusedRecurrentFunction",
    *(*heads(9, 2), None, None, decays(1, 9, 2, 16), None, 0.25),
)
def fused_recurrent_gla(q, k, v, g, gamma, decay, of_values, scale):
    return recurrent(q, k, v, scale, decay)


@case("ops.delta_rule.fused_recurrent.FusedRecurrentFunction", *heads(9, 2, through=unit), uniform(1, 9, 2), *NO_STATE)
@case(
    "ops.delta_rule.chunk.ChunkDeltaRuleFunction",
    *(*heads(70, 1, through=unit), uniform(1, 70, 1), *NO_STATE),
    name="chunk_delta_rule",
)
def delta_rule_rec(q, k, v, beta, scale, *_):
    return recurrent(q, k, v, scale, beta=beta)


@case(
    "ops.gated_delta_rule.chunk.ChunkGatedDeltaRuleFunction",
    *(*heads(70, 1, through=unit), decays(1, 70, 1), uniform(1, 70, 1), *NO_STATE),
    name="chunk_gated_delta",
)
def gated_delta(q, k, v, decay, beta, scale, *_):
    return recurrent(q, k, v, scale, decay, beta)


@case(
    "ops.kda.chunk.ChunkKDAFunction",
    *(*heads(70, 1, through=unit), decays(1, 70, 1, 16), uniform(1, 70, 1), None, None, 0.25, None),
)
def chunk_kda(q, k, v, decay, beta, a, bias, scale, *_):
    return recurrent(q, k, v, scale, decay, beta), None


@case("ops.hgrn.chunk.ChunkHGRNFunction", normal(1, 70, 37), decays(1, 70, 37))
@case("ops.hgrn.fused_recurrent.FusedRecurrentHGRNFunction", normal(1, 9, 37), decays(1, 9, 37), name="rec_hgrn")
def chunk_hgrn(x, decay):
    state, outputs = 0, []
    for new, kept in zip(x.unbind(1), decay.exp().unbind(1)):
        state = state * kept + new
        outputs.append(state)
    return torch.stack(outputs, 1)


@case("ops.rwkv7.fused_addcmul.Rwkv7FusedAddcmul", normal(2, 5, 37), normal(2, 5, 37), *[normal(1, 1, 37)] * 6)
def rwkv7_addcmul(hidden, delta, *shares):
    return tuple(torch.addcmul(hidden, delta, share) for share in shares)


@case("ops.rwkv7.fused_k_update.KUpdateFunction", normal(2, 5, 37), normal(2, 5, 37), WEIGHT)
def rwkv7_kupdate(k, a, share):
    return k + k * (a - 1) * share


@case(
    "ops.attn.parallel.ParallelAttentionFunction",
    *(normal(1, 40, 2, 16), normal(1, 40, 1, 16), normal(1, 40, 1, 16), None, None, 0.25, None, None),
)
def parallel_attn(q, k, v, *_):
    by_head = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(*by_head, is_causal=True, scale=0.25, enable_gqa=True).transpose(1, 2)


@case("ops.utils.pooling.MeanPoolingFunction", normal(1, 21, 2, 16), 8)
def mean_pooling(x, width):
    return torch.stack([part.mean(1) for part in x.split(width, 1)], 1)


@case("ops.common.gate.BetaSigmoidFunction", normal(2, 9, 3), 2.0)
def beta_sigmoid(x, scale):
    return scale * torch.sigmoid(x)


@case("ops.gated_delta_rule.gate.GDNGateFunction", normal(2, 9, 3), normal(3), normal(3))
def gdn_gate(x, log_rate, bias):
    return -log_rate.exp() * F.softplus(x + bias)


case.alone("sinkhorn", "ops.utils.sinkhorn.ops.SinkhornFunction", normal(5, 4, 4), 3)
