import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
y = torch.randn(6).double()
judge(lambda m, a, b: m.GaussianNLL.apply(a, b, y), lambda a, b: 0.5 * (b + (y - a) ** 2 * (-b).exp()).sum(), (rand(6), rand(6)))
