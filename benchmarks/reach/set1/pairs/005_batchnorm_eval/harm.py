import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
rm, rv = torch.randn(4).double(), torch.rand(4).double() + 0.5
judge(lambda m, x, g, b: m.BatchNormFn.apply(x, g, b, rm, rv, False), lambda x, g, b: F.batch_norm(x, rm, rv, g, b, False), (rand(8, 4), rand(4), rand(4)))
