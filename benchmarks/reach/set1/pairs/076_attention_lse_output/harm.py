import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, *a: m.AttnWithLSE.apply(*a), lambda q, k, v: ((q @ k.t()).softmax(1) @ v, (q @ k.t()).logsumexp(1)), (rand(4, 3), rand(5, 3), rand(5, 3)))
