import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
ev = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0]).double()
judge(lambda m, r: m.CoxLoss.apply(r, ev), lambda r: -((r - torch.logcumsumexp(r, 0)) * ev).sum() / ev.sum(), (rand(8),))
