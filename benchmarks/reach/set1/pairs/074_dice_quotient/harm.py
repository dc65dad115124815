import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
t = torch.randint(0, 2, (3, 10)).double()
judge(lambda m, p: m.DiceLoss.apply(p, t, 1.0), lambda p: 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1), (torch.rand(3, 10).double().requires_grad_(),))
