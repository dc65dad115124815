"""Shared by the harm.py scripts: plain PyTorch, no gradsmith."""
import importlib.util
import pathlib

import torch

torch.manual_seed(0)


def load(path):
    path = pathlib.Path(path)
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _outputs(out):
    out = out if isinstance(out, (tuple, list)) else (out,)
    return [o for o in out if isinstance(o, torch.Tensor) and (o.is_floating_point() or o.is_complex())]


def _loss(out, cot, outs_used=None):
    g = torch.Generator().manual_seed(7)
    total = 0.0
    for i, o in enumerate(_outputs(out)):
        c = torch.randn(o.shape, generator=g, dtype=torch.float64) + 0.3
        if o.is_complex():
            c = torch.complex(c, torch.randn(o.shape, generator=g, dtype=torch.float64))
        if outs_used is not None and i not in outs_used:
            continue
        if cot == "sum":
            total = total + o.sum()
        elif o.is_complex():
            total = total + (o * c).real.sum()
        else:
            total = total + (o * c.to(o.dtype)).sum()
    return total


def _fresh(inputs):
    return [t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t for t in inputs]


def grads(fn, inputs, cot="random", outs_used=None):
    args = _fresh(inputs)
    out = fn(*args)
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    loss = _loss(out, cot, outs_used)
    if not (isinstance(loss, torch.Tensor) and loss.requires_grad):
        return [None] * len(leaves), [o.detach() for o in _outputs(out)]
    return list(torch.autograd.grad(loss, leaves, allow_unused=True)), [o.detach() for o in _outputs(out)]


def fd_grads(fn, inputs, eps=1e-6, outs_used=None):
    args = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in inputs]
    result = []
    for i, t in enumerate(inputs):
        if not (isinstance(t, torch.Tensor) and t.requires_grad):
            continue
        base, g = args[i], torch.zeros_like(args[i], memory_format=torch.contiguous_format)
        for k in range(base.numel()):
            vals = []
            for s in (eps, -eps):
                p = base.contiguous().clone()
                p.view(-1)[k] += s
                moved = base.clone()
                moved.copy_(p)
                call = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
                call[i] = moved
                with torch.no_grad():
                    vals.append(float(_loss(fn(*call), "random", outs_used)))
            g.view(-1)[k] = (vals[0] - vals[1]) / (2 * eps)
        result.append(g)
    return result


def rel_err(got, expected):
    worst = 0.0
    for g, e in zip(got, expected):
        if e is None:
            e = torch.zeros_like(g) if g is not None else None
        if e is None:
            continue
        scale = e.abs().max().item() if e.numel() else 0.0
        if g is None:
            worst = max(worst, float("inf") if scale > 0 else 0.0)
            continue
        assert g.shape == e.shape, (g.shape, e.shape)
        d = (g - e).abs().max().item() if e.numel() else 0.0
        if d != d or d == float("inf"):
            return float("inf")
        worst = max(worst, d / scale if scale > 0 else d)
    return worst


def judge(file, run, ref, inputs, cot="random", outs_used=None, tol=1e-4):
    """run(module, *inputs) -> output(s); ref(*inputs) -> the same in plain torch, or None: finite differences."""
    here = pathlib.Path(file).resolve().parent
    broken = load(here / "broken.py")
    wrong, out_b = grads(lambda *a: run(broken, *a), inputs, cot, outs_used)
    mended = load(here / "mended.py")
    right, out_m = grads(lambda *a: run(mended, *a), inputs, cot, outs_used)
    if ref is None:
        expected = fd_grads(lambda *a: run(mended, *a), inputs, outs_used=outs_used)
    else:
        expected, out_r = grads(ref, inputs, cot, outs_used)
        for a, b, r in zip(out_b, out_m, out_r):
            assert torch.allclose(a, r, rtol=1e-5, atol=1e-7), "forward of broken differs from the reference"
            assert torch.allclose(b, r, rtol=1e-5, atol=1e-7), "forward of mended differs from the reference"
    eb, em = rel_err(wrong, expected), rel_err(right, expected)
    print(f"{here.name}: broken {eb:.3g} mended {em:.3g}")
    assert eb > 1e-2, f"broken is not wrong: {eb}"
    assert em < tol, f"mended is not right: {em}"
