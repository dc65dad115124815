"""Helpers of the harm.py files: load both modules, compare their gradients with a plain reference."""
import importlib.util
import itertools
import pathlib
import sys

import torch

torch.set_num_threads(1)
HERE = [None]


def load(which):
    path = HERE[0] / f"{which}.py"
    spec = importlib.util.spec_from_file_location(f"{which}_{HERE[0].name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def start(file, seed=0):
    HERE[0] = pathlib.Path(file).resolve().parent
    torch.manual_seed(seed)


def fresh(inputs):
    return tuple(
        a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in inputs
    )


def weights(outs):
    g = torch.Generator().manual_seed(7)
    return [torch.randn(o.shape, generator=g, dtype=torch.float64).to(o.dtype) for o in outs]


def as_tuple(o):
    return tuple(o) if isinstance(o, (tuple, list)) else (o,)


def loss_of(outs):
    outs = [o for o in outs if isinstance(o, torch.Tensor) and o.requires_grad]
    total = 0
    for o, w in zip(outs, weights(outs)):
        v = o * w
        total = total + (v.real.sum() + 0.5 * v.imag.sum() if v.is_complex() else v.sum())
    return total


def gradients(f, inputs):
    inputs = fresh(inputs)
    leaves = [a for a in inputs if isinstance(a, torch.Tensor) and a.requires_grad]
    outs = as_tuple(f(*inputs))
    loss_of(outs).backward()
    return [o.detach().clone() for o in outs], [a.grad for a in leaves]


def numeric(f, inputs, eps=1e-6):
    inputs = fresh(inputs)
    out = []
    like = as_tuple(f(*fresh(inputs)))
    keep = [i for i, o in enumerate(like) if o.requires_grad]
    ws = weights([like[i] for i in keep])

    def value():
        with torch.no_grad():
            outs = as_tuple(f(*inputs))
            return sum((outs[i] * w).sum() for i, w in zip(keep, ws)).item()

    for a in inputs:
        if not (isinstance(a, torch.Tensor) and a.requires_grad):
            continue
        g = torch.zeros_like(a)
        for k in itertools.product(*[range(s) for s in a.shape]):
            with torch.no_grad():
                old = a[k].item()
                a[k] = old + eps
                up = value()
                a[k] = old - eps
                down = value()
                a[k] = old
            g[k] = (up - down) / (2 * eps)
        out.append(g)
    return out


def error(got, want):
    worst = 0.0
    for g, w in zip(got, want):
        if g is None and w is None:
            continue
        if w is None:
            w = torch.zeros_like(g)
        if g is None:
            g = torch.zeros_like(w)
        g, w = g.to(torch.complex128), w.to(torch.complex128)
        assert torch.isfinite(torch.view_as_real(w)).all(), "the reference is not finite"
        e = ((g - w).abs().max() / w.abs().max().clamp_min(1e-8)).item() if w.numel() else 0.0
        worst = max(worst, e if e == e else float("inf"))
    return worst


def judge(fn, ref, inputs, tol=1e-4, bad=1e-2, ftol=1e-6):
    """fn(module, *inputs) against ref(*inputs); ref None: finite differences of the mended forward."""
    broken = load("broken")
    try:
        b_out, b_grads = gradients(lambda *a: fn(broken, *a), inputs)
        b_raise = None
    except Exception as e:
        b_raise = f"{type(e).__name__}: {str(e)[:80]}"
    mended = load("mended")
    m_out, m_grads = gradients(lambda *a: fn(mended, *a), inputs)
    if ref is None:
        want = numeric(lambda *a: fn(mended, *a), inputs)
    else:
        r_out, want = gradients(ref, inputs)
        for a, b in zip(m_out, r_out):
            assert torch.allclose(a.to(b.dtype), b, atol=max(ftol, tol / 10), rtol=max(ftol, tol), equal_nan=True), ("forward", a, b)
    if b_raise is None:
        for a, b in zip(b_out, m_out):
            assert torch.allclose(a, b, equal_nan=True), "forwards differ"
    e_b = float("inf") if b_raise else error(b_grads, want)
    e_m = error(m_grads, want)
    print(f"{HERE[0].name}: broken {e_b:.3g}{' (' + b_raise + ')' if b_raise else ''}  mended {e_m:.3g}")
    assert e_b > bad, "broken is not wrong here"
    assert e_m < tol, "mended is not right here"


def rand(*shape, grad=True, seed=None, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)
