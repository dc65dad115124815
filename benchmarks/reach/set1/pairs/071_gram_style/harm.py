import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x: m.GramMatrix.apply(x), lambda x: x @ x.t() / 6, (rand(3, 6),))
