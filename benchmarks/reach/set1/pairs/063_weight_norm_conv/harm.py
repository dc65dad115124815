import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, v, g: m.WeightNorm.apply(v, g), lambda v, g: torch._weight_norm(v, g.view(-1, 1, 1, 1), 0), (rand(4, 2, 3, 3), rand(4)))
