import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# a batch of sentences of one token
judge(lambda m, x, q: m.AttnPool.apply(x, q), lambda x, q: torch.einsum("bt,btd->bd", (x @ q).softmax(1), x), (rand(3, 1, 5), rand(5)))
