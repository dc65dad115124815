import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
ids = torch.randint(0, 8, (4, 5))
judge(lambda m, t: m.embedding_bag(t, ids, "mean"), lambda t: t[ids].mean(-2), (rand(8, 3),))
