"""Every right Function: gradcheck at several draws of its inputs, and every combination of requires_grad; double
backward is right or refused. Declared surrogates are only run."""
import itertools
import json
import pathlib
import sys

import torch

from harmlib import load

HERE = pathlib.Path(__file__).resolve().parent
failed = []
for entry in json.loads((HERE / "manifest.json").read_text()):
    if "mechanism" in entry:
        continue
    path = HERE / "right" / f"{entry['id']}_{entry['name']}.py"
    module = load(path)
    surrogate = "gradsmith: surrogate" in path.read_text()
    notes = []
    for name, make in module.gradsmith_inputs.items():
        cls = getattr(module, name)
        for seed in range(5):
            torch.manual_seed(seed)
            inputs = make()

            def fn(*a):
                return cls.apply(*[t.clone() if "mark_dirty" in path.read_text() and torch.is_tensor(t) else t for t in a])

            leaves = [i for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and t.requires_grad]
            masks = [m for m in itertools.product((True, False), repeat=len(leaves)) if any(m)] if seed == 0 else [(True,) * len(leaves)]
            for mask in masks:
                args = [t.detach().clone() if isinstance(t, torch.Tensor) else t for t in inputs]
                for i, need in zip(leaves, mask):
                    args[i].requires_grad_(need)
                try:
                    if surrogate:
                        out = fn(*args)
                        out.sum().backward()
                        continue
                    torch.autograd.gradcheck(fn, tuple(args))
                    try:
                        torch.autograd.gradgradcheck(fn, tuple(args))
                    except RuntimeError as error:
                        if "once_differentiable" not in path.read_text():
                            raise
                except Exception as error:
                    notes.append(f"{name} seed {seed} {mask} {type(error).__name__}: {str(error)[:300]}")
    print("FAIL" if notes else "ok  ", entry["id"], entry["name"], *notes[:2], flush=True)
    if notes:
        failed.append(entry["id"])
print(f"{len(failed)} failed", failed)
sys.exit(bool(failed))
