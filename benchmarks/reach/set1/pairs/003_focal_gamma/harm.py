import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
t = torch.tensor([0.0, 1, 1, 0, 1, 0, 1, 1], dtype=torch.float64)
def ref(x):
    s = 2 * t - 1
    p = torch.sigmoid(s * x)
    return -((1 - p) ** 3.5 * p.log()).mean()
judge(lambda m, x: m.FocalLoss.apply(x, t, 3.5), ref, (rand(8),))
