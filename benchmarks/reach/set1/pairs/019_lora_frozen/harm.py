import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# LoRA-FA: A stays as it was initialised
w = torch.randn(6, 8).double()
judge(lambda m, x, a, b: m.LoRALinear.apply(x, w, a, b, 0.5), lambda x, a, b: x @ w.t() + 0.5 * x @ a.t() @ b.t(), (rand(5, 8), rand(2, 8, grad=False), rand(6, 2)))
