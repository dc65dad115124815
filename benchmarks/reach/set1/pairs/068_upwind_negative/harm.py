import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
v = torch.tensor([0.5, -0.4, -0.7, 0.2, 0.9, -0.1]).double().requires_grad_()
judge(lambda m, *a: m.Upwind.apply(*a), None, (rand(6), v))
