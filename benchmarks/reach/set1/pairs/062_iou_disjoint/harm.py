import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
t = torch.tensor([[0.0, 0, 2, 2], [1, 1, 4, 3], [0, 0, 1, 1]]).double()
p = torch.tensor([[0.3, 0.1, 1.8, 2.5], [6, 5, 8, 9], [0.2, 3, 1.4, 4]]).double().requires_grad_()
judge(lambda m, p: m.IoULoss.apply(p, t), None, (p,))
