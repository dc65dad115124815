import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
x = torch.randn(4, 3, dtype=torch.float64).t().requires_grad_()
i = torch.tensor([0, 5, 11, 5])
judge(lambda m, x: m.TakeFlat.apply(x, i), lambda x: torch.take(x, i), (x,))
