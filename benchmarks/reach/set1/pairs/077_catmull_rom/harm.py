import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, *a: m.CatmullRom.apply(*a), None, (rand(4, 2), torch.rand(5).double().requires_grad_()))
