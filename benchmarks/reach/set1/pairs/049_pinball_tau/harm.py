import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, p, t: m.pinball(p, t, 0.9), lambda p, t: torch.maximum(0.9 * (t - p), -0.1 * (t - p)).mean(), (rand(9), rand(9, grad=False)))
