import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
i = torch.tensor([1, 5, 0, 1], dtype=torch.int32)
judge(lambda m, x: m.PickColumns.apply(x, i), lambda x: x.gather(1, i.long()[:, None])[:, 0], (rand(4, 6),))
