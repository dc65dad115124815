import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
o = torch.tensor([[0.1, 0.2, -0.3], [0.0, 0.3, -4.0]]).double().requires_grad_()
d = torch.tensor([[0.6, 0.0, 0.8], [0.0, 0.0, 1.0]]).double().requires_grad_()
judge(lambda m, *a: m.RaySphere.apply(*a), None, (o, d, torch.tensor(1.0).double().requires_grad_()))
