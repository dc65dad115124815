import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# activations from an 8-bit front end: ties are the rule; the kept entries are those of forward
x = torch.tensor([[0.5, 1.0, 1.0, 1.0, 0.25], [2.0, 0.5, 0.5, 0.5, 0.0]]).double().requires_grad_()
def ref(x):
    idx = torch.sort(x.detach(), dim=1, descending=True, stable=True).indices[:, :2]
    return x * torch.zeros(2, 5, dtype=torch.float64).scatter_(1, idx, 1.0)
judge(lambda m, x: m.TopKMask.apply(x, 2), ref, (x,))
