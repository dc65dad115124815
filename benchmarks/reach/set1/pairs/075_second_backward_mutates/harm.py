import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
y = torch.randint(0, 2, (6, 2)).double() * 2 - 1
from harmlib import load, error
f = rand(6, 2)
def grads(apply):
    out = apply(f).sum()
    torch.autograd.grad(out, f, retain_graph=True)
    return [torch.autograd.grad(out, f)[0].clone()]
want = grads(lambda f: (1 - y * f).clamp_min(0).square().mean(0))
eb = error(grads(lambda f: load("broken").SquaredHinge.apply(f, y)), want)
em = error(grads(lambda f: load("mended").SquaredHinge.apply(f, y)), want)
print("075: broken", eb, "mended", em)
assert eb > 1e-2 and em < 1e-4
