"""The author's proof, in plain PyTorch: python benchmarks/reach/set4/harm.py

At the declared inputs the custom gradient is that of autograd through the same forward, broken or mended. At the inputs of
`harm` in manifest.json the broken one differs, or is not finite where forward is, and the mended one does not.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import torch

HERE = Path(__file__).parent


class Ctx(SimpleNamespace):
    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors


def X(*args):
    *shape, scale = args if isinstance(args[-1], float) else (*args, 1.0)
    return (scale * torch.randn(*shape, dtype=torch.float64)).requires_grad_()


def C(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (name,) = module.gradsmith_inputs
    return getattr(module, name), module.gradsmith_inputs[name]


def doubled(value):
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().double().requires_grad_(value.requires_grad)
    return value


def right(cls, args, between=lambda: None):
    """Whether the custom gradient is finite, and that of autograd through forward where that is finite, too."""
    tensors = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    v_seed = torch.Generator().manual_seed(1)
    out = cls.apply(*args)
    plain = cls.forward(Ctx(), *args)
    v = torch.randn(out.shape, generator=v_seed, dtype=out.dtype)
    between()
    try:
        got = torch.autograd.grad(out, tensors, v)
    except RuntimeError:
        return False
    want = torch.autograd.grad(plain, tensors, v)
    return all(
        bool(torch.isfinite(g).all()) and (not bool(torch.isfinite(w).all()) or torch.allclose(g, w, rtol=1e-6))
        for g, w in zip(got, want)
    )


def main() -> None:
    manifest = json.loads((HERE / "manifest.json").read_text())
    faults = 0
    for name, about in manifest.items():
        found = []
        for which in ("broken", "mended"):
            torch.manual_seed(0)
            cls, inputs = loaded(HERE / "pairs" / name / f"{which}.py")
            here = right(cls, [doubled(a) for a in inputs()])
            if about["harm"] == "STATE":
                there = right(cls, [X(4)], cls.step)
            elif about["harm"] == "NAN":
                a = X(3, 4)
                there = right(cls, [a, a.detach()[:2].clone().requires_grad_()])
            else:
                there = right(cls, eval(f"({about['harm'].rstrip(',')},)", {"X": X, "C": C, "torch": torch}))
            found.append((here, there))
        if found != [(True, False), (True, True)]:
            faults += 1
            print(name, "broken (here, there), mended (here, there):", found)
    print(f"{len(manifest)} pairs, {faults} not as the manifest says")


if __name__ == "__main__":
    main()
