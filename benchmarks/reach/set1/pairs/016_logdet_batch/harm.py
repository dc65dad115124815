import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
a = torch.randn(3, 3, 3).double()
a = a @ a.mT + 3 * torch.eye(3)
judge(lambda m, a: m.LogDet.apply(a), lambda a: torch.logdet(0.5 * (a + a.mT)), (a.requires_grad_(),))
