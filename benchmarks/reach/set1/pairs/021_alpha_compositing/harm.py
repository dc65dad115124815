import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
a = torch.rand(4, 6).double(); a[0, 2] = 1; a[3, 0] = 1
def ref(rgb, al):
    T = torch.ones(4, dtype=torch.float64); out = 0
    for s in range(6):
        out = out + (T * al[:, s])[:, None] * rgb[:, s]
        T = T * (1 - al[:, s])
    return out
judge(lambda m, *x: m.Composite.apply(*x), ref, (rand(4, 6, 3), a.requires_grad_()))
