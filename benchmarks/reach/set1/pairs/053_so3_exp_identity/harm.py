import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# the usual start of an optimisation: no rotation
def ref(w):
    z = torch.zeros((), dtype=w.dtype)
    K = torch.stack([z, -w[2], w[1], w[2], z, -w[0], -w[1], w[0], z]).view(3, 3)
    return torch.linalg.matrix_exp(K)
judge(lambda m, w: m.SO3Exp.apply(w), ref, (torch.zeros(3).double().requires_grad_(),))
