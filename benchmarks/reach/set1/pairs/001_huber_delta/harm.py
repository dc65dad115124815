import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, p, t: m.HuberLoss.apply(p, t, 0.3), lambda p, t: F.huber_loss(p, t, delta=0.3, reduction="sum"), (rand(5, 3), rand(5, 3)))
