import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
old, adv = torch.randn(16).double(), torch.randn(16).double()
def ref(lp):
    r = (lp - old).exp()
    return -torch.minimum(r * adv, r.clamp(0.8, 1.2) * adv).mean()
judge(lambda m, lp: m.PPOClip.apply(lp, old, adv, 0.2), ref, (rand(16),))
