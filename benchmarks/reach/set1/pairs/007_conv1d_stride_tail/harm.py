import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x, w: m.StridedConv1d.apply(x, w, 2), lambda x, w: F.conv1d(x, w, stride=2), (rand(2, 3, 10), rand(4, 3, 3)))
