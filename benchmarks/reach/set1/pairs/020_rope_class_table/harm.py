import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
p, q = torch.arange(4), torch.arange(4) + 9
def two(m, x, y):
    return m.RotaryEmbed.apply(x, p), m.RotaryEmbed.apply(y, q)
judge(two, None, (rand(2, 4, 4), rand(2, 4, 4)))
