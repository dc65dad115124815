import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, d: m.SoftDTW.apply(d, 0.5), None, (torch.rand(3, 5).double().requires_grad_(),))
