"""Proves every pair and every right file in plain PyTorch. `python harm.py [part of a name ...]`."""
import importlib.util
import json
import math
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).resolve().parent
HIDDEN = {entry["name"]: entry["hidden"] for entry in json.loads((HERE / "manifest.json").read_text())}
D = torch.float64
PAIRS, RIGHTS = [], []


def R(*shape, dtype=D):
    """A random tensor that wants a gradient."""
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def T(values, dtype=D, grad=True):
    return torch.tensor(values, dtype=dtype, requires_grad=grad)


def pair(name, cls, harm=None, ref=None, probe=None, fd=True, declared_ref=True):
    """harm: makes harmful inputs; ref: the same forward in differentiable PyTorch (None: finite differences);
    probe: instead of harm, a function of `apply` that returns gradients; fd: gradcheck mended at harm, too."""
    PAIRS.append((name, cls, harm, ref, probe, fd, declared_ref))


def right(name, cls, further=None, ref=None, fd=True, wrap=None):
    """further: one more example; ref: autograd reference; wrap: makes a callable for gradcheck of apply."""
    RIGHTS.append((name, cls, further, ref, fd, wrap))


def load(path, cls):
    spec = importlib.util.spec_from_file_location("m_" + "_".join(path.parts[-2:]).replace(".", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, getattr(module, cls), module.gradsmith_inputs[cls]


def gradients(apply, make):
    """Values and gradients of a fixed random weighting of the outputs."""
    torch.manual_seed(7)
    args = make()
    outs = apply(*args)
    outs = outs if isinstance(outs, tuple) else (outs,)
    weights = torch.Generator().manual_seed(11)
    loss, values = 0.0, []
    for out in outs:
        if not (out.is_floating_point() or out.is_complex()):
            continue
        w = torch.randn(out.shape, generator=weights, dtype=D)
        if out.is_complex():
            w = torch.complex(w, torch.randn(out.shape, generator=weights, dtype=D))
        values.append(out.detach().clone())
        if out.requires_grad:
            loss = loss + (out * w.to(out.dtype)).sum().real if out.is_complex() else loss + (out * w.to(out.dtype)).sum()
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    return values, [torch.zeros_like(a) if g is None else g for a, g in zip(leaves, grads)]


def same(got, want, loose=False):
    if len(got) != len(want):
        return False
    for a, b in zip(got, want):
        if not torch.isfinite(torch.view_as_real(b) if b.is_complex() else b).all():
            raise AssertionError("the reference is not finite")
        low = b.dtype in (torch.float32, torch.complex64, torch.bfloat16, torch.float16)
        if a.shape != b.shape or not torch.allclose(a, b, rtol=1e-3 if low else 1e-5, atol=1e-4 if low else 1e-7):
            return False
    return True


def gradcheck(fn, make):
    torch.manual_seed(5)
    try:
        return torch.autograd.gradcheck(fn, make())
    except Exception as error:  # a mismatch, or backward raised
        gradcheck.why = f"{type(error).__name__}: {str(error)[:300]}"
        return False

def focal(x, t, gamma=2.0):
    p = torch.where(t > 0, torch.sigmoid(x), 1 - torch.sigmoid(x))
    return -(1 - p) ** gamma * p.log()


pair("001_focal_loss", "BinaryFocalLoss", harm=lambda: (R(6), torch.tensor([0, 1, 1, 0, 1, 0]), 3.5), ref=focal)

pair("002_pinball_loss", "PinballLoss", harm=lambda: (R(5), R(5), 0.9), ref=lambda p, t, q: torch.maximum(q * (t - p), (q - 1) * (t - p)).mean())

pair(
    "003_dice_loss", "DiceLoss",
    harm=lambda: (torch.rand(3, 5, dtype=D, requires_grad=True), torch.rand(3, 5, dtype=D, requires_grad=True)),
    ref=lambda p, t: sum(1 - (2 * (a @ b) + 1) / (a.sum() + b.sum() + 1) for a, b in zip(p, t)) / len(p),
)

pair("004_wasserstein_1d", "Wasserstein1D", harm=lambda: (R(6), R(6)), ref=lambda x, y: (x.sort().values - y.sort().values).square().sum() / len(x))

pair("005_cross_entropy_ignore", "MaskedCrossEntropy", harm=lambda: (R(5, 4), torch.tensor([0, -100, 1, -100, 2])), ref=lambda x, t, i=-100: F.cross_entropy(x, t, ignore_index=i))

pair(
    "006_annealed_kl", "AnnealedKL",
    harm=lambda: (R(2, 3), R(2, 3), 250, 1000),
    ref=lambda m, s, step, w: min(1.0, step / w) * ((m * m + torch.exp(s) - s - 1) / 2).sum(),
)

pair("007_mish", "Mish", harm=lambda: (T([-3.0, 5.0, 800.0]),), ref=F.mish, fd=False)

def bump_penalty(apply):
    x = T([-1.0, 0.2, 0.8])
    w = T([0.5, 1.5, -1.0])
    (slope,) = torch.autograd.grad(apply(w * x).sum(), x, create_graph=True)
    return list(torch.autograd.grad(slope.square().sum(), [x, w]))


pair("008_gaussian_bump_double", "GaussianBump", probe=bump_penalty, ref=lambda x: torch.exp(-x.square()))

pair("009_signed_power", "SignedPower", harm=lambda: (T([-2.0, -0.5, 0.7]), 1.5), ref=lambda x, p: torch.where(x < 0, -((-x.clamp(max=0)) ** p), x.clamp(min=0) ** p))

pair("010_soft_threshold", "SoftThreshold", harm=lambda: (T([-1.9, 0.8, -0.1, 2.4]), T(0.5)), ref=lambda x, s: torch.relu(x - s) - torch.relu(-x - s))

pair("011_rmsnorm_eps", "RMSNorm", harm=lambda: ((R(2, 5).detach() * 1e-2).requires_grad_(), 1e-4), ref=lambda x, e: x / ((x * x).mean(-1, keepdim=True) + e).sqrt())

pair(
    "012_batchnorm_eval", "BatchNorm1d",
    harm=lambda: (R(5, 2), T([0.1, -0.3], grad=False), T([0.5, 2.0], grad=False), False),
    ref=lambda x, m, v, training, eps=1e-5: F.batch_norm(x, m.clone(), v.clone(), training=training, eps=eps),
)

pair("013_groupnorm_groups", "GroupNorm", harm=lambda: (R(2, 4, 3), R(4), 2), ref=lambda x, w, g, eps=1e-5: F.group_norm(x, g, weight=w, eps=eps))

pair("014_weight_norm_unit", "WeightNorm", harm=lambda: (R(3, 4), R(3)), ref=lambda v, g: torch.diag(g / (v * v).sum(1).sqrt()) @ v)

pair(
    "015_l2_normalize_small", "L2Normalize",
    harm=lambda: (T([[1.0, -2.0], [0.03, 0.04], [0.0, 0.0]]), 0.1),
    ref=lambda x, eps=1e-6: torch.stack([r / eps if r.detach().norm() <= eps else r / r.norm() for r in x]),
)

pair("016_avgpool_padding", "AvgPool2d", harm=lambda: (R(2, 2, 4, 3), 3, 1), ref=lambda x, k, p=0: F.avg_pool2d(x, k, 1, p, count_include_pad=False))

pair("017_global_max_ties", "GlobalMaxPool", harm=lambda: (T([[[1.0, 1.0, 0.0], [2.0, -1.0, 0.5]]]),), ref=lambda x: x.amax(-1), declared_ref=False, fd=False)

pair(
    "018_depthwise_rect", "DepthwiseConv2d",
    harm=lambda: (R(1, 2, 4, 5), R(2, 1, 3)),
    ref=lambda x, w: F.conv2d(x, w.unsqueeze(1), padding="same", groups=w.shape[0]),
)

def fir(x, h):
    k = len(h) // 2
    xp = F.pad(x, (k, k))
    return sum(h[j] * xp[:, j : j + x.shape[1]] for j in range(len(h)))


pair("019_fir_filter", "FIRFilter", harm=lambda: (R(2, 6), T([1.0, 0.0, -0.5, 0.2, 0.1], grad=False)), ref=fir)

def dft_power(x):
    n = x.shape[-1]
    angle = 2 * math.pi * torch.outer(torch.arange(n, dtype=D), torch.arange(n // 2 + 1, dtype=D)) / n
    return (x @ angle.cos()) ** 2 + (x @ angle.sin()) ** 2


pair("020_power_spectrum", "RealPower", harm=lambda: (R(2, 6),), ref=dft_power)

pair("021_grouped_query", "RepeatKV", harm=lambda: (R(1, 2, 2, 3), 3), ref=lambda x, g: torch.stack([x[:, i // g] for i in range(x.shape[1] * g)], 1))

def masked_softmax(x, m):
    e = x.exp() * m
    return e / (e.sum(-1, keepdim=True) + (~m.any(-1, keepdim=True)))


pair("022_masked_attention_rows", "MaskedSoftmax", harm=lambda: (R(2, 3), torch.tensor([[True, True, False], [False, False, False]])), ref=masked_softmax)

pair("023_embedding_negative_index", "LookupRows", harm=lambda: (R(4, 2), torch.tensor([0, -1, -1, 2])), ref=lambda t, i: torch.stack([t[int(k)] for k in i]), declared_ref=False)

def segment_softmax(x, s, n):
    same_segment = (s[:, None] == s[None, :]).to(x.dtype)
    return x.exp() / (same_segment @ x.exp())


pair("024_segment_softmax_order", "SegmentSoftmax", harm=lambda: (R(6), torch.tensor([1, 0, 2, 1, 0, 1]), 3), ref=segment_softmax)

def write_rows(base, rows, values):
    keep = torch.ones(len(base), dtype=base.dtype)
    keep[rows] = 0
    hot = F.one_hot(rows, len(base)).to(base.dtype)
    return keep[:, None] * base + hot.T @ values


pair("025_scatter_base", "WriteRows", harm=lambda: (R(4, 2), torch.tensor([1, 3]), R(2, 2)), ref=write_rows)

pair("026_masked_scatter_surplus", "FillMasked", harm=lambda: (R(4), torch.tensor([True, False, False, True]), R(4)), ref=torch.masked_scatter)

pair(
    "027_embedding_bag_sizes", "MeanBag",
    harm=lambda: (R(6, 2), torch.tensor([0, 2, 5, 2, 1, 4]), torch.tensor([0, 1, 4])),
    ref=lambda w, i, o: F.embedding_bag(i, w, o, mode="mean"),
)

def rope(x, base=10000.0):
    d = x.shape[1]
    rows = []
    for t in range(x.shape[0]):
        pairs = [torch.complex(x[t, i], x[t, i + d // 2]) * complex(math.cos(t * base ** (-2 * i / d)), math.sin(t * base ** (-2 * i / d))) for i in range(d // 2)]
        rows.append(torch.stack([p.real for p in pairs] + [p.imag for p in pairs]))
    return torch.stack(rows)


def two_bases(apply):
    x, y = R(3, 4), R(3, 4)
    w = torch.randn(3, 4, dtype=D)
    local, far = apply(x, 100.0), apply(y, 1e6)
    return list(torch.autograd.grad((local * w).sum() + (far * w).sum(), [x, y]))


pair("028_rope_shared_cache", "RotaryEmbedding", probe=two_bases, ref=rope)

def table(x, grid, values):
    out = []
    for q in x:
        k = int((grid[1:-1] <= q.detach()).sum())
        out.append(values[k] + (values[k + 1] - values[k]) * (q - grid[k]) / (grid[k + 1] - grid[k]))
    return torch.stack(out)


pair("029_interp_nonuniform", "TableLookup", harm=lambda: (T([0.1, 2.0, 3.5, 0.7]), T([0.0, 0.5, 3.0, 4.0], grad=False), R(4)), ref=table)

def bilinear(image, points):
    h, w = image.shape
    grid = torch.stack([points[:, 1] * 2 / (w - 1) - 1, points[:, 0] * 2 / (h - 1) - 1], -1)
    return F.grid_sample(image[None, None], grid[None, None], padding_mode="border", align_corners=True)[0, 0, 0]


pair("030_bilinear_border", "SampleBilinear", harm=lambda: (R(3, 4), T([[-0.6, 1.3], [1.2, 3.8], [2.7, -1.0]])), ref=bilinear)

pair("031_median_even", "Median", harm=lambda: (R(2, 6),), ref=lambda x: torch.quantile(x, 0.5, dim=-1))

def newton_sqrt(a):
    a = (a + a.T) / 2
    eye = torch.eye(len(a), dtype=a.dtype)
    y, z = a / a.diagonal().sum(), eye
    for _ in range(30):
        t = (3 * eye - z @ y) / 2
        y, z = y @ t, t @ z
    return y * a.diagonal().sum().sqrt()


pair("032_spd_sqrt_repeated", "SPDSqrt", harm=lambda: ((2 * torch.eye(3, dtype=D)).requires_grad_(),), ref=newton_sqrt)

pair("033_linear_frozen_input", "Linear", harm=lambda: (R(4, 3).detach(), R(2, 3), R(2)), ref=F.linear)

pair(
    "034_arccos_float32", "AngleBetween",
    harm=lambda: (T([1.0, 0.5, -1.0], dtype=torch.float32),),
    ref=lambda c: torch.acos(c.clamp(-1 + (1e-12 if c.dtype == D else 1e-6), 1 - (1e-12 if c.dtype == D else 1e-6))),
    fd=False,
)

def pair_energy(x, box):
    total = 0
    for i in range(len(x)):
        for j in range(i):
            r = x[i] - x[j]
            r = torch.remainder(r + box / 2, box) - box / 2
            total = total + torch.exp(-(r @ r) / 2)
    return total


pair("035_periodic_pairs", "PeriodicPairEnergy", harm=lambda: ((torch.rand(4, 2, dtype=D) * 3).requires_grad_(), 3.0), ref=pair_energy)

def box_distance(p, half):
    out = []
    for row in p:
        q = row.abs() - half
        out.append(q.max() if bool((q < 0).all()) else F.relu(q).norm())
    return torch.stack(out)


pair("036_sdf_box_inside", "BoxDistance", harm=lambda: (T([[0.2, -0.4, 0.1], [2.0, 0.1, 0.3], [-0.9, 0.1, 0.2]]), T([1.0, 0.5, 0.8], grad=False)), ref=box_distance)

def kepler(m, e):
    E = m
    for _ in range(200):
        E = m + e * torch.sin(E)
    return E


pair("037_kepler_circular", "KeplerSolve", harm=lambda: (T([0.4, 2.0, 4.5]), T([0.1, 0.3, 0.6])), ref=kepler, declared_ref=True, fd=True)

def oscillator(q, v, k, dt, steps):
    for _ in range(steps):
        v = v - dt * k * q
        q = q + dt * v
    return q, v


pair("038_leapfrog_steps", "Oscillator", harm=lambda: (R(3), R(3), R(3), 0.2, 4), ref=oscillator)

pair(
    "039_linear_recurrence_h0", "DecayScan",
    harm=lambda: (R(3, 2), R(3, 2), R(2)),
    ref=lambda a, x, h: torch.stack([a[: t + 1].prod(0) * h + sum(a[s + 1 : t + 1].prod(0) * x[s] for s in range(t + 1)) for t in range(len(x))]),
)

pair(
    "040_gru_zero_state", "GRUPointwise",
    harm=lambda: (R(2, 3), R(2, 3), R(2, 3), R(2, 3), R(2, 3)),
    ref=lambda r, z, n, u, h: torch.lerp((n + torch.sigmoid(r) * u).tanh(), h, torch.sigmoid(z)),
)

pair("041_frames_overlap", "Frames", harm=lambda: (R(2, 9), 4, 2), ref=lambda s, size, hop: torch.stack([s[:, k : k + size] for k in range(0, s.shape[1] - size + 1, hop)], 1))

def seeded(x, p, seed):
    u = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed))
    return torch.where(u >= p, x, torch.zeros_like(x)) / (1 - p)


pair("042_dropout_seed", "SeededDropout", harm=lambda: (R(4, 5), 0.5, 77), ref=seeded)

pair(
    "043_complex_gain", "ComplexGain",
    harm=lambda: (R(3, dtype=torch.complex128), R(3, dtype=torch.complex128)),
    ref=lambda z, w: torch.complex(z.real * w.real - z.imag * w.imag, z.real * w.imag + z.imag * w.real),
)

def scale_by(x, both=False):
    s = ((x * x).sum() / x.numel()) ** 0.5
    return (x / s, s) if both else x / s


pair("044_optional_stat_output", "ScaleByRMS", harm=lambda: (R(2, 3), True), ref=scale_by)

pair("045_prod_zero", "ProductDim", harm=lambda: (T([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [1.0, 2.0, 4.0]]),), ref=lambda x: x[..., 0] * x[..., 1] * x[..., 2])

def update_between(apply):
    x, scale = R(3, 2), T([0.5, 2.0], grad=False)
    y = apply(x, scale)
    scale.mul_(0.9).add_(0.3)
    return list(torch.autograd.grad(y.square().sum(), [x]))


pair("046_ema_buffer_live", "EMANormalize", probe=update_between, ref=lambda x, s: x * (1 / s.clone()))

def permuted_use(apply):
    x, w = R(2, 6, 3), torch.randn(3, 6, 2, dtype=D)
    return list(torch.autograd.grad((apply(x, 3).permute(2, 1, 0) * w).sum(), [x]))


pair("047_channel_shuffle_view", "ChannelShuffle", probe=permuted_use, ref=F.channel_shuffle)

pair(
    "048_segment_sum_dtype", "NodeSum",
    harm=lambda: (R(4, 2, dtype=torch.float32), torch.tensor([0, 1, 1, 3]), torch.tensor([1, 0, 2, 1])),
    ref=lambda x, s, t: F.one_hot(t, len(x)).to(x.dtype).T @ (F.one_hot(s, len(x)).to(x.dtype) @ x),
    fd=False,
)

pair("049_soft_quantizer_zero_point", "SoftQuantize", harm=lambda: (R(6), T(0.7), T(0.3)), ref=lambda x, s, z: x - s * torch.sin((x - z) * 2 * math.pi / s) / (2 * math.pi))

def simplex(x):
    rows = []
    for r in x:
        keep = torch.ones(len(r), dtype=torch.bool)
        while True:
            tau = (r[keep].sum() - 1) / keep.sum()
            bad = keep & (r.detach() <= tau.detach())
            if not bad.any():
                break
            keep = keep & ~bad
        rows.append(torch.where(keep, r - tau, torch.zeros_like(r)))
    return torch.stack(rows)


pair("050_simplex_projection", "ProjectSimplex", harm=lambda: (T([[2.0, -1.0, 1.5], [0.1, 0.2, 3.0], [0.2, 0.1, 0.3]]),), ref=simplex)

pair("051_optional_bias", "ScaleShift", harm=lambda: (R(3, 2), R(2), None), ref=lambda x, s, b=None: x * s + (0 if b is None else b))

pair("052_repeat_negative_dim", "RepeatAlong", harm=lambda: (R(3, 4), 2, -1), ref=lambda x, k, d: x.index_select(d, torch.arange(x.shape[d] * k) // k))

def spmm(row, col, value, x):
    n = len(x)
    return torch.zeros(n * n, dtype=x.dtype).index_add(0, row * n + col, value).view(n, n) @ x


pair("053_graph_symmetric", "SparseMatMul", harm=lambda: (torch.tensor([0, 1, 3, 0]), torch.tensor([1, 2, 0, 1]), R(4), R(4, 2)), ref=spmm)

pair("054_triangular_solve_mask", "LowerSolve", harm=lambda: ((R(3, 3).detach() + 2 * torch.eye(3, dtype=D)).requires_grad_(), R(3, 1)), ref=lambda l, b: torch.linalg.solve(l.tril(), b))

pair("055_cosine_similarity", "CosineSimilarity", harm=lambda: (R(2, 3), R(2, 3)), ref=lambda a, b: F.cosine_similarity(a, b, dim=-1))

def residual(apply):
    a, b = T([-1.0, 2.0, 7.0]), T([1.0, 2.0, 3.0])
    other = b.sin()
    total = other + apply(a)
    return list(torch.autograd.grad(total, [a, b], grad_outputs=torch.tensor([1.0, 2.0, 3.0], dtype=D)))


pair("056_relu6_inplace_grad", "ReLU6", probe=residual, ref=F.relu6)

pair("057_solve_vector", "Solve", harm=lambda: ((R(3, 3).detach() + 3 * torch.eye(3, dtype=D)).requires_grad_(), R(3)), ref=lambda a, b: torch.inverse(a) @ b)

pair("058_concat_unequal", "ConcatScaled", harm=lambda: (0.5, R(2, 1), R(2, 3), R(2, 2)), ref=lambda gain, *ts: torch.hstack(ts) * gain)

def biased(x, m):
    e = x.exp() * (m.to(x.dtype) if m.dtype == torch.bool else m.exp())
    return e / e.sum(-1, keepdim=True)


pair("059_mask_kind", "BiasedSoftmax", harm=lambda: (R(2, 3), T([[0.0, -1.0, -2.0], [-1.0, 0.0, -1.0]], grad=False)), ref=biased)

pair("060_diagonal_tall", "DiagonalSum", harm=lambda: (R(5, 2), T(1.5)), ref=lambda x, w: w * sum(x[i, i] for i in range(min(x.shape))))

right("001_recompute_mlp", "CheckpointedMLP", further=lambda: (R(2, 3).detach(), R(3, 2), R(2, 2)), ref=lambda x, a, b: ((x @ a).tanh()) @ b)

right("002_logistic_saved_output", "Logistic", further=lambda: (T([[800.0, -800.0], [0.0, 1.0]]),), ref=lambda x: (1 + torch.tanh(x / 2)) / 2)

right("003_sinc_at_zero", "UnnormalizedSinc", further=lambda: (T([[0.0, 0.0999], [0.1001, -30.0]]),), ref=lambda x: torch.sinc(x / math.pi))

right("004_norm_subgradient", "GroupLassoPenalty", further=lambda: (T([[0.0, 0.0], [1.0, -2.0]]),), ref=lambda w: torch.linalg.vector_norm(w, dim=1).sum(), fd=False)

right("005_inplace_dirty", "ReLUInPlace", further=lambda: (R(3, 2) * 1.5,), wrap=lambda apply: lambda x: apply(x.clone()))

right("006_topk_with_indices", "TopK", further=lambda: (R(4, 3), 3, 0), ref=lambda x, k, d=-1: x.sort(dim=d, descending=True).values.narrow(d, 0, k))

right(
    "007_coo_values", "COOMatVec",
    further=lambda: (torch.tensor([[1, 0, 1], [0, 0, 0]]), R(3), R(2), 2),
    ref=lambda p, a, v, r: torch.zeros(r, len(v), dtype=D).index_put((p[0], p[1]), a, accumulate=True) @ v,
)

right("008_numpy_special", "NumpyExpm1", further=lambda: (R(5),), ref=torch.expm1)

right("009_early_return", "WeightedSquares", further=lambda: (R(2, 2).detach(), R(2, 2)), ref=lambda x, w: torch.einsum("i,i,i->", x.flatten(), x.flatten(), w.flatten()) / 2)

right(
    "010_nll_none_for_labels", "SoftmaxNLL",
    further=lambda: (R(3, 4), torch.tensor([3, 3, 0]), T([0.1, 1.0, 2.0, 3.0], grad=False)),
    ref=lambda x, t, w=None: F.cross_entropy(x, t, weight=w, reduction="sum"),
)

right("011_cube_root_newton", "CubeRoot", further=lambda: (T([[-0.3, 1e6]]),), ref=lambda x: x.sign() * x.abs() ** (1 / 3))

right("012_inverse_permutation", "PermuteColumns", further=lambda: (R(2, 1, 3), torch.tensor([1, 2, 0])), ref=lambda x, p: torch.stack([x[..., int(i)] for i in p], -1))

right("013_ragged_softmax", "RaggedLogSoftmax", further=lambda: (R(5), (2, 0, 3)), ref=lambda x, ls: torch.cat([p - p.exp().sum().log() for p in x.split(list(ls)) if len(p)]))

right("014_logcumsumexp_reverse", "LogCumSumExp", further=lambda: (R(4, 2), 0), ref=lambda x, d: x.exp().cumsum(d).log())

right("015_cumprod_zeros", "CumProd", further=lambda: (T([0.0, 2.0, 0.0, 1.0, -3.0]),), ref=lambda x: torch.stack([x[..., : k + 1].prod(-1) for k in range(x.shape[-1])], -1))

right("016_sparsemax_rows", "Sparsemax", further=lambda: (T([[1.2, 0.1], [0.9, 2.0], [-3.0, 0.7]]), 0))

right("017_cholesky_symmetrised", "CholeskyFactor", further=lambda: (T([[4.0, 1.0], [0.4, 3.0]]),), ref=lambda a: torch.linalg.cholesky((a + a.T) / 2))

right("018_expm_block", "MatrixExp", further=lambda: (R(2, 2),), ref=torch.linalg.matrix_exp)

right(
    "019_complex_exp", "ComplexExp",
    further=lambda: (R(2, 2, dtype=torch.complex128),),
    ref=lambda z: torch.complex(z.real.exp() * z.imag.cos(), z.real.exp() * z.imag.sin()),
)

right("020_complex_modulus", "Modulus", further=lambda: (T([0j, 1 + 2j, -3j], dtype=torch.complex128),), ref=torch.abs, fd=False)

right("021_polar_unmaterialized", "ToPolar", further=lambda: (T([-1.0, 0.0, 3.0]), T([0.5, -2.0, 0.0])), ref=lambda x, y: ((x * x + y * y).sqrt(), torch.angle(torch.complex(x, y))))

def quadrature(a, b, n=400):
    t = (torch.arange(n, dtype=D) + 0.5) / n
    x = a[:, None] + (b - a)[:, None] * t
    m = torch.exp(-x * x).mean(1) * (b - a)
    return m + (b - a) ** 2 / (24 * n * n) * (-2 * b * torch.exp(-b * b) + 2 * a * torch.exp(-a * a))


right("022_definite_integral", "GaussianIntegral", further=lambda: (R(3), R(3)), ref=quadrature)

right("023_bessel_j0", "BesselJ0", further=lambda: (T([[1.0], [-9.0]]),), ref=lambda x: (torch.cos(x[..., None] * torch.sin((torch.arange(64, dtype=D) + 0.5) * math.pi / 64))).mean(-1))

right("024_log1mexp_branches", "Log1mExp", further=lambda: (T([[0.1, 40.0, 800.0]]),), ref=lambda x: torch.log(-torch.expm1(-x)))

right("025_call_counter", "CountedTanh", further=lambda: (R(4),), ref=lambda x: 2 * torch.sigmoid(2 * x) - 1)

def rotate(w, p):
    z = torch.zeros_like(w[:, 0])
    k = torch.stack([z, -w[:, 2], w[:, 1], w[:, 2], z, -w[:, 0], -w[:, 1], w[:, 0], z], 1).view(-1, 3, 3)
    return (torch.linalg.matrix_exp(k) @ p[..., None])[..., 0]


right("026_rotation_vector", "RotateByVector", further=lambda: (T([[0.05, 0.05, -0.06], [0.08, 0.06, 0.02], [0.0, 0.0, 0.0]]), R(3, 3)), ref=rotate)

right(
    "027_overlap_add", "OverlapAdd",
    further=lambda: (R(1, 3, 2), 3),
    ref=lambda fr, hop: sum(F.pad(fr[:, i], (i * hop, (fr.shape[1] - 1 - i) * hop)) for i in range(fr.shape[1])),
)

def masked_lse(x, m, empty=0.0):
    return torch.stack([torch.log(r[k].exp().sum()) if k.any() else r.new_tensor(empty) for r, k in zip(x, m)])


right("028_logsumexp_masked", "MaskedLogSumExp", further=lambda: (R(2, 4), torch.tensor([[False, True, False, True], [False] * 4]), -5.0), ref=masked_lse)

right(
    "029_chunked_attention", "ChunkedAttention",
    further=lambda: (R(2, 3), R(4, 3), R(4, 1), 3),
    ref=lambda q, k, v, chunk=2: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
)

def brute_partition(u, t):
    import itertools

    scores = []
    for path in itertools.product(range(u.shape[1]), repeat=u.shape[0]):
        s = sum(u[i, k] for i, k in enumerate(path))
        scores.append(s + sum(t[a, b] for a, b in zip(path, path[1:])))
    return torch.stack(scores).exp().sum().log()


right("030_crf_partition", "ChainLogPartition", further=lambda: (R(1, 2), R(2, 2)), ref=brute_partition)

right("031_aten_convolution_backward", "StridedGroupConv", further=lambda: (R(2, 1, 3, 3), R(2, 1, 2, 2), None, 1, 0, 1), ref=lambda x, w, b, s, p, g: F.conv2d(x, w, b, s, p, groups=g))

right("032_packed_mask", "PackedReLU", further=lambda: (R(2, 4, 2),), ref=F.relu)

right("033_broadcast_sum_to_size", "SafeDivide", further=lambda: (R(3), T(-2.5)), ref=lambda a, b: a * b.reciprocal())

def pendulum(q, v, c):
    h = v * (1 - 0.05 * c) - 0.05 * torch.sin(q)
    q = q + h / 10
    return q, h * (1 - 0.05 * c) - 0.05 * torch.sin(q)


right("034_func_vjp", "PendulumStep", further=lambda: (R(2, 2), R(2, 2), T(-0.5)), ref=pendulum)

right("035_vmap_rule", "OuterUpdate", further=lambda: (R(3, 1), R(3), R(1), -2.0), ref=lambda m, u, v, r: m + torch.einsum("i,j->ij", u, v) * r)

right("036_wrap_angle", "WrapAngle", further=lambda: (T([[1.3, -0.2]]), 1.0), ref=lambda a, p: (torch.remainder(a, p), torch.floor(a / p)))

right("037_bucket_price", "BucketPrice", further=lambda: (R(2, 3), T([0.1], grad=False), R(2)))

def noisy(x, gain, sigma, seed):
    n = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed), dtype=D)
    return gain * (x + sigma * n * x)


right("038_replayed_noise", "NoisyGain", further=lambda: (R(4), T(-0.5), 1.0, 7), ref=noisy)

right("039_amax_shared", "SharedMax", further=lambda: (T([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]).t(), 0, True), ref=lambda x, d, k=False: x.amax(d, keepdim=k), fd=False)

right("040_narrow_view", "TailView", further=lambda: (R(4), 4), ref=lambda x, n: x[x.shape[0] - n :] * 1.0)


def prove_pair(name, cls, harm, ref, probe, fd, declared_ref):
    problems = []
    folder = HERE / "pairs" / name
    for which in ("broken", "mended"):
        module, function, example = load(folder / f"{which}.py", cls)
        ok = gradcheck(function.apply, example)
        if which == "mended" or HIDDEN[name]:
            if not ok:
                problems.append(f"{which}: gradcheck fails at the declared inputs ({gradcheck.why})")
            elif ref is not None and declared_ref:
                got, want = gradients(function.apply, example), gradients(ref, example)
                if not same(got[0], want[0]):
                    problems.append(f"{which}: forward differs from the reference at the declared inputs")
                if not same(got[1], want[1]):
                    problems.append(f"{which}: gradient differs from the reference at the declared inputs")
        elif ok:
            problems.append("broken: not hidden, but gradcheck passes")
        module, function, example = load(folder / f"{which}.py", cls)
        if probe is not None:
            torch.manual_seed(3)
            want = probe(ref)
            torch.manual_seed(3)
            try:
                agrees = same(probe(function.apply), want)
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
                if which == "mended":
                    problems.append(f"mended raises: {error}")
                agrees = False
        elif ref is None:
            agrees = gradcheck(function.apply, harm)
        else:
            values, want = gradients(ref, harm)
            try:
                got_values, got = gradients(function.apply, harm)
                if not same(got_values, values):
                    problems.append(f"{which}: forward differs from the reference at the harmful inputs")
                agrees = same(got, want)
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
                if which == "mended":
                    problems.append(f"mended raises: {error}")
                torch.manual_seed(7)
                function.apply(*harm())  # forward itself must accept the harmful inputs
                agrees = False
        if which == "broken" and agrees:
            problems.append("broken: right at the harmful inputs")
        if which == "mended" and not agrees:
            problems.append("mended: wrong at the harmful inputs")
        if which == "mended" and fd and harm is not None and not gradcheck(function.apply, harm):
            problems.append(f"mended: gradcheck fails at the harmful inputs ({gradcheck.why})")
    return problems


def prove_right(name, cls, further, ref, fd, wrap):
    problems = []
    module, function, example = load(HERE / "right" / f"{name}.py", cls)
    fn = wrap(function.apply) if wrap else function.apply
    for label, make in (("declared", example), ("further", further)):
        if fd and not gradcheck(fn, make):
            problems.append(f"gradcheck fails at the {label} inputs ({gradcheck.why})")
        if ref is not None:
            got, want = gradients(function.apply, make), gradients(ref, make)
            if not same(got[0], want[0]):
                problems.append(f"forward differs from the reference at the {label} inputs")
            if not same(got[1], want[1]):
                problems.append(f"gradient differs from the reference at the {label} inputs")
        if ref is None and not fd:
            problems.append("nothing was proved")
    return problems


def main():
    wanted = sys.argv[1:]
    proven = failed = 0
    for prove, entries in ((prove_pair, PAIRS), (prove_right, RIGHTS)):
        for entry in entries:
            if wanted and not any(w in entry[0] for w in wanted):
                continue
            try:
                problems = prove(*entry)
            except Exception as error:
                problems = [f"{type(error).__name__}: {error}"]
            if problems:
                failed += 1
                print(f"FAILED {entry[0]}: " + "; ".join(problems))
            else:
                proven += 1
    print(f"{proven} proven, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
