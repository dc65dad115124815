import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
pos = torch.tensor([[0.0, 0, 0], [1.4, 0, 0], [1.9, 1.1, 0.3], [0.2, 1.5, 0.1]]).double().requires_grad_()
pr = torch.combinations(torch.arange(4))
judge(lambda m, x: m.LennardJones.apply(x, pr, 1.6), None, (pos,))
