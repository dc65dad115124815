import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
t = torch.arange(9).double() - 4
judge(lambda m, f: m.SincFilter.apply(f, t), lambda f: 2 * f * torch.sinc(2 * f * t), (torch.rand(3, 1).double().requires_grad_(),))
