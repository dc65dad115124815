import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, *a: m.FiLM.apply(*a), lambda x, g, b: x * (1 + g) + b, (rand(3, 5, 5), rand(3, 1, 5), rand(5, 1)))
