import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x, w: m.causal_conv(x, w, 2), lambda x, w: F.conv1d(F.pad(x, (4, 0))[None], w.flip(1)[:, None], dilation=2, groups=3)[0], (rand(3, 10), rand(3, 3)))
