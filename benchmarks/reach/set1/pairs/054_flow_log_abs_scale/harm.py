import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
s = torch.tensor([0.7, -1.3, -0.4]).double().requires_grad_()
judge(lambda m, *a: m.ScaleFlow.apply(*a), lambda x, s, t: (s * x + t, s.abs().log().sum().expand(6)), (rand(6, 3), s, rand(3)))
