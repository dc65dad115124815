import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, a, b: m.SwiGLU.apply(a, b), lambda a, b: F.silu(a) * b, (rand(4, 6), rand(4, 6)))
