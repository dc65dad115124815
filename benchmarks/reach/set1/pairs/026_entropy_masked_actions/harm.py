import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
gone = torch.tensor([[0, 1, 0, 0], [1, 0, 0, 1]]).bool()
def ref(x):
    out = []
    for r, k in zip(x, ~gone):
        p = r[k].softmax(0)
        out.append(-(p * p.log()).sum())
    return torch.stack(out)
judge(lambda m, x: m.PolicyEntropy.apply(x + torch.zeros(2, 4).double().masked_fill(gone, -float("inf"))), ref, (rand(2, 4),))
