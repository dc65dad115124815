"""Proves the set in plain PyTorch: central differences in float64 of each Function's own forward, or what a case says.

PAIRS[name] is either `lambda: args` (inputs where broken is wrong and mended is right) or a function h(module) that
returns an error (relative; above 1e-3 is wrong, below 1e-5 is right). RIGHT[name] is a list of three such entries.
"""

import importlib.util
import json
import math
import pathlib
import sys
import warnings

import torch
from torch.autograd.gradcheck import GradcheckError

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
HERE = pathlib.Path(__file__).parent
D = torch.float64


def t(*shape):
    return torch.randn(*shape, dtype=D).requires_grad_()


def rnd(*shape):
    return (torch.rand(*shape, dtype=D) + 0.3).requires_grad_()


def c(*shape):
    return torch.randn(*shape, dtype=torch.complex128).requires_grad_()


def T(values):
    return torch.tensor(values, dtype=D).requires_grad_()


def const(*shape):
    return torch.randn(*shape, dtype=D)


def load(path):
    name = "set3_" + "_".join(path.parts[-2:]).replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mutates(m):
    return "mark_dirty(x" in pathlib.Path(m.__file__).read_text()


def subject(m):
    key = next(iter(m.gradsmith_inputs))
    obj = getattr(m, key)
    if isinstance(obj, type) and issubclass(obj, torch.autograd.Function):
        return obj.apply
    return obj


def floating(a):
    return isinstance(a, torch.Tensor) and (a.is_floating_point() or a.is_complex())


def double(a):
    if not floating(a):
        return a
    b = a.detach().to(torch.complex128 if a.is_complex() else D)
    return b.requires_grad_(a.requires_grad)


def outputs(out):
    return [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if floating(o)]


def error(call, args, inplace=False, eps=1e-6):
    """Largest deviation of the gradient from central differences, relative to the largest slope; inf if it raises."""
    args = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) and a.requires_grad else a for a in args]
    fed = [a.clone() if inplace and isinstance(a, torch.Tensor) else a for a in args]
    outs = [o for o in outputs(call(*fed)) if o.requires_grad]
    gen = torch.Generator().manual_seed(5)
    cot = [torch.randn(o.shape, dtype=o.dtype, generator=gen) for o in outs]
    mask = [o.requires_grad for o in outputs(call(*[a.clone() if inplace and isinstance(a, torch.Tensor) else a for a in args]))]
    wrt = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]

    def value(changed):
        with torch.no_grad():
            vals = [v.clone() if inplace and isinstance(v, torch.Tensor) else v for v in changed]
            os = [o for o, k in zip(outputs(call(*vals)), mask) if k]
            return sum((w.conj() * o).real.sum().item() if o.is_complex() else (w * o).sum().item() for w, o in zip(cot, os))

    try:
        grads = torch.autograd.grad(outs, wrt, [w.clone() for w in cot], allow_unused=True)
    except RuntimeError:
        return math.inf
    worst, scale = 0.0, 1e-3
    for a, g in zip(wrt, grads):
        where = [i for i, b in enumerate(args) if b is a][0]
        base = a.detach().clone()
        num = torch.zeros_like(base).flatten()
        for k in range(base.numel()):
            for unit in (1, 1j) if base.is_complex() else (1,):
                vals = []
                for s in (1, -1):
                    p = base.clone().flatten()
                    p[k] += s * eps * unit
                    changed = list(args)
                    changed[where] = p.view(base.shape) if p.numel() == base.numel() else p
                    vals.append(value([x.detach() if isinstance(x, torch.Tensor) else x for x in changed]))
                num[k] += unit * (vals[0] - vals[1]) / (2 * eps)
        num = num.view(base.shape)
        g = torch.zeros_like(base) if g is None else g
        if not torch.isfinite(torch.view_as_real(g) if g.is_complex() else g).all():
            return math.inf
        if num.numel():
            worst = max(worst, (num - g).abs().max().item())
            scale = max(scale, num.abs().max().item())
    return worst / scale


def measure(case, m):
    torch.manual_seed(11)
    if case.__code__.co_argcount == 0:
        return error(subject(m), case(), inplace=mutates(m))
    return case(m)


def at_declared(m, check=True):
    worst = 0.0
    for seed in range(3):
        torch.manual_seed(seed)
        make = next(iter(m.gradsmith_inputs.values()))
        args = [double(a) for a in make()]
        inplace = mutates(m)
        worst = max(worst, error(subject(m), args, inplace))
        if check and worst < 1e-5:
            call = subject(m)
            fn = (lambda *a: call(*[x.clone() if isinstance(x, torch.Tensor) else x for x in a])) if inplace else call
            try:
                torch.autograd.gradcheck(fn, args)
            except GradcheckError:
                return math.inf
    return worst


def second_order(m):
    """Double backward is either refused in words or right."""
    if "once_differentiable" in pathlib.Path(m.__file__).read_text():
        return True
    torch.manual_seed(3)
    make = next(iter(m.gradsmith_inputs.values()))
    args = [double(a) for a in make()]
    call = subject(m)
    if mutates(m):
        inner = call
        call = lambda *a: inner(*[x.clone() if isinstance(x, torch.Tensor) else x for x in a])
    try:
        return torch.autograd.gradgradcheck(call, args, raise_exception=True)
    except RuntimeError as e:
        if "once_differentiable" in str(e) or "once" in str(e) or "does not require grad" in str(e) or "not part of" in str(e) or "No output" in str(e):
            return True
        print("   second order:", str(e)[:300].replace("\n", " "))
        return False


def def_sin(m):
    """Only one of the two outputs is used."""
    a = error(lambda x, w: m.SinCos.apply(x, w)[0], [t(3), T(1.1)])
    return max(a, error(lambda x, w: m.SinCos.apply(x, w)[1], [t(3), T(-0.6)]))


def def_jvp(m):
    """Forward mode against central differences, and backward with a scalar w."""
    x, w, dx, dw = const(2, 3), const(3), const(2, 3), const(3)
    import torch.autograd.forward_ad as fwad

    with fwad.dual_level():
        out = m.GatedSquare.apply(fwad.make_dual(x, dx), fwad.make_dual(w, dw))
        got = fwad.unpack_dual(out).tangent
    e = 1e-6
    num = (m.GatedSquare.apply(x + e * dx, w + e * dw) - m.GatedSquare.apply(x - e * dx, w - e * dw)) / (2 * e)
    return max((got - num).abs().max().item(), error(m.GatedSquare.apply, [t(2, 3), T(0.3)]))


PAIRS = {}
PAIRS['001_focal_loss'] = lambda: (t(6), torch.tensor([0., 1, 0, 1, 1, 0], dtype=D), 0.25, 2.0)
PAIRS['002_masked_ce'] = lambda: (t(5, 4), torch.tensor([1, -100, 3, 0, -100]))
PAIRS['003_soft_dice'] = lambda: (rnd(3, 6), rnd(3, 6))
PAIRS['004_snake'] = lambda: (t(2, 4, 4), rnd(4))
PAIRS['005_softplus'] = lambda: (T([25.0, 30.0, -1.0]), 0.1, 20.0)
PAIRS['006_masked_lse'] = lambda: (t(3, 4), torch.tensor([[True, False, True, True], [False] * 4, [True] * 4]))
PAIRS['007_layer_norm'] = lambda: (t(2, 3, 4), t(3, 4), t(3, 4))
PAIRS['008_batch_norm'] = lambda: (t(5, 3), t(3), t(3), rnd(3).detach(), rnd(3).detach(), False)
PAIRS['009_scale_shift'] = lambda: (t(3, 4), t(3, 1), t(3, 1))
PAIRS['010_unit_vector'] = lambda: (T([[0.01, -0.02, 0.03], [1.0, 2.0, -1.0]]), 0.1)
PAIRS['011_causal_attention'] = lambda: (t(3, 4), t(5, 4), t(5, 2))
PAIRS['012_grouped_query_scores'] = lambda: (t(4, 3, 5), t(2, 2, 5))
PAIRS['013_rotary'] = lambda: (t(2, 3, 4), 7)
PAIRS['014_padded_conv'] = lambda: (t(1, 2, 6, 5), t(3, 2, 3, 3), (1, 0))
PAIRS['015_avg_pool'] = lambda: (t(2, 7), 3, 1, False)
PAIRS['016_fir'] = lambda: (t(8), T([1.0, 0.5, -2.0]))
PAIRS['017_reflect_pad'] = lambda: (t(2, 6), 1, 3)
PAIRS['018_max_pool'] = lambda: (t(2, 8), 3, 1)
PAIRS['019_resize_nearest'] = lambda: (t(2, 4), 7)
PAIRS['020_lut'] = lambda: (T([0.1, 0.9, 1.7, 2.9]), torch.tensor([0.0, 0.5, 1.5, 3.5], dtype=D), t(4))
PAIRS['021_quaternion_rotate'] = lambda: (T([0.5, 1.0, -0.4, 2.0]), t(3, 3))
PAIRS['022_segment_distance'] = lambda: (T([[3.0, 1.0], [-2.0, 0.5]]), T([[0.0, 0.0], [0.1, 0.0]]), T([[1.0, 0.2], [1.0, -0.3]]))
PAIRS['023_segment_mean'] = lambda: (t(5, 2), torch.tensor([2, 0, 1, 0, 2]), 3)
PAIRS['024_weighted_mean'] = lambda: (t(3, 4), torch.rand(3, 4, dtype=D) + 0.2)
PAIRS['025_take_rows'] = lambda: (t(4, 3), torch.tensor([0, -1, 2, -1]))
PAIRS['026_power_spectrum'] = lambda: (t(2, 7),)
PAIRS['027_one_pole'] = lambda: (t(6), T(0.7), T(1.5))


def h(m):
    x = t(3, 4)
    w = const(3, 4)
    y = m.Exponential.apply(x, 0.5)
    y.mul_(3.0)
    (gx,) = torch.autograd.grad(y, x, w)
    return (gx - 1.5 * w * torch.exp(0.5 * x)).abs().max().item()


PAIRS['028_exponential'] = h
PAIRS['029_tridiagonal'] = lambda: (t(3), rnd(4), t(3), t(4))
PAIRS['030_equilibrium'] = lambda: (torch.eye(3, dtype=D).mul(0.8).add(0.04).requires_grad_(), T([0.01, -0.02, 0.015]))
PAIRS['031_least_squares'] = lambda: (t(5, 2), t(5))
PAIRS['032_von_mises'] = lambda: (T([0.3, -0.2]), T([800.0, 5.0]))
PAIRS['033_dirichlet'] = lambda: (rnd(2, 3), torch.softmax(torch.randn(2, 3, dtype=D), -1).requires_grad_())


def h(m):
    x = t(3, 4)
    y = t(3, 4)
    a = m.CachedGate.apply(x)
    b = m.CachedGate.apply(y)
    (gx,) = torch.autograd.grad(a.sum(), x)
    s = torch.sigmoid(1.702 * x)
    true = s + 1.702 * x * s * (1 - s)
    return (gx - true).abs().max().item()


PAIRS['034_gate_cache'] = h
PAIRS['035_channel_gain'] = lambda: (c(2, 3), c(3))
PAIRS['036_mod_relu'] = lambda: (c(2, 3), T([0.4, -0.2, 0.3]))
PAIRS['037_masked_scan'] = lambda: (t(5, 2), torch.rand(5, 2, dtype=D).requires_grad_(), torch.tensor([[1, 1], [0, 1], [1, 0], [0, 0], [1, 1]]).bool())
PAIRS['038_linear'] = lambda: (const(4, 3), t(2, 3), t(2))
PAIRS['039_local_energy'] = lambda: (torch.randn(10, 2, dtype=D).requires_grad_()[:, 0], T([1.0, -2.0, 0.5]))


def h(m):
    x = (torch.randn(2, 64) * 400).half().requires_grad_()
    g = torch.randn(2, 64).half() * 64
    y = m.RMSScale.apply(x)
    (gx,) = torch.autograd.grad(y, x, g)
    xd = x.detach().double().requires_grad_()
    (true,) = torch.autograd.grad(xd * (xd.square().mean(-1, keepdim=True) + 1e-6).rsqrt(), xd, g.double())
    err = ((gx.double() - true).abs().max() / true.abs().max()).item()
    return (0.0 if err < 2e-3 else err) if math.isfinite(err) else math.inf


PAIRS['040_rms_scale'] = h


def h(m):
    x, y = t(3, 4), t(3, 4)
    w = const(3, 4)
    out = m.ScaledTanh.apply(x, 0.5) + y
    gy, gx = torch.autograd.grad(out, (y, x), w.clone())
    true = 0.5 * w * (1 - torch.tanh(x) ** 2)
    return max((gy - w).abs().max().item(), (gx - true).abs().max().item())


PAIRS['041_scaled_residual'] = h
PAIRS['042_softmax_lse'] = lambda: (t(3, 4), True)
PAIRS['043_box_iou'] = lambda: (T([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 2.0, 1.0]]), T([[2.0, 0.2, 3.0, 0.9], [0.5, 0.4, 1.5, 2.0]]))
PAIRS['044_frequency_response'] = lambda: (c(2, 4), c(4))
PAIRS['045_chunked_energy'] = lambda: (t(7, 2), t(3, 2), 3)
PAIRS['046_sorted_gain'] = lambda: (T([[0.3, 1.7, -0.4, 0.9], [2.0, -1.0, 0.5, 0.1]]), t(4))
PAIRS['047_chebyshev'] = lambda: (T([0.3, -0.6]), t(5))
PAIRS['048_heading_error'] = lambda: (T([3.0, -3.0, 0.2]), T([-3.0, 2.8, 0.1]))
PAIRS['049_median'] = lambda: (t(3, 6),)
PAIRS['050_sinc'] = lambda: (T([-1.3, 0.0, 0.4]),)
PAIRS['051_pinhole'] = lambda: ((torch.rand(3, 3, dtype=D) + 1).requires_grad_(), T([2.0, 3.0]), t(2))
PAIRS['052_ray_sphere'] = lambda: (T([[0.1, 0.2, -0.3], [-3.0, 0.1, 0.2]]), T(1.2))
PAIRS['053_row_product'] = lambda: (T([[1.0, 0.0, 3.0], [2.0, -1.0, 0.5], [0.0, 0.0, 2.0]]),)
PAIRS['054_token_shift'] = lambda: (t(4, 3), t(3))


def h(m):
    return error(lambda x: m.MeanVar.apply(x)[1], [t(3, 4)])


PAIRS['055_mean_and_var'] = h
PAIRS['056_symmetric_from_vector'] = lambda: (t(6), 3)
PAIRS['057_kepler'] = lambda: (T([0.5, 2.0]), T([0.3, 0.6]))
PAIRS['058_student_t'] = lambda: (t(4), rnd(4))
PAIRS['059_polar'] = lambda: (rnd(4), t(4))
PAIRS['060_covariance'] = lambda: (t(5, 3),)


RIGHT = {}
RIGHT['001_recompute_mlp'] = [lambda: (t(4, 3), t(3, 5), t(5, 2)), lambda: (t(1, 2), t(2, 2), t(2, 1)), lambda: (const(3, 3), t(3, 4), const(4, 6))]
RIGHT['002_leaky_inplace'] = [lambda: (t(3, 4), 0.1), lambda: (t(7), 0.5), lambda: (t(2, 1, 3), 0.01)]
RIGHT['003_axpy_inplace'] = [lambda: (t(3, 4), t(3, 4), 2.0), lambda: (t(3, 4), t(4), -0.5), lambda: (t(2, 3), t(2, 1), 0.0)]
RIGHT['004_topk_softmax'] = [lambda: (t(4, 6), 2), lambda: (t(5), 5), lambda: (t(2, 3, 4), 1)]
RIGHT['005_bell'] = [lambda: (t(4), T(1.3)), lambda: (t(2, 3), T(-0.4)), lambda: (t(3, 2), T([[0.5, 2.0]]))]
RIGHT['006_swish_twice'] = [lambda: (t(5),), lambda: (T([0.0, -30.0, 40.0]),), lambda: (t(2, 3),)]
RIGHT['007_vmap_rule'] = [lambda: (t(4), t(4)), lambda: (t(1), t(1)), lambda: (t(7), const(7))]
RIGHT['008_vmap_by_hand'] = [lambda: (t(3, 4), t(3, 4)), lambda: (t(4), t(4)), lambda: (t(2, 3, 2), t(2, 3, 2))]
RIGHT['009_product_of_many'] = [lambda: (t(3), t(3), t(3)), lambda: (t(2, 2),), lambda: (T([0.0, 1.0]), t(2), T([0.0, 3.0]), t(2), t(2))]
RIGHT['010_implicit_cubic'] = [lambda: (t(6),), lambda: (T([0.0, 100.0, -50.0]),), lambda: (t(2, 3),)]
RIGHT['011_ordered_average'] = [lambda: (t(4, 5), t(5)), lambda: (t(3), t(3)), lambda: (t(2, 2, 4), const(4))]
RIGHT['012_unit_phase'] = [lambda: (c(4),), lambda: (c(2, 3),), lambda: (c(1),)]
RIGHT['013_numpy_convolve'] = [lambda: (t(7), t(3)), lambda: (t(3), t(5)), lambda: (t(4), t(1))]
RIGHT['014_packed_relu'] = [lambda: (t(3, 4),), lambda: (t(17),), lambda: (t(2, 2, 2),)]
RIGHT['015_streaming_lse'] = [lambda: (t(10), 3), lambda: (t(4), 100), lambda: (T([1000.0, -1000.0, 999.0]), 1)]
RIGHT['016_dict_options'] = [lambda: (t(4), {"scale": 2.0, "power": 3}), lambda: (t(4), {}), lambda: (t(2, 2), {"power": 1, "centre": True})]
RIGHT['017_join'] = [lambda: (0, t(2, 3), t(1, 3)), lambda: (-1, t(2, 1), t(2, 3), t(2, 2)), lambda: (1, t(2, 2, 2), const(2, 1, 2))]
RIGHT['018_log_cosh'] = [lambda: (t(4), t(4)), lambda: (t(2, 3), const(2, 3), "none"), lambda: (T([300.0, -400.0]), T([0.0, 1.0]), "sum")]
RIGHT['019_compact'] = [lambda: (t(4), torch.tensor([True, False, True, True])), lambda: (t(2, 2), torch.tensor([[False, False], [True, False]])), lambda: (t(3), torch.tensor([False] * 3))]
RIGHT['020_bag_sum'] = [lambda: (t(4, 2), torch.tensor([0, 3, 3, 1]), torch.tensor([0, 2])), lambda: (t(3, 2), torch.tensor([2, 2]), torch.tensor([0, 0, 1, 2])), lambda: (t(2, 3), torch.tensor([1]), torch.tensor([0]))]
RIGHT['021_scalar_boltzmann'] = [lambda: (T(0.5), T(2.0)), lambda: (T(-3.0), T(0.7)), lambda: (T(0.0), T(1.0))]
RIGHT['022_saved_views'] = [lambda: (t(3, 6),), lambda: (t(5),), lambda: (t(2, 4).t(),)]
RIGHT['023_class_table'] = [lambda: (t(4), "gelu"), lambda: (t(4), "mish"), lambda: (t(2, 3), "softsign")]
RIGHT['024_optional_bias'] = [lambda: (t(2, 3), t(4, 3), t(4)), lambda: (t(2, 3), t(4, 3), None), lambda: (t(3), t(2, 3), t(2))]
RIGHT['025_sincos'] = [lambda: (t(4), T(2.0)), lambda: (t(2, 2), T(0.0)), def_sin]
RIGHT['026_with_jvp'] = [lambda: (t(3, 4), t(4)), lambda: (t(4), t(4)), def_jvp]
RIGHT['027_centre_buffer'] = [lambda: (t(4, 3), {}), lambda: (t(2, 1), {"mean": torch.ones(1, dtype=D)}, 1.0), lambda: (t(1, 2), {}, 0.0)]
RIGHT['028_seeded_dropout'] = [lambda: (t(3, 4), 0.5, 1), lambda: (t(10), 0.2, 7), lambda: (t(5), 0.0, 3)]
RIGHT['029_gram_logdet'] = [lambda: (t(3, 3), 1.0), lambda: (t(2, 4), 0.5), lambda: (t(4, 1), 2.0)]
RIGHT['030_soft_max_eig'] = [lambda: (t(3, 3),), lambda: (torch.eye(3, dtype=D).requires_grad_(),), lambda: (t(1, 1),)]
RIGHT['031_lu_solve'] = [lambda: (t(3, 3), t(3, 2)), lambda: (t(3, 3), t(3, 1), True), lambda: (c(2, 2), c(2, 3), True)]
RIGHT['032_rnn'] = [lambda: (t(4, 2), t(3), t(3, 2), t(3, 3)), lambda: (t(1, 1), t(2), t(2, 1), t(2, 2)), lambda: (t(5, 2), const(2), t(2, 2), t(2, 2))]
RIGHT['033_crf'] = [lambda: (t(4, 3), t(3, 3)), lambda: (t(1, 2), t(2, 2)), lambda: (T([[300.0, -300.0], [200.0, 0.0]]), t(2, 2))]
RIGHT['034_soft_dtw'] = [lambda: (t(4), t(3), 1.0), lambda: (t(2), t(5), 0.1), lambda: (t(1), t(1), 2.0)]
RIGHT['035_fft_filter'] = [lambda: (t(2, 7), t(3)), lambda: (t(5), t(5)), lambda: (t(4), t(1))]
RIGHT['036_resize_matrix'] = [lambda: (t(3, 4), 6, 5), lambda: (t(2, 5, 3), 2, 7), lambda: (t(1, 1), 3, 2)]
RIGHT['037_coo_matvec'] = [lambda: (torch.tensor([[0, 1, 0], [1, 2, 1]]), t(3), t(3, 2), 2), lambda: (torch.tensor([[0], [0]]), t(1), t(1, 1), 4), lambda: (torch.zeros(2, 0, dtype=torch.long), t(0), t(2, 2), 3)]
RIGHT['038_quantile'] = [lambda: (t(5, 3), 0.3, 0), lambda: (t(6), 0.5), lambda: (t(2, 4, 3), 1.0, -2)]
RIGHT['039_clamp_between'] = [lambda: (t(3, 4), T([-0.3]), T([0.4])), lambda: (t(3, 4), const(4) - 2, (torch.rand(3, 1, dtype=D) * 0.1).requires_grad_()), lambda: (t(5), T(-0.1), T(0.1))]
RIGHT['040_haar_op'] = [lambda: (t(2, 8), 2), lambda: (t(1, 4), 0), lambda: (t(3, 6), 1)]


def main(only):
    manifest = json.loads((HERE / "manifest.json").read_text())
    bad = 0
    for name, case in PAIRS.items():
        if only and not any(o in name for o in only):
            continue
        try:
            folder = HERE / "pairs" / name
            broken = load(folder / "broken.py")
            there, here = measure(case, broken), at_declared(broken)
            mended = load(folder / "mended.py")
            right_there, right_here = measure(case, mended), at_declared(mended)
            hidden = manifest[name]["hidden"]
            ok = there > 1e-3 and right_there < 1e-5 and right_here < 1e-5 and (here < 1e-5 if hidden else here > 1e-3)
            ok = ok and second_order(mended)
            print(f"{'ok  ' if ok else 'FAIL'} {name}: broken {there:.1e}, mended {right_there:.1e}; at the declared inputs broken {here:.1e}, mended {right_here:.1e}{'' if hidden else ' (plain)'}", flush=True)
        except Exception as e:
            ok = False
            print(f"FAIL {name}: {type(e).__name__} {str(e)[:300]}", flush=True)
        bad += not ok
    for name, cases in RIGHT.items():
        if only and not any(o in name for o in only):
            continue
        try:
            m = load(HERE / "right" / f"{name}.py")
            errs = [measure(case, m) for case in cases]
            decl = at_declared(m)
            ok = len(cases) >= 3 and max(errs) < 1e-5 and decl < 1e-5 and second_order(m)
            print(f"{'ok  ' if ok else 'FAIL'} right {name}: {', '.join(f'{e:.1e}' for e in errs)}; declared {decl:.1e}", flush=True)
        except Exception as e:
            ok = False
            print(f"FAIL right {name}: {type(e).__name__} {str(e)[:300]}", flush=True)
        bad += not ok
    print("all hold" if not bad else f"{bad} do not hold")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) != 0)
