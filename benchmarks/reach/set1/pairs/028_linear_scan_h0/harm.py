import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, a, b, h: m.LinearScan.apply(a, b, h), None, (rand(6, 3), rand(6, 3), rand(3)))
