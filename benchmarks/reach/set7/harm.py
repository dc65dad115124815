"""Proof, in plain PyTorch, of what manifest.json says. Run: OMP_NUM_THREADS=1 python harm.py [name ...]

For each case the gradient is compared with central differences of the forward in float64 (default) or with autograd through a
plain function (`ref`). The whole check also covers: a non-contiguous grad_output, no writing into grad_output, each input alone,
each output alone, and double backward (right, or refused).
"""
import importlib.util
import json
import pathlib
import sys

sys.dont_write_bytecode = True
import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
HERE = pathlib.Path(__file__).parent
D = torch.float64
CASES, RIGHT = {}, {}


def R(*shape, s=1.0, b=0.0, grad=True):
    return (torch.randn(shape, dtype=D) * s + b).requires_grad_(grad)


def U(*shape, lo=0.0, hi=1.0, grad=True):
    return (torch.rand(shape, dtype=D) * (hi - lo) + lo).requires_grad_(grad)


def T(data, grad=False):
    t = torch.tensor(data)
    return (t.double() if t.is_floating_point() else t).requires_grad_(grad)


def load(path):
    spec = importlib.util.spec_from_file_location("gs7_" + path.stem + "_" + path.parent.name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wide(a):
    if isinstance(a, (list, tuple)):
        return type(a)(wide(v) for v in a)
    if not isinstance(a, torch.Tensor):
        return a
    d = a.detach()
    d = d.to(torch.complex128) if d.is_complex() else d.double() if d.is_floating_point() else d
    if d.data_ptr() == a.data_ptr():
        d = a.detach().clone()
    return d.requires_grad_(a.requires_grad)


def leaves(args):
    out = []
    for a in args:
        if isinstance(a, (list, tuple)):
            out += leaves(a)
        elif isinstance(a, torch.Tensor):
            out.append(a)
    return out


def wanted(args):
    return [a for a in leaves(args) if a.requires_grad]


def outputs(call, args, with_grad=True):
    torch.manual_seed(5)
    # buffers that the forward may write to are given as copies
    args = copy_buffers(args)
    with torch.set_grad_enabled(with_grad):
        y = call(*args)
    ys = list(y) if isinstance(y, (tuple, list)) else [y]
    return [v for v in ys if isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex())]


def copy_buffers(args):
    return tuple(
        copy_buffers(a) if isinstance(a, tuple) else [copy_buffers((v,))[0] for v in a] if isinstance(a, list)
        else a.clone() if isinstance(a, torch.Tensor) and not a.requires_grad and a.is_contiguous() else a
        for a in args
    )


def dot(ys, gs):
    return sum(float((y.detach().conj() * g).real.sum() if y.is_complex() else (y.detach() * g).sum()) for y, g in zip(ys, gs))


def cotangents(ys):
    gen = torch.Generator().manual_seed(11)
    return [torch.randn(y.shape, dtype=y.dtype, generator=gen) if y.requires_grad else torch.zeros_like(y) for y in ys]


def numeric(call, args, gs, h):
    res = []
    for a in wanted(args):
        g = torch.zeros_like(a, memory_format=torch.contiguous_format).detach()
        base = a.detach()
        saved = base.clone()
        for idx in np.ndindex(*a.shape):
            parts = (1.0, 1j) if a.is_complex() else (1.0,)
            for part in parts:
                step = h * max(1.0, abs(saved[idx].item()))
                with torch.no_grad():
                    base[idx] = saved[idx] + step * part
                    up = dot(outputs(call, args, False), gs)
                    base[idx] = saved[idx] - step * part
                    down = dot(outputs(call, args, False), gs)
                    base[idx] = saved[idx]
                    g[idx] += part * (up - down) / (2 * step)
        res.append(g)
    return res


def backward(ys, ins, gs, **kw):
    pairs = [(y, g) for y, g in zip(ys, gs) if y.requires_grad]
    return torch.autograd.grad([p[0] for p in pairs], ins, [p[1] for p in pairs], allow_unused=True, **kw)


def strided(g):
    if g.dim() == 0:
        return g.expand(1).squeeze(0)
    big = torch.zeros(*[2 * n for n in g.shape[::-1]], dtype=g.dtype)
    view = big[tuple(slice(None, None, 2) for _ in g.shape)].permute(*range(g.dim() - 1, -1, -1))
    view.copy_(g)
    return view


def same(a, b, tol):
    if a is None:
        return bool((b.abs() <= tol).all())
    if a.shape != b.shape:
        return False
    a, b = a.detach().to(b.dtype), b.detach()
    return bool(((a - b).abs() <= tol * (1 + b.abs().max() if b.numel() else 1)).all())


def reference(call, ref, args, gs, h):
    if ref is None:
        return numeric(call, args, gs, h)
    ins = wanted(args)
    ys = outputs(ref, args)
    got = torch.autograd.grad(ys, ins, [g if y.requires_grad else None for y, g in zip(ys, gs)], allow_unused=True)
    return [torch.zeros_like(a) if v is None else v for a, v in zip(ins, got)]


def first(call, args, ref=None, h=1e-5, tol=2e-6):
    """None if the first derivative is right, else what is wrong with it."""
    ys = outputs(call, args)
    gs = cotangents(ys)
    if not any(y.requires_grad for y in ys):
        return "no output requires grad"
    try:
        got = backward(ys, wanted(args), gs)
    except (RuntimeError, ValueError, IndexError, TypeError) as err:
        return "raises " + str(err)[:60]
    want = reference(call, ref, args, gs, h)
    for i, (a, b) in enumerate(zip(got, want)):
        if not same(a, b, tol):
            if a is not None and not torch.isfinite(a).all():
                return "NOTFINITE input %d" % i
            gap = "None" if a is None else "%.3g" % float((a - b).abs().max()) if a.shape == b.shape else "shape"
            return "input %d differs by %s" % (i, gap)
    return None


def whole(call, args, ref=None, h=1e-5, tol=2e-6, alone=True, double=True):
    """None if all is right: layouts, patterns of requires_grad, single outputs, double backward."""
    bad = first(call, args, ref, h, tol)
    if bad:
        return bad
    ins = wanted(args)
    ys = outputs(call, args)
    gs = cotangents(ys)
    base = backward(ys, ins, gs)
    ys = outputs(call, args)
    odd = [strided(g) for g in gs]
    kept = [g.clone() for g in odd]
    for a, b in zip(backward(ys, ins, odd), base):
        if (a is None) != (b is None) or (a is not None and not same(a, b, 1e-9)):
            return "non-contiguous grad_output"
    if any(not torch.equal(a, b) for a, b in zip(odd, kept)):
        return "grad_output was written to"
    ys = outputs(call, args)
    got = torch.autograd.grad(sum(y.sum() if not y.is_complex() else y.real.sum() for y in ys if y.requires_grad), ins, allow_unused=True)
    ones = backward(outputs(call, args), ins, [torch.ones_like(y) for y in ys])
    for a, b in zip(got, ones):
        if a is not None and not same(a, b, 1e-9):
            return "expanded grad_output"
    if alone and len(ins) > 1:
        for i, only in enumerate(ins):
            for a in ins:
                a.requires_grad_(a is only)
            try:
                ys = outputs(call, args)
                v = backward(ys, [only], gs)[0] if any(y.requires_grad for y in ys) else None
            except Exception as err:
                return "input %d alone raises %s" % (i, str(err)[:60])
            finally:
                for a in ins:
                    a.requires_grad_(True)
            if (v is None) != (base[i] is None) or (v is not None and not same(v, base[i], 1e-9)):
                return "input %d alone" % i
    if alone and sum(y.requires_grad for y in ys) > 1:
        total = [0] * len(ins)
        for k in range(len(ys)):
            ys = outputs(call, args)
            if not ys[k].requires_grad:
                continue
            for i, v in enumerate(torch.autograd.grad(ys[k], ins, gs[k], allow_unused=True)):
                total[i] = total[i] + (0 if v is None else v)
        for i, b in enumerate(base):
            if b is not None and not (torch.is_tensor(total[i]) and same(total[i], b, 1e-8)):
                return "single outputs"
    if double:
        bad = second(call, args)
        if bad:
            return bad
    return None


def refused(tensors):
    """True if the graph holds the node with which once_differentiable refuses a second derivative."""
    todo, seen = [t.grad_fn for t in tensors], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name().split("::")[-1] in ("Error", "DelayedError"):
            return True
        todo += [n for n, _ in node.next_functions]
    return False


def second(call, args, h=1e-4, tol=2e-5):
    ins = wanted(args)
    probe = outputs(call, args)
    gs = [g.requires_grad_(y.requires_grad) for g, y in zip(cotangents(probe), probe)]

    def grads():
        ys = outputs(call, args)
        return [v for v in backward(ys, ins, gs, create_graph=True) if v is not None]

    vs = grads()
    live = [v for v in vs if v.requires_grad]
    gen = torch.Generator().manual_seed(3)
    cs = [torch.randn(v.shape, dtype=v.dtype, generator=gen) for v in vs]
    if live and not refused(live):
        every = ins + [g for g in gs if g.requires_grad]
        try:
            got = torch.autograd.grad(live, every, [c for v, c in zip(vs, cs) if v.requires_grad], allow_unused=True)
        except RuntimeError as err:
            return None if "once_differentiable" in str(err) else "double backward raises " + str(err)[:80]
        for k, (a, v) in enumerate(zip(every, got)):
            base = a.detach()
            want = torch.zeros_like(base, memory_format=torch.contiguous_format)
            for idx in np.ndindex(*base.shape):
                for part in (1.0, 1j) if base.is_complex() else (1.0,):
                    old = base[idx].clone()
                    base[idx] = old + h * part
                    up = dot(grads(), cs)
                    base[idx] = old - h * part
                    down = dot(grads(), cs)
                    base[idx] = old
                    want[idx] += part * (up - down) / (2 * h)
            if not same(v, want, tol):
                return "double backward of %d" % k
    return None


def C(name, cls=None, other=(), ref=None, call=None, prove=None, **kw):
    """`prove(module)`: True if right in the situation that matters, False if not; for bugs that inputs alone do not show."""
    CASES[name] = dict(cls=cls, other=other, ref=ref, call=call, prove=prove, kw=kw)


def G(name, cls=None, other=(), ref=None, call=None, prove=None, **kw):
    RIGHT[name] = dict(cls=cls, other=other, ref=ref, call=call, prove=prove, kw=kw)


def caller(case, module):
    if case["call"]:
        return lambda *a: case["call"](module, *a)
    target = getattr(module, case["cls"])
    return target.apply if hasattr(target, "apply") else target


def declared(case, module, seed=1):
    torch.manual_seed(seed)
    key = case["cls"]
    assert list(module.gradsmith_inputs) == [key], list(module.gradsmith_inputs)
    assert callable(getattr(module, key)), key
    return module.gradsmith_inputs[key]()


def narrow_ok(case, module):
    """In the declared dtype itself the call works and its gradient is near that in float64."""
    call, args = caller(case, module), declared(case, module)
    ys = outputs(call, args)
    low = backward(ys, wanted(args), [g.to(y.dtype) for g, y in zip(cotangents([v.to(torch.complex128 if v.is_complex() else D) for v in ys]), ys)])
    for a, v in zip(wanted(args), low):
        if v is not None and (v.shape != a.shape or v.dtype != a.dtype or not torch.isfinite(v).all()):
            return "narrow dtype"
    return None



C("001_softmax_focal", cls="SoftmaxFocalLoss", other=[lambda: (R(6, 4), T([0, -100, 1, 2, -100, 0]), 2.0, -100)])
C("002_embedding_bag_mean", cls="EmbeddingBagMean", other=[lambda: (R(6, 3), T([1, 4, 2, 0, 4, 3, 3]), T([0, 2, 2, 5])), lambda: (R(6, 3), T([1, 4, 2, 0]), T([0, 0, 3]))])
C("003_segment_max", cls="SegmentMax", other=[lambda: (R(7, 2), T([0, 0, 1, 3, 3, 3, 1]), 5), lambda: (R(3, 2), T([1, 1, 0]), 3)])
C("004_sample_1d", cls="BorderSample1d", other=[lambda: (R(2, 3, 6), T([[-1.5, 0.3, 7.2], [2.6, 5.9, 4.1]], True))])
C("005_partial_rotary", cls="PartialRotary", other=[lambda: (R(1, 2, 3, 8), 4, 10000.0)])
C("006_fused_layer_norm", cls="FusedLayerNorm", other=[lambda: (R(2, 3, 5), R(5), R(5), 1e-5)])
C("007_batch_norm_2d", cls="BatchNorm2dFunction", other=[lambda: (R(2, 3, 2, 2), R(3), R(3), R(3).detach(), T([1.0, 0.5, 2.0]), False, 1e-5)])
C("008_sparsemax", cls="Sparsemax", other=[lambda: (R(3, 5),), lambda: (R(2, 2, 4),)])
C("009_soft_dtw", cls="SoftDTW", other=[lambda: (R(3, 4), 0.3)])
C("010_chamfer", cls="ChamferDistance", other=[lambda: (R(2, 3, 2), R(2, 5, 2))])
C("011_max_pool_1d", cls="MaxPool1d", other=[lambda: (R(2, 2, 9), 3, 1)])
C("012_strided_conv_1d", cls="StridedConv1d", other=[lambda: (R(2, 2, 8), R(3, 2, 3), 2, 1), lambda: (R(1, 2, 9), R(2, 2, 2), 3, 0)])
C("013_fir_blur_kernel", cls="FIRFilter2d", other=[lambda: (R(1, 2, 4, 4), R(3, 3).detach())])
C("014_rfft_power_loss", cls="SpectralPowerLoss", other=[lambda: (R(2, 7), R(4)), lambda: (R(9), R(5))])
C("015_all_pole_filter", cls="AllPole", other=[lambda: (R(2, 6), T([2.0, -0.6, 0.2], True)), lambda: (R(5), T([-0.5, 0.1], True))])
C("016_ema_scan", cls="EMAScan", other=[lambda: (R(2, 4, 3), U(3), R(2, 3)), lambda: (R(2, 1, 2), U(2), R(2, 2).detach())])
C("017_packed_rnn", cls="PackedTanhRNN", other=[lambda: (R(4, 3, 2), R(2, 2), T([4, 2, 3])), lambda: (R(3, 2, 2), R(2, 2), T([0, 2]))])
C("018_forget_pool", cls="ForgetPool", other=[lambda: (R(4, 2), U(4, 2), True)])
C("019_selective_scan", cls="SelectiveScan", other=[lambda: (R(3, 2), U(3, 2), R(2, 2), R(3, 2), R(3, 2), False)])
C("020_soft_fake_quant", cls="SoftFakeQuant", other=[lambda: (R(3, 3), U(3, lo=0.5, hi=1.5), 1), lambda: (R(2, 3, 3), U(3, lo=0.5, hi=1.5), -1)])
C("021_groupwise_dequant_linear", cls="QuantLinear", other=[lambda: (R(3, 8), torch.randint(-8, 8, (4, 8), dtype=torch.int8), U(4, 2, grad=False), 4)])
C("022_graph_propagate", cls="Propagate", other=[lambda: (R(4, 2), T([[0, 1, 2, 3, 0], [1, 2, 3, 3, 2]]), U(5)), lambda: (R(4, 2), T([[0, 1, 1, 2], [1, 0, 2, 1]]), U(4))])
C("023_spd_matrix_log", cls="SPDLog", other=[lambda: ((2 * torch.eye(3, dtype=D)).requires_grad_(),), lambda: (torch.diag(T([1.0, 1.0, 3.0])).requires_grad_(),)])
C("024_kabsch_rotation", cls="ProcrustesRotation", other=[lambda: ((torch.diag(T([3.0, 2.0, -1.0])) + 0.2 * torch.randn(2, 3, 3, dtype=D)).requires_grad_(),)])
C("025_quaternion_normalise", cls="UnitQuaternion", other=[lambda: (R(5, 4),)])
C("026_axis_angle_matrix", cls="AxisAngleToMatrix", other=[lambda: (torch.zeros(2, 3, dtype=D, requires_grad=True),), lambda: (T([[0.3, -0.2, 0.5], [0.0, 0.0, 0.0]], True),)], h=1e-4)
C("027_deep_equilibrium", cls="Equilibrium", other=[lambda: (R(2, 3, s=0.05), (0.93 * torch.linalg.qr(torch.randn(3, 3, dtype=D))[0]).requires_grad_())], tol=1e-5)
C("028_leapfrog", cls="Leapfrog", other=[lambda: (R(3), R(3), U(3), 0.3, 4)])
C("029_heat_step", cls="HeatStep", other=[lambda: (R(2, 5), 0.2, "reflect"), lambda: (R(2, 3), 0.2, "reflect")])
C("030_causal_attention", cls="CausalAttention", other=[lambda: (R(2, 2, 3), R(2, 5, 3), R(2, 5, 2)), lambda: (R(1, 3), R(4, 3), R(4, 3))])
C("031_grouped_query", cls="GroupedQueryAttention", other=[lambda: (R(1, 4, 2, 2), R(1, 2, 3, 2), R(1, 2, 3, 2), 0.7)])
C("032_volume_render", cls="VolumeRender", other=[lambda: (U(2, 3), U(2, 3, 3), U(2, 3, grad=False), T([1.0, 1.0, 1.0])), lambda: (U(1, 3), U(1, 3, 3), U(1, 3, grad=False), U(3))])
def _spectral(m):
    layer = m.SpectralLinear().double()
    x = torch.randn(5, 4, dtype=D)
    y = layer(x)
    u, v = layer.u.clone(), layer.v.clone()
    layer(x)
    g = torch.randn_like(y)
    got, = torch.autograd.grad(y, layer.weight, g)
    want, = torch.autograd.grad(x @ (layer.weight / torch.dot(u, layer.weight @ v)).t(), layer.weight, g)
    return torch.allclose(got, want)


C("033_spectral_linear", cls="DivideBySigma", other=[], prove=_spectral)
def _dct(m):
    ok = True
    for norm in (None, "ortho", None):
        ok = ok and first(m.DCT2.apply, (R(2, 7), norm)) is None
    return ok


C("034_dct_transform", cls="DCT2", other=[], prove=_dct)
def _polar(m):
    x, y = R(4), R(4)
    got = torch.autograd.grad(m.ToPolar.apply(x, y)[1].sum(), (x, y), allow_unused=True)
    want = torch.autograd.grad(torch.atan2(y, x).sum(), (x, y))
    return all(a is not None and torch.allclose(a, b) for a, b in zip(got, want))


C("035_to_polar", cls="ToPolar", other=[], prove=_polar, pattern=True)
def _bitfit(m):
    x, w, b = R(4, 3), R(2, 3).detach(), R(2)
    got = torch.autograd.grad(m.LinearFunction.apply(x, w, b).sum(), b, allow_unused=True)[0]
    return got is not None and torch.allclose(got, torch.full_like(b, 4.0))


C("036_linear_function", cls="LinearFunction", other=[], prove=_bitfit, pattern=True)
C("037_inplace_leaky_relu", cls="InplaceLeaky", call=lambda m, x, s, i: m.InplaceLeaky.apply(x * 1, s, i), other=[lambda: (R(3, 4), -0.3, False), lambda: (R(3, 4), -0.3, True)])
C("038_pooled_sequences", cls="mean_pool", other=[lambda: ([R(4, 2), R(2, 2), R(5, 2)], 1.0)])
C("039_channel_mix", cls="ChannelMix", other=[lambda: (torch.randn(2, 2, 2, dtype=torch.complex128, requires_grad=True), torch.randn(2, 2, 2, dtype=torch.complex128, requires_grad=True))])
C("040_palette_lookup", cls="PaletteLookup", other=[lambda: (R(120, 3), torch.tensor([[3, 119], [100, 90]], dtype=torch.uint8))])
C("041_take_flat", cls="TakeFlat", other=[lambda: (torch.randn(4, 3, dtype=D).t().requires_grad_(), T([[0, 5, 5], [11, 2, 7]]))])
C("042_scaled_linear", cls="ScaledLinear", other=[lambda: (R(4, 3), R(2, 3), None, R(2))])
C("043_product_pool", cls="ProductPool", other=[lambda: (T([[1.0, 0.0, 2.0], [0.5, -1.0, 3.0]], True), 1), lambda: (T([[1.0, 0.0, 2.0], [0.0, -1.0, 3.0]], True), -2)])
C("044_memory_swish", cls="MemorySwish", other=[], gradgrad=True, prove=lambda m: second(m.MemorySwish.apply, (R(3, 2), R(2))) is None)
def _retained(m):
    x, t = R(5, 3), T([0, 2, 1, 1, 0])
    y = m.CrossEntropy.apply(x, t)
    want, = torch.autograd.grad(F.cross_entropy(x, t), x)
    a, = torch.autograd.grad(y, x, retain_graph=True)
    b, = torch.autograd.grad(y, x)
    return torch.allclose(a, want) and torch.allclose(b, want)


C("045_cross_entropy", cls="CrossEntropy", other=[], prove=_retained)
C("046_channel_shuffle", cls="ChannelShuffle", other=[lambda: (R(2, 6, 2), 2), lambda: (R(1, 8), 4)])
C("047_chunked_linear_loss", cls="ChunkedLinearCrossEntropy", other=[lambda: (R(7, 3), R(4, 3), torch.randint(0, 4, (7,)), 3)])
C("048_crf_partition", cls="CRFPartition", other=[lambda: (R(3, 2), R(2, 2)), lambda: (R(6, 3), R(3, 3))])
C("049_switched_pair_energy", cls="SwitchedLennardJones", other=[lambda: (U(5, lo=1.3, hi=2.4), 1.2, 2.5), lambda: (T([[1.0, 1.6], [3.0, 2.0]], True), 1.5, 2.5)])
C("050_gaussian_crps", cls="GaussianCRPS", other=[lambda: (R(4), U(4, lo=0.2, hi=2.0), R(4)), lambda: (R(2, 2), U(2, 2, lo=0.2, hi=2.0), R(2, 2))])
G("001_clamp_with_bounds", cls="ClampBetween", other=[lambda: (R(5, 2), T([-1.0, 0.1], True), T([0.0, 0.2], True)), lambda: (R(2, 3, 2, s=3.0), T([-1.0, -2.0], True), T([1.0, 2.0], True))])
G("002_inplace_relu_six", cls="InplaceReLU6", call=lambda m, x: m.InplaceReLU6.apply(x), other=[lambda: (R(5, s=8.0),), lambda: (R(2, 2, 3, s=6.0),)])
G("003_dirty_scale_and_count", cls="DirtyExp", call=lambda m, x, s: m.safe_exp(x, s), other=[lambda: (R(3, 2), 0.5), lambda: (R(4, s=2.0), -0.2), lambda: (R(2, 2), 9.0)])
G("004_top_k_with_indices", cls="TopKGate", other=[lambda: (R(3, 5), 5), lambda: (R(2, 4), 1), lambda: (R(1, 3), 2)])
G("005_round_straight_through", cls="RoundSTE", ref=lambda m, x, s: x * 1, other=[lambda: (R(5), 1.0), lambda: (R(2, 2, s=4.0), 2.0)])
G("006_spike_fast_sigmoid", cls="Spike", ref=lambda m, u, a: u / (1 + a * u.abs()), other=[lambda: (R(5), 1.0), lambda: (R(2, 3), 25.0)])
G("007_gradient_reversal", cls="GradientReversal", ref=lambda m, x, s: -s * x, other=[lambda: (R(5), 1.0), lambda: (R(2, 2), 0.0)])
def Z(*shape):
    return torch.randn(*shape, dtype=torch.complex128).requires_grad_()


G("008_complex_mod_relu", cls="ModReLU", other=[lambda: (Z(3, 2), T([0.4, -0.9], True)), lambda: (Z(2, 2, 3), R(3)), lambda: (Z(4), T([-5.0, 0.1, 0.2, -0.3], True))])
G("009_complex_power_spectrum", cls="LogPower", other=[lambda: (Z(5), 0.3), lambda: (R(2, 3), 0.1), lambda: (Z(2, 2), 2.0)])
G("010_checkpointed_mlp", cls="RecomputedBlock", other=[lambda: (R(2, 2), R(2, 3), R(3, 2)), lambda: (R(2, 2, 3), R(3, 1), R(1, 3)), lambda: (R(4, 2).detach(), R(2, 2), R(2, 2))])
G("011_reversible_coupling", cls="AdditiveCoupling", other=[lambda: (R(2, 2), R(2, 2), R(2, 2), R(2, 2)), lambda: (R(1, 3), R(1, 3), R(3, 3), R(3, 3)), lambda: (R(5, 1), R(5, 1), R(1, 1), R(1, 1))])
G("012_kepler_newton", cls="EccentricAnomaly", other=[lambda: (R(4, s=3.0), U(4, hi=0.9)), lambda: (R(2, 2), U(2, 2, hi=0.1)), lambda: (T([10.0, -7.0], True), T([0.5, 0.6], True))])
G("013_numpy_bessel", cls="LogBesselI0", other=[lambda: (R(5, s=4.0),), lambda: (T([0.0, 30.0, -100.0], True),), lambda: (U(2, 2, hi=0.1),)])
G("014_seeded_dropout", cls="SeededDropout", other=[lambda: (R(10), 0.7, True), lambda: (R(3, 2), 0.7, False), lambda: (R(2, 2, 2), 0.0, True)])
G("015_reparameterised_laplace", cls="SampleLaplace", other=[lambda: (R(5), R(5)), lambda: (R(2, 2), U(2, 2)), lambda: (R(1), R(1))])
def B(data):
    return torch.tensor(data).bool()


def _lse(m, x, mask):
    y = x.masked_fill(~mask, float("-inf")).logsumexp(-1)
    return torch.where(mask.any(-1), y, torch.zeros_like(y))


def _lse_call(m, x, mask):
    y = m.MaskedLogSumExp.apply(x, mask)
    return torch.where(mask.any(-1), y, torch.zeros_like(y))


G("016_masked_logsumexp", cls="MaskedLogSumExp", call=_lse_call, other=[lambda: (R(2, 3), B([[0, 1, 1], [0, 0, 0]])), lambda: (R(4), B([1, 1, 1, 1])), lambda: (R(2, 2, s=300.0), B([[1, 1], [0, 1]]))])
G("017_safe_norm", cls="SafeNorm", other=[lambda: (R(3, 2),), lambda: (R(5),), lambda: (R(2, 2, 3),)], prove=lambda m: (lambda x: bool((torch.autograd.grad(m.SafeNorm.apply(x).sum(), x)[0] == 0).all()))(torch.zeros(2, 3, dtype=D, requires_grad=True)))
G("018_even_split_max", cls="EvenMax", ref=lambda m, x: x.amax(-1), double=False, other=[lambda: (T([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]], True),), lambda: (R(3),), lambda: (R(2, 2, 2),)])
G("019_sorted_with_order", cls="SortRows", other=[lambda: (R(2, 7), True), lambda: (R(6), False), lambda: (R(2, 2, 3), True)])
G("020_running_maximum", cls="RunningMax", other=[lambda: (R(8, 2),), lambda: (R(1, 4),), lambda: (R(3, 1),)])
G("021_nested_softplus", cls="SoftplusTwice", other=[lambda: (R(5, s=10.0), 1.0), lambda: (R(2, 2), 0.1), lambda: (R(3), 50.0)], h=1e-6, tol=1e-5)
G("022_cosine_in_double", cls="CosineDouble", other=[lambda: (R(2, 5), R(2, 5)), lambda: (R(4), R(4)), lambda: (R(2, 2, 2, s=100.0), R(2, 2, 2, s=0.1))])
G("023_custom_op_geglu", cls="reglu_square", other=[lambda: (R(2, 4), None), lambda: (R(2, 2, 4), R(4)), lambda: (R(6), R(6))])
G("024_custom_op_ragged_softmax", cls="ragged_softmax", other=[lambda: (R(5), T([0, 0, 5, 5])), lambda: (R(4), T([0, 1, 2, 4])), lambda: (R(3), T([0, 3]))])
G("025_lazy_none_grads", cls="SinCos", other=[lambda: (R(5),), lambda: (R(2, 2, s=9.0),), lambda: (R(),)])
G("026_resize_like_reference", cls="PoolTo", other=[lambda: (R(2, 8), R(2, 2)), lambda: (R(1, 4), R(1, 4)), lambda: (R(3, 5), R(3, 1).detach())])
G("027_hard_vote", cls="HardVote", other=[lambda: (R(3, 4),), lambda: (R(7),), lambda: (R(2, 2, 3),)])
G("028_broadcast_fma", cls="FusedMulAdd", other=[lambda: (R(3), R(2, 3), R(1)), lambda: (R(2, 2), R(2, 2), R(2, 2)), lambda: (R(), R(3), R(2, 1))])
G("029_leading_eigenvalue", cls="LeadingEigenvalue", other=[lambda: (R(3, 3), 1e-13), lambda: (R(5, 5), 1e-13), lambda: (R(1, 1), 1e-13)])
G("030_conjugate_gradient_solve", cls="RidgeSolve", other=[lambda: (R(2, 4), R(4), 0.3), lambda: (R(4, 2), R(2), 2.0), lambda: (R(1, 1), R(1), 0.1)])
G("031_matrix_exponential_block", cls="MatrixExp", other=[lambda: (R(2, 2, 2),), lambda: (torch.zeros(3, 3, dtype=D, requires_grad=True),), lambda: (R(1, 1),)])
G("032_euler_adjoint", cls="LogisticEuler", other=[lambda: (U(2), U(2), 0.2, 8), lambda: (U(4), U(4, hi=3.0), 0.1, 3), lambda: (U(2, 2), U(2, 2), 0.3, 1)])
G("033_exp_from_output", cls="ClippedExpm1", other=[lambda: (R(5), -1.5), lambda: (R(2, 2), 0.0), lambda: (R(3), 1.0)])
G("034_forward_mode_too", cls="CubeRoot", other=[lambda: (U(5, lo=-3.0, hi=-1.0),), lambda: (U(2, 2, lo=0.5, hi=9.0),), lambda: (T([8.0, -8.0, 27.0], True),)])
G("035_gradient_made_in_forward", cls="NTXent", other=[lambda: (R(3, 2), R(3, 2), 0.1), lambda: (R(2, 4), R(2, 4), 1.0), lambda: (R(1, 3), R(1, 3), 0.3)])
G("036_circular_convolution", cls="CircularConv", other=[lambda: (R(7), R(7)), lambda: (R(2, 2, 5), R(2)), lambda: (R(1, 4), R(1))])
G("037_integer_power", cls="IntPower", other=[lambda: (R(4), 0), lambda: (T([0.0, -1.0, 2.0], True), 2), lambda: (U(3, lo=-3.0, hi=-1.0), -2), lambda: (Z(3), 3)])
G("038_sinc_series", cls="SphericalBessel0", other=[lambda: (T([0.0, 1e-4, -0.49, 0.51], True),), lambda: (R(5, s=10.0),), lambda: (R(2, 2, s=0.1),)])
G("039_log1mexp_branches", cls="Log1mExp", other=[lambda: (U(5, lo=0.5, hi=0.9),), lambda: (U(2, 2, lo=5.0, hi=30.0),), lambda: (U(3, lo=0.2, hi=0.4),)])
G("040_cholesky_factor", cls="CholeskyOfSymmetrised", other=[lambda: (torch.diag(T([1.0, 2.0, 3.0])).requires_grad_(),), lambda: ((R(4, 4, s=0.3).detach() + 3 * torch.eye(4, dtype=D)).requires_grad_(),), lambda: (T([[2.0]], True),)])


def check_pair(entry):
    name = entry["name"]
    case = CASES[name]
    kw = {k: v for k, v in case["kw"].items() if k in ("h", "tol")}
    full = {k: v for k, v in case["kw"].items() if k in ("h", "tol", "alone", "double")}
    faults = []
    for kind in ("broken", "mended"):
        module = load(HERE / "pairs" / name / (kind + ".py"))
        call = caller(case, module)
        ref = (lambda *a: case["ref"](module, *a)) if case["ref"] else None
        at = dict(full)
        if kind == "broken" and case["kw"].get("pattern"):
            at["alone"] = False
        if kind == "broken" and case["kw"].get("gradgrad"):
            at["double"] = False
        bad = whole(call, wide(declared(case, module)), ref, **at) or narrow_ok(case, module)
        for seed in (2, 3, 4):
            bad = bad or first(call, wide(declared(case, module, seed)), ref, **kw)
        if kind == "mended" or entry["hidden"]:
            if bad:
                faults.append(kind + " at declared: " + bad)
        elif bad is None or "NOTFINITE" in bad:
            faults.append("broken is right at declared (or not finite): %s" % bad)
        for i, make in enumerate(case["other"]):
            torch.manual_seed(100 + i)
            args = make()
            if kind == "mended":
                bad = whole(call, args, ref, **full)
                if bad:
                    faults.append("mended at other %d: %s" % (i, bad))
            else:
                bad = first(call, args, ref, **kw)
                if bad is None or "NOTFINITE" in bad:
                    faults.append("broken at other %d: %s" % (i, bad))
        if case["prove"]:
            torch.manual_seed(7)
            verdict = case["prove"](module)
            if verdict is not (kind == "mended"):
                faults.append("%s: prove gave %s" % (kind, verdict))
    if not case["other"] and not case["prove"] and entry["hidden"]:
        faults.append("nothing shows the harm")
    return faults


def check_right(name):
    case = RIGHT[name]
    module = load(HERE / "right" / (name + ".py"))
    call = caller(case, module)
    ref = (lambda *a: case["ref"](module, *a)) if case["ref"] else None
    full = {k: v for k, v in case["kw"].items() if k in ("h", "tol", "alone", "double")}
    faults = []
    bad = whole(call, wide(declared(case, module)), ref, **full) or narrow_ok(case, module)
    for seed in (2, 3, 4):
        bad = bad or first(call, wide(declared(case, module, seed)), ref, **{k: v for k, v in full.items() if k in ("h", "tol")})
    if bad:
        faults.append("declared: " + bad)
    if len(case["other"]) < 2:
        faults.append("too few other inputs")
    for i, make in enumerate(case["other"]):
        torch.manual_seed(100 + i)
        bad = whole(call, make(), ref, **full)
        if bad:
            faults.append("other %d: %s" % (i, bad))
    if case["prove"]:
        torch.manual_seed(7)
        if case["prove"](module) is not True:
            faults.append("prove")
    return faults


def main(names):
    manifest = json.loads((HERE / "manifest.json").read_text())
    failed = total = 0
    for entry in manifest["pairs"]:
        if names and not any(n in entry["name"] for n in names):
            continue
        faults = check_pair(entry)
        total += 1
        failed += bool(faults)
        print("FAIL" if faults else "ok  ", "pair ", entry["name"], "; ".join(faults), flush=True)
    for name in manifest["right"]:
        if names and not any(n in name for n in names):
            continue
        faults = check_right(name)
        total += 1
        failed += bool(faults)
        print("FAIL" if faults else "ok  ", "right", name, "; ".join(faults), flush=True)
    print("%d proved, %d failed" % (total - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
