import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
L = torch.tensor([5, 2, 4])
judge(lambda m, p, w: m.PaddedRNN.apply(p, w, L), None, (rand(5, 3, 4), rand(4, 4)))
