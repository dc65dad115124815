import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x, y: m.chamfer(x, y)[0], lambda x, y: (x[:, :, None] - y[:, None]).pow(2).sum(-1).min(-1)[0], (rand(3, 6, 3), rand(3, 5, 3)))
