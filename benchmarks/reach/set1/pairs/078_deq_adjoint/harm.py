import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
w = torch.randn(4, 4).double()
w = (0.6 * w / torch.linalg.matrix_norm(w, 2)).requires_grad_()
judge(lambda m, *a: m.DEQSolve.apply(*a), None, (rand(3, 4), w))
