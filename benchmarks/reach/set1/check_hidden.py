"""At the declared inputs: hidden pairs agree, and both pass gradcheck; visible pairs: broken fails there."""
import importlib.util, json, pathlib, sys, warnings
import torch
torch.set_num_threads(1)
warnings.simplefilter("ignore")
ROOT = pathlib.Path(__file__).resolve().parent


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    m = importlib.util.module_from_spec(spec)
    sys.modules[name] = m
    spec.loader.exec_module(m)
    return m


def double(a):
    if isinstance(a, torch.Tensor) and (a.is_floating_point() or a.is_complex()):
        return a.detach().to(torch.complex128 if a.is_complex() else torch.float64).requires_grad_(a.requires_grad)
    return a


def call_of(m, target):
    t = getattr(m, target)
    return t.apply if isinstance(t, type) and issubclass(t, torch.autograd.Function) else t


def one(module, target, seed):
    torch.manual_seed(seed)
    inputs = tuple(double(a) for a in module.gradsmith_inputs[target]())
    f = call_of(module, target)

    def run(*a):
        o = f(*a)
        o = o if isinstance(o, (tuple, list)) else (o,)
        return tuple(v for v in o if isinstance(v, torch.Tensor) and v.requires_grad)

    why = ""
    try:
        ok = torch.autograd.gradcheck(run, inputs, raise_exception=True)
    except Exception as e:
        ok, why = False, f"{type(e).__name__}: {str(e)[:300]}"
    leaves = [a for a in inputs if isinstance(a, torch.Tensor) and a.requires_grad]
    grads = []
    try:
        for k in range(3):
            outs = run(*inputs)
            g = torch.Generator().manual_seed(1000 + k)
            gos = [torch.randn(o.shape, generator=g, dtype=torch.float64).to(o.dtype) for o in outs]
            got = torch.autograd.grad(outs, leaves, gos, allow_unused=True)
            grads += [None if v is None else v.clone() for v in got]
    except Exception as e:
        why += f" | {type(e).__name__}: {str(e)[:200]}"
    return ok, why, grads, inputs


def main(only):
    bad = 0
    manifest = json.loads((ROOT / "manifest.json").read_text())
    for e in manifest["pairs"] if isinstance(manifest, dict) else [m for m in manifest if "mechanism" in m]:
        if only and e["id"] not in only:
            continue
        d = ROOT / "pairs" / f"{e['id']}_{e['name']}"
        say = []
        for seed in range(3):
            b = one(load(d / "broken.py", "b" + e["id"]), e["target"], seed)
            m = one(load(d / "mended.py", "m" + e["id"]), e["target"], seed)
            same_in = all(torch.equal(x, y) if isinstance(x, torch.Tensor) else True for x, y in zip(b[3], m[3]))
            same = len(b[2]) == len(m[2]) > 0 and all(
                (x is None and y is None) or (x is not None and y is not None and float((x - y).abs().max()) <= 1e-5 * float(y.abs().max()) + 1e-9)
                for x, y in zip(b[2], m[2]))
            if not same_in:
                say.append("inputs differ")
            if not m[0]:
                say.append(f"mended fails gradcheck {m[1]}")
            if e["hidden"] and not b[0]:
                say.append(f"broken fails gradcheck {b[1]}")
            if e["hidden"] and not same:
                say.append("gradients differ at the inputs")
            if not e["hidden"] and b[0] and same:
                say.append("not visible")
        if say:
            bad += 1
        print(e["id"], e["name"], "hidden" if e["hidden"] else "visible", "ok" if not say else "FAIL " + str(say[:2]))
    print("failures:", bad)
    return bad


sys.exit(bool(main(set(sys.argv[1:]))))
