import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
pad = torch.tensor([[0, 0, 1], [0, 1, 1]], dtype=torch.uint8)
judge(lambda m, x: m.MaskedMean.apply(x, pad), lambda x: (x * (pad == 0)[..., None]).sum(1) / (pad == 0).sum(1, keepdim=True), (rand(2, 3, 4),))
