import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# float16 activations, loss scale 1024
x = (torch.randn(2, 64).double().abs() * 50).half().requires_grad_()
def ref(x):
    y = x.double()
    return (y / y.norm(dim=-1, keepdim=True)).half() * 1024
judge(lambda m, x: m.L2Normalize.apply(x) * 1024, ref, (x,), tol=2e-2, bad=0.5, ftol=1e-2)
