import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x, y: m.Wasserstein1d.apply(x, y), lambda x, y: (x.sort()[0] - y.sort()[0]).square().mean(), (rand(9), rand(9)))
