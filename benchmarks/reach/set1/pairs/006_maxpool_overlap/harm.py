import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x: m.MaxPool1d.apply(x, 3, 1), lambda x: F.max_pool1d(x, 3, 1), (rand(2, 3, 9),))
