import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x: m.SoftmaxDim.apply(x, 1, 0.7), lambda x: torch.softmax(x / 0.7, 1), (rand(3, 4, 5),))
