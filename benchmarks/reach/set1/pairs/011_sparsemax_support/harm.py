import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, z: m.Sparsemax.apply(z), None, ((2 * torch.randn(4, 6, dtype=torch.float64)).requires_grad_(),))
