import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x: m.RBFKernel.apply(x, None, 0.5), lambda x: torch.exp(-0.5 * (x[:, None] - x[None]).pow(2).sum(-1)), (rand(5, 2),))
