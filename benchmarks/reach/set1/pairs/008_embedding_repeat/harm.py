import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
ids = torch.tensor([[1, 1, 2], [9, 1, 2]])
judge(lambda m, t: m.EmbedLookup.apply(t, ids), lambda t: F.embedding(ids, t), (rand(10, 4),))
