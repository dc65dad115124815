import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, q, k: m.GroupedQueryScores.apply(q, k), lambda q, k: q @ k.repeat_interleave(2, 1).mT * 8**-0.5, (rand(2, 4, 3, 8), rand(2, 2, 5, 8)))
