import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x: m.LpNorm.apply(x, 3.0), lambda x: torch.linalg.vector_norm(x, 3.0, dim=-1), (rand(5, 7),))
