import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
off = torch.tensor([0, 2, 2, 5, 9, 9])
def ref(v):
    z = torch.zeros((), dtype=v.dtype)
    return torch.stack([v[0:2].max(), z, v[2:5].max(), v[5:9].max(), z])
judge(lambda m, v: m.SegmentMax.apply(v, off), ref, (rand(9),))
