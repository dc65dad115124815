import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# BitFit: only the bias is trained
judge(lambda m, *a: m.FusedLinear.apply(*a), F.linear, (rand(2, 5, 4, grad=False), rand(3, 4, grad=False), rand(3)))
