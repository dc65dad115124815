import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# one channel of an interleaved recording
def ref(x, w):
    return F.conv1d(x[:, 1][None, None], w[None, None])[0, 0]
judge(lambda m, x, w: m.FIRFilter.apply(x[:, 1], w), ref, (rand(12, 2), rand(4)))
