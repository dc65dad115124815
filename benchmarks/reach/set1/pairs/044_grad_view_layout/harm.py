import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
# axial attention: the next block works on the transposed image
judge(lambda m, x, s: m.ChannelScale.apply(x, s).transpose(2, 3).contiguous(), lambda x, s: (x * s[:, :, None, None]).transpose(2, 3), (rand(2, 3, 4, 4), rand(2, 3)))
