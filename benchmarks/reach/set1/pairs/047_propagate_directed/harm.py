import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
e = torch.tensor([[0, 0, 1, 3], [1, 2, 2, 0]])
judge(lambda m, x: m.propagate(x, e), lambda x: torch.zeros_like(x).index_add(0, e[1], x[e[0]]), (rand(4, 5),))
