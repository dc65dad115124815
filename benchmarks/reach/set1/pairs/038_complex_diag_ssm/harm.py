import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
c = torch.complex128
judge(lambda m, x, h: m.DiagFilter.apply(x, h), lambda x, h: x * h, (rand(2, 5, dtype=c), rand(5, dtype=c)))
