import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, *a: m.TripletLoss.apply(*a, 0.2), lambda a, p, n: ((a - p).pow(2).sum(1) - (a - n).pow(2).sum(1) + 0.2).clamp_min(0).mean(), (rand(8, 4), rand(8, 4), rand(8, 4)))
