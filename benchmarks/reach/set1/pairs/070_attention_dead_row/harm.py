import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
keep = torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 1]]).bool()
def ref(q, k, v):
    s = (q @ k.t() * 0.5).masked_fill(~keep, -1e30)
    return torch.where(keep.any(1, keepdim=True), s.softmax(-1), torch.zeros(3, 3).double()) @ v
judge(lambda m, q, k, v: m.MaskedAttention.apply(q, k, v, keep), ref, (rand(3, 4), rand(3, 4), rand(3, 4)))
