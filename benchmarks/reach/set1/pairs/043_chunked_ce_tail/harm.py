import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
y = torch.randint(0, 7, (10,))
judge(lambda m, h, w: m.ChunkedLinearCE.apply(h, w, y), lambda h, w: F.cross_entropy(h @ w.t(), y, reduction="sum"), (rand(10, 5), rand(7, 5)))
