import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
p = torch.tensor([3, 0, 1, 5, 2, 4])
judge(lambda m, x: m.PermuteRows.apply(x, p), lambda x: x[p], (rand(6, 4),))
