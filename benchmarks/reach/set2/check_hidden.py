"""For the hidden pairs: at the declared inputs broken and mended have the same gradient and both pass gradcheck.

The visible pairs must differ there. SEED=n draws other inputs; ids as arguments restrict the run."""
import json
import os
import pathlib
import sys

import torch

from harmlib import load

SEED = int(os.environ.get("SEED", "1"))
HERE = pathlib.Path(__file__).resolve().parent


def as_double(value):
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        dtype = torch.complex128 if value.is_complex() else torch.float64
        return value.detach().to(dtype).requires_grad_(value.requires_grad)
    return value


def target_of(module, name):
    target = getattr(module, name)
    return target.apply if isinstance(target, type) and issubclass(target, torch.autograd.Function) else target


def measure(module, name, inputs):
    fn = target_of(module, name)
    results = []
    leaves = [a for a in inputs if isinstance(a, torch.Tensor) and a.requires_grad]
    for seed in range(4):
        gen = torch.Generator().manual_seed(seed)
        out = fn(*inputs)
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if isinstance(o, torch.Tensor) and o.requires_grad]
        cots = [torch.randn(o.shape, generator=gen, dtype=torch.float64).to(o.dtype) for o in outs]
        results.append(torch.autograd.grad(outs, leaves, cots, allow_unused=True))
    passes = torch.autograd.gradcheck(fn, inputs, raise_exception=False)
    return results, passes


def differ(a, b):
    worst = 0.0
    for ga, gb in zip(a, b):
        for x, y in zip(ga, gb):
            if x is None and y is None:
                continue
            x = torch.zeros_like(y) if x is None else x
            y = torch.zeros_like(x) if y is None else y
            d = (x - y).abs().max().item() / max(1e-12, y.abs().max().item())
            worst = max(worst, d if d == d else float("inf"))
    return worst


only = [a for a in sys.argv[1:] if a.isdigit()]
failed = []
for entry in json.loads((HERE / "manifest.json").read_text()):
    if "mechanism" not in entry or (only and entry["id"] not in only):
        continue
    folder = HERE / "pairs" / f"{entry['id']}_{entry['name']}"
    torch.manual_seed(SEED)
    try:
        broken = load(folder / "broken.py")
        inputs = tuple(as_double(v) for v in broken.gradsmith_inputs[entry["target"]]())
        g_broken, ok_broken = measure(broken, entry["target"], inputs)
        mended = load(folder / "mended.py")
        assert list(mended.gradsmith_inputs) == list(broken.gradsmith_inputs)
        g_mended, ok_mended = measure(mended, entry["target"], inputs)
        d = differ(g_broken, g_mended)
        good = ok_mended and ((ok_broken and d < 1e-5) if entry["hidden"] else (d > 1e-2 and not ok_broken))
        note = f"difference {d:.2g}, gradcheck broken {ok_broken}, mended {ok_mended}"
    except Exception as error:
        good, note = False, f"{type(error).__name__}: {error}"
    print("ok  " if good else "FAIL", entry["id"], entry["name"], "hidden" if entry["hidden"] else "visible", note, flush=True)
    if not good:
        failed.append(entry["id"])
print(f"{len(failed)} failed", failed)
sys.exit(bool(failed))
