import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# two branches of one network; per-branch gradients are asked for with autograd.grad
def two(m, x, y):
    out = m.CubicAct.apply(x, 0.2), m.CubicAct.apply(y, 0.2)
    return out
from harmlib import load, error
x, y = rand(4, 3), rand(4, 3)
def grads(m):
    a, b = two(m, x, y)
    gx, gy = torch.autograd.grad([a.sum() + 2 * b.sum()], [x, y])
    return [gx, gy]
want = [(1 + 0.6 * x**2).detach(), (2 + 1.2 * y**2).detach()]
eb, em = error(grads(load("broken")), want), error(grads(load("mended")), want)
print("061_shared_workspace: broken", eb, "mended", em)
assert eb > 1e-2 and em < 1e-4
