import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
x = (torch.randn(4, 16, dtype=torch.float64) * 1e-3).requires_grad_()
judge(lambda m, x, w: m.RMSNormFn.apply(x, w, 1e-6), lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w, (x, rand(16)))
