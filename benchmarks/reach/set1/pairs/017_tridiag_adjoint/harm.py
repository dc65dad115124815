import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
def ref(l, d, u, r):
    return torch.linalg.solve(torch.diag(d) + torch.diag(u, 1) + torch.diag(l, -1), r)
d = (torch.rand(6).double() + 4).requires_grad_()
judge(lambda m, *a: m.TridiagSolve.apply(*a), ref, (rand(5), d, rand(5), rand(6)))
